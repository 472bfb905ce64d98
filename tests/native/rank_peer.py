"""A simulator that a test plays: takes one rank's frames and answers its requests by a rule of the test."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

HEADER = struct.Struct("<IHH")
RECORD = struct.Struct("<BBHIQQQ")
HELLO, DEFINE, BATCH, DATA, BYE = range(1, 6)
REPLY, CORRECTION, ABORT = range(64, 67)

KERNEL, EVENT_RECORD, STREAM_WAIT, COLLECTIVE, SYNC, QUERY, EVENT_TIME, HOST_SYNC, CLOCK = range(1, 10)
MARK, LANE_BEGIN, LANE_END, MEMORY, EVENT_FORGET = range(10, 15)
REQUESTS = (SYNC, QUERY, EVENT_TIME, HOST_SYNC)
LATER_LAUNCH = 1
"""Flag of a KERNEL."""


class Record(NamedTuple):
    kind: int
    flags: int
    lane: int
    stream: int
    delta_ns: int
    a: int
    b: int


def frame(kind: int, payload: bytes) -> bytes:
    return HEADER.pack(len(payload), kind, 0) + payload


def reply(request: int, value: int, speculated: bool = False) -> bytes:
    return frame(REPLY, struct.pack("<QqII", request, value, speculated, 0))


def correction(request: int, value: int) -> bytes:
    return frame(CORRECTION, struct.pack("<Qq", request, value))


class RankPeer:
    """Listens in `run_dir`; `answer(record)` gives the bytes to send for a request, or None to hang up."""

    def __init__(self, run_dir: Path, answer: Callable[[Record], bytes | None]) -> None:
        self.hello: dict[str, Any] = {}
        self.bye: dict[str, Any] | None = None
        self.definitions: list[dict[str, Any]] = []
        self.records: list[Record] = []
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(run_dir / "sim.sock"))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Waits until the rank has hung up."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def of_kind(self, *kinds: int) -> list[Record]:
        return [record for record in self.records if record.kind in kinds]

    def issued(self) -> list[Record]:
        """All records but CLOCK ones, which come when they like."""
        return [record for record in self.records if record.kind != CLOCK]

    def _serve(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as stream:
            while header := stream.read(HEADER.size):
                length, kind, zero = HEADER.unpack(header)
                assert zero == 0
                if not self._take(connection, kind, stream.read(length)):
                    return

    def _take(self, connection: socket.socket, kind: int, payload: bytes) -> bool:
        if kind == HELLO:
            self.hello = msgpack.unpackb(payload)
        elif kind == DEFINE:
            self.definitions.append(msgpack.unpackb(payload))
        elif kind == BYE:
            self.bye = msgpack.unpackb(payload)
        elif kind == BATCH:
            for record in map(Record._make, RECORD.iter_unpack(payload)):
                self.records.append(record)
                if record.kind not in REQUESTS:
                    continue
                answer = self._answer(record)
                if answer is None:
                    return False
                connection.sendall(answer)
        return True
