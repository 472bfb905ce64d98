"""Frames of docs/protocol.md: eight bytes of header, then the payload. Sizes are checked before anything is used."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

MAX_PAYLOAD_BYTES = 16 << 20
_HEADER = struct.Struct("<IHH")
_REPLY = struct.Struct("<QqII")
_CORRECTION = struct.Struct("<Qq")
_DATA = struct.Struct("<QQIIII")
HEADER_BYTES = _HEADER.size
RECORD_BYTES = 32
_ASKING = frozenset({5, 6, 7, 8})
"""Kinds of records that have a reply: SYNC, QUERY, EVENT_TIME, HOST_SYNC."""
SPECULATED = 1
EVERYONE = 0xFFFFFFFF


class FrameType(IntEnum):
    HELLO = 1
    DEFINE = 2
    BATCH = 3
    DATA = 4
    BYE = 5
    JOB = 6
    EXITED = 7
    OUTSIDE = 8
    REPLY = 64
    CORRECTION = 65
    ABORT = 66


class ProtocolError(ValueError):
    """A peer broke a rule of docs/protocol.md; its connection is closed."""


class FrameReader:
    """Cuts a byte stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Bytes of a frame that has not come in full."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yields (type, payload) of every frame that `data` completes.

        Raises ProtocolError as soon as a header is seen that no valid frame has.
        """
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= HEADER_BYTES:
                length, kind, zero = _HEADER.unpack_from(buffer, start)
                if length > MAX_PAYLOAD_BYTES:
                    raise ProtocolError(f"frame of {length} bytes, more than the {MAX_PAYLOAD_BYTES} allowed")
                if zero:
                    raise ProtocolError(f"frame header's last field is {zero}, not 0")
                end = start + HEADER_BYTES + length
                if len(buffer) < end:
                    break
                payload = bytes(memoryview(buffer)[start + HEADER_BYTES : end])
                start = end
                yield kind, payload
        finally:
            del buffer[:start]


def questions(batch: bytes) -> Iterator[tuple[int, int]]:
    """(request, lane) of each record of a BATCH payload that wants a reply."""
    kinds = batch[::RECORD_BYTES]
    if _ASKING.isdisjoint(kinds):
        return
    for number, kind in enumerate(kinds):
        if kind in _ASKING:
            record = batch[number * RECORD_BYTES : (number + 1) * RECORD_BYTES]
            yield int.from_bytes(record[24:32], "little"), int.from_bytes(record[2:4], "little")


def frame(kind: FrameType, payload: bytes) -> bytes:
    """One frame, ready to send."""
    return _HEADER.pack(len(payload), kind, 0) + payload


def reply(request: int, value: int, *, speculated: bool) -> bytes:
    return frame(FrameType.REPLY, _REPLY.pack(request, value, SPECULATED if speculated else 0, 0))


def correction(request: int, value: int) -> bytes:
    return frame(FrameType.CORRECTION, _CORRECTION.pack(request, value))


def abort(text: str) -> bytes:
    return frame(FrameType.ABORT, text.encode("utf-8", "replace")[:MAX_PAYLOAD_BYTES])


def data_address(payload: bytes) -> tuple[int, int, int]:
    """(communicator's DATA number, source, target) of a DATA payload, members by index. Raises ProtocolError."""
    if len(payload) < _DATA.size:
        raise ProtocolError(f"DATA of {len(payload)} bytes is shorter than its header of {_DATA.size}")
    comm, _sequence, source, target, _flags, zero = _DATA.unpack_from(payload)
    if zero:
        raise ProtocolError(f"DATA header's last field is {zero}, not 0")
    return comm, source, target
