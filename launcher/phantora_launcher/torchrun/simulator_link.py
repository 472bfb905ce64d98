"""The front's connection to the simulator: JOB before the ranks start, EXITED when one has ended."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import msgpack

from phantora_launcher.errors import LaunchError
from phantora_launcher.run_folder import SOCKET
from phantora_launcher.torchrun.plan import RankPlan
from phantora_py.frames import FrameType, frame

_PROTOCOL = 1


class SimulatorLink:
    """Raises LaunchError where no simulator answers."""

    def __init__(self, run_dir: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(run_dir / SOCKET))
        except OSError as error:
            self._socket.close()
            raise LaunchError(
                f"the simulator of {run_dir} does not answer ({error.strerror})",
                "one `phantora run` simulates one job; start a second one under its own `phantora run`",
            ) from error
        self._send(
            FrameType.HELLO,
            {"protocol": _PROTOCOL, "role": "launcher", "rank": 0, "pid": os.getpid(), "argv": sys.argv},
        )

    def __enter__(self) -> SimulatorLink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def job(self, ranks: Sequence[RankPlan], pids: Sequence[int]) -> None:
        placed = [
            {"rank": rank.rank, "node": rank.node, "local_rank": rank.local_rank, "pid": pid}
            for rank, pid in zip(ranks, pids, strict=True)
        ]
        self._send(FrameType.JOB, {"world_size": len(placed), "ranks": placed})

    def exited(self, rank: int, code: int) -> None:
        with contextlib.suppress(OSError):  # a simulator that has ended needs no telling
            self._send(FrameType.EXITED, {"rank": rank, "code": code})

    def _send(self, kind: FrameType, fields: object) -> None:
        self._socket.sendall(frame(kind, msgpack.packb(fields)))
