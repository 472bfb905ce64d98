"""What a job says to the processes of its ranks."""

from __future__ import annotations

from typing import Protocol


class Outbox(Protocol):
    def send(self, rank: int, frame: bytes) -> None:
        """Queues one frame for the rank's process; dropped if it has ended."""

    def refuse(self, rank: int, reason: str) -> None:
        """The rank broke the protocol in a frame that was held back until now."""


class NullOutbox:
    """For replays: nobody listens."""

    def send(self, rank: int, frame: bytes) -> None:
        pass

    def refuse(self, rank: int, reason: str) -> None:
        raise ValueError(f"rank {rank}: {reason}")
