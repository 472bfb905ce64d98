"""Made-up jobs of several ranks, for tests that need many different ones: SPMD programs, so they never deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fake_rank import EVENT_RECORD, STREAM_WAIT, FakeRank, record


@dataclass
class SyntheticJob:
    """Appends to the programs of all ranks at once. Each rank issues at its own pace."""

    world_size: int
    gpus_per_node: int = 8
    ranks: list[FakeRank] = field(init=False)

    def __post_init__(self) -> None:
        self.ranks = [FakeRank(rank) for rank in range(self.world_size)]
        self._clocks = [0] * self.world_size
        self._comms: dict[tuple[int, ...], dict[int, int]] = {}
        self._groups: dict[tuple[int, ...], dict[int, int]] = {}
        self._recordings = 0

    def host_work(self, rank: int, ns: int) -> None:
        self._clocks[rank] += ns

    def kernel(self, rank: int, duration_ns: int, stream: int = 0) -> None:
        self.ranks[rank].kernel(f"gemm:{duration_ns}", at=self._clocks[rank], stream=stream)

    def collective(self, members: Sequence[int], op: str, size_bytes: int, stream: int = 0) -> None:
        comms = self._comm(members)
        for rank in members:
            self.ranks[rank].collective(comms[rank], op, size_bytes, at=self._clocks[rank], stream=stream)

    def transfer(self, source: int, target: int, size_bytes: int, stream: int = 0) -> None:
        comms = self._comm((source, target))
        for rank, peers in ((source, [["send", 1, size_bytes]]), (target, [["recv", 0, size_bytes]])):
            self.ranks[rank].group(comms[rank], peers, at=self._clocks[rank], stream=stream)

    def join(self, rank: int, of: int, waits: int) -> None:
        """Stream `waits` goes on after what stream `of` holds now."""
        self._recordings += 1
        for stream in (of, waits):
            self.ranks[rank].stream(stream)
        self.ranks[rank].batch(
            record(EVENT_RECORD, self._recordings, at=self._clocks[rank], stream=of),
            record(STREAM_WAIT, self._recordings, at=self._clocks[rank], stream=waits),
        )

    def sync(self, rank: int, stream: int = 0) -> None:
        self.ranks[rank].sync(at=self._clocks[rank], stream=stream)
        self._clocks[rank] = 0

    def host_sync(self, members: Sequence[int]) -> None:
        key = tuple(members)
        if key not in self._groups:
            uid = repr(key).encode()
            self._groups[key] = {
                rank: self.ranks[rank].host_group(uid, len(key), index) for index, rank in enumerate(key)
            }
        for rank in key:
            self.ranks[rank].host_sync(self._groups[key][rank], at=self._clocks[rank])
            self._clocks[rank] = 0

    def step(self, rank: int) -> None:
        self.ranks[rank].step(at=self._clocks[rank])

    def finish(self) -> None:
        for rank in self.ranks:
            rank.bye(peak_allocated_bytes=1 << 30, peak_reserved_bytes=2 << 30)

    def _comm(self, members: Sequence[int]) -> dict[int, int]:
        key = tuple(members)
        if key not in self._comms:
            uid = b"".join(rank.to_bytes(1, "little") for rank in key) + b"\xff"
            self._comms[key] = {
                rank: self.ranks[rank].comm(uid.ljust(8, b"\0"), len(key), index, rank % self.gpus_per_node)
                for index, rank in enumerate(key)
            }
        return self._comms[key]
