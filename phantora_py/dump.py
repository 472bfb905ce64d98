"""A recorded stream of frames as text, one line a frame or record, for people and diffs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from phantora_py.fields import Fields
from phantora_py.frames import EVERYONE, FrameType, ProtocolError
from phantora_py.recording import read_frames

_RECORD = struct.Struct("<BBHIQQQ")
_DATA = struct.Struct("<QQIIII")
_KINDS = {
    1: "KERNEL",
    2: "EVENT_RECORD",
    3: "STREAM_WAIT",
    4: "COLLECTIVE",
    5: "SYNC",
    6: "QUERY",
    7: "EVENT_TIME",
    8: "HOST_SYNC",
    9: "CLOCK",
    10: "MARK",
    11: "LANE_BEGIN",
    12: "LANE_END",
    13: "MEMORY",
    14: "EVENT_FORGET",
    15: "ABORT",
}
_FRAME_NAMES = {int(kind): kind.name for kind in FrameType}
_MAPS = {FrameType.HELLO, FrameType.DEFINE, FrameType.BYE, FrameType.JOB, FrameType.EXITED}


def dump(path: Path) -> Iterator[str]:
    """Lines that describe the frames in `path`. Raises OSError, ProtocolError (for what is not a recorded stream)."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file\n  hint: a recording's streams are its rank-N.bin files")
    for number, (kind, payload) in enumerate(read_frames(path)):
        name = _FRAME_NAMES.get(kind, f"type {kind}")
        yield f"{number} {name} {len(payload)} bytes{_details(kind, payload)}"
        if kind == FrameType.BATCH:
            yield from _records(payload)


def _details(kind: int, payload: bytes) -> str:
    if kind in _MAPS:
        table = Fields.decode(payload, "a map").table
        return "".join(f" {key}={_value(value)}" for key, value in table.items())
    if kind == FrameType.DATA and len(payload) >= _DATA.size:
        comm, sequence, source, target, flags, _zero = _DATA.unpack_from(payload)
        to = "everyone" if target == EVERYONE else target
        return f" comm={comm:#x} sequence={sequence} from={source} to={to} known={flags & 1}"
    return ""


def _value(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)


def _records(payload: bytes) -> Iterator[str]:
    if len(payload) % _RECORD.size:
        raise ProtocolError(f"BATCH of {len(payload)} bytes, not a multiple of {_RECORD.size}")
    for kind, flags, lane, stream, delta_ns, a, b in _RECORD.iter_unpack(payload):
        name = _KINDS.get(kind, f"kind {kind}")
        yield f"  {name} lane={lane} stream={stream} +{delta_ns} a={a} b={b}" + (f" flags={flags}" if flags else "")
