"""Ranks without CUDA or PyTorch: builds the frames that a rank's runtime would send (docs/protocol.md)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from phantora_py.fields import Fields
from phantora_py.frames import FrameReader, FrameType, frame
from phantora_py.recording import Recorder
from phantora_py.signature import Signature

KERNEL, EVENT_RECORD, STREAM_WAIT, COLLECTIVE, SYNC, QUERY, EVENT_TIME, HOST_SYNC, CLOCK, MARK = range(1, 11)
LANE_BEGIN, LANE_END, MEMORY, EVENT_FORGET, ABORT = range(11, 16)
STEP_ENDED, STEP_BEGAN = 1, 2


@dataclass(frozen=True)
class FakeCost:
    duration_ns: int
    engine: str = "fake"
    kind: str = "elementwise"
    guessed: bool = False
    busy_ns: int = 0
    doubt: str = ""


class FakeEngine:
    """Costs by the kernel's name: "gemm:1000" is a GEMM of 1000 ns."""

    later_launch_ns = 5

    def cost(self, signature: Signature) -> FakeCost:
        kind, _, duration_ns = signature.kernel.partition(":")
        return FakeCost(
            int(duration_ns or 100), "fake", kind, kind in ("strange", "doubted"), doubt="why" * (kind == "doubted")
        )


def packed(**table: Any) -> bytes:
    return bytes(msgpack.packb(table))


def record(kind: int, a: int = 0, b: int = 0, *, at: int = 0, stream: int = 0, lane: int = 0, flags: int = 0) -> bytes:
    """One record; `at` is its delta_ns."""
    return struct.pack("<BBHIQQQ", kind, flags, lane, stream, at, a, b)


@dataclass
class FakeRank:
    """Collects frames as (type, payload). Definitions are made when they are needed."""

    rank: int
    frames: list[tuple[FrameType, bytes]] = field(default_factory=list)
    _kernels: dict[str, int] = field(default_factory=dict)
    _collectives: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _comms: int = 0
    _groups: int = 0
    _requests: int = 0
    _streams: set[int] = field(default_factory=set)

    def define(self, kind: str, **table: Any) -> None:
        self.frames.append((FrameType.DEFINE, packed(t=kind, **table)))

    def stream(self, stream: int = 0, device: int = 0) -> None:
        if stream not in self._streams:
            self._streams.add(stream)
            self.define("stream", id=stream, device=device, priority=0)

    def comm(self, uid: bytes, size: int, index: int, device: int, **more: Any) -> int:
        self._comms += 1
        data = int.from_bytes(uid[:8].ljust(8, b"\0"), "little")
        self.define("comm", id=self._comms, uid=uid, size=size, index=index, device=device, data=data, **more)
        return self._comms

    def host_group(self, uid: bytes, size: int, index: int, what: str = "gloo:barrier") -> int:
        self._groups += 1
        self.define("host_group", id=self._groups, uid=uid, size=size, index=index, what=what)
        return self._groups

    def batch(self, *records: bytes) -> None:
        self.frames.append((FrameType.BATCH, b"".join(records)))

    def kernel(self, name: str, *, at: int, stream: int = 0, op: str = "", tensors: Any = (), flags: int = 0) -> None:
        """`name` tells FakeEngine the kind and the duration."""
        self.stream(stream)
        key = f"{op} {name}"
        if key not in self._kernels:
            self._kernels[key] = len(self._kernels) + 1
            self.define("kernel", id=self._kernels[key], op=op, kernel=name, tensors=list(tensors))
        self.batch(record(KERNEL, self._kernels[key], at=at, stream=stream, flags=flags))

    def collective(self, comm: int, op: str, size_bytes: int, *, at: int, stream: int = 0, **more: Any) -> None:
        self.stream(stream)
        key = (comm, op, size_bytes, *sorted(more.items()))
        if key not in self._collectives:
            self._collectives[key] = len(self._collectives) + 1
            self.define(
                "collective",
                id=self._collectives[key],
                comm=comm,
                op=op,
                bytes=size_bytes,
                count=size_bytes // 4,
                **{"dtype": "float32", **more},
            )
        self.batch(record(COLLECTIVE, self._collectives[key], at=at, stream=stream))

    def group(
        self, comm: int, peers: list[list[Any]], *, at: int, stream: int = 0, op: str = "group", **more: Any
    ) -> None:
        """Sends and receives: [["send" | "recv", member, bytes], ...]."""
        self.stream(stream)
        number = 1000 + len(self._collectives)
        self._collectives[number,] = number
        self.define("collective", id=number, comm=comm, op=op, peers=peers, **more)
        self.batch(record(COLLECTIVE, number, at=at, stream=stream))

    def abort(self, comm: int, *, at: int) -> None:
        self.define("comm_abort", id=comm)
        self.batch(record(ABORT, comm, at=at))

    def sync(self, *, at: int, stream: int = 0) -> int:
        """Waits for the stream; returns the request's number."""
        self.stream(stream)
        self._requests += 1
        self.batch(record(SYNC, 0, self._requests, at=at, stream=stream))
        return self._requests

    def host_sync(self, group: int, *, at: int) -> int:
        self._requests += 1
        self.batch(record(HOST_SYNC, group, self._requests, at=at))
        return self._requests

    def step(self, *, at: int, stream: int = 0, optimizer: int = 0) -> None:
        """An optimizer's step of one kernel of 10 ns."""
        self.stream(stream)
        self.batch(record(MARK, STEP_BEGAN, optimizer, at=at, stream=stream))
        self.kernel("elementwise:10", at=at, stream=stream, op="aten::_fused_adamw_")
        self.batch(record(MARK, STEP_ENDED, optimizer, at=at, stream=stream))

    def bye(self, **table: Any) -> None:
        self.frames.append((FrameType.BYE, packed(**table)))

    def hello(self) -> bytes:
        return frame(FrameType.HELLO, packed(protocol=1, role="rank", rank=self.rank, pid=1, argv=["fake"]))


def write_recording(recorder: Recorder, placements: Any, ranks: list[FakeRank]) -> None:
    recorder.job(placements)
    for rank in ranks:
        recorder.frame(rank.rank, FrameType.HELLO, rank.hello()[8:])
        for kind, payload in rank.frames:
            recorder.frame(rank.rank, kind, payload)
    recorder.close()


class Peer:
    """A connection to a simulator's socket."""

    def __init__(self, run_dir: Path, timeout_s: float = 20.0) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout_s)
        self.socket.connect(str(run_dir / "sim.sock"))
        self._reader = FrameReader()
        self._received: list[tuple[int, bytes]] = []

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frames(self, frames: list[tuple[FrameType, bytes]]) -> None:
        for kind, payload in frames:
            self.send(frame(kind, payload))

    def receive(self) -> tuple[int, bytes]:
        """The next frame. Raises EOFError when the simulator has closed the connection."""
        while not self._received:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError
            self._received += self._reader.feed(data)
        return self._received.pop(0)

    def reply(self) -> tuple[int, int, bool]:
        """The next frame, which must be a REPLY: (request, value, speculated)."""
        kind, payload = self.receive()
        assert kind == FrameType.REPLY, (kind, payload)
        request, value, flags, _zero = struct.unpack("<QqII", payload)
        return request, value, bool(flags & 1)

    def is_closed(self) -> bool:
        """Waits for the simulator to close the connection."""
        try:
            self.receive()
        except EOFError:
            return True
        return False

    def close(self) -> None:
        self.socket.close()


def join_as_launcher(run_dir: Path, world_size: int, per_node: int = 8, pids: dict[int, int] | None = None) -> Peer:
    peer = Peer(run_dir)
    peer.send(frame(FrameType.HELLO, packed(protocol=1, role="launcher", rank=0, pid=1, argv=[])))
    ranks = [
        {"rank": rank, "node": rank // per_node, "local_rank": rank % per_node, "pid": (pids or {}).get(rank, 0)}
        for rank in range(world_size)
    ]
    peer.send(frame(FrameType.JOB, packed(world_size=world_size, ranks=ranks)))
    return peer


def decoded(payload: bytes) -> dict[str, Any]:
    return Fields.decode(payload, "a map").table
