"""Damages what was right: bytes of any kind, and records in particular. All of it follows from a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

RECORD_BYTES = 32
EDGES = (0, 1, 2, 15, 255, 2**16 - 1, 2**31, 2**32 - 1, 2**62 - 1, 2**62, 2**63, 2**64 - 1)
FIELDS = ((0, "B"), (1, "B"), (2, "H"), (4, "I"), (8, "Q"), (16, "Q"), (24, "Q"))
"""Offset and format of each field of a record."""


class Mutation:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def bytes(self, data: bytes) -> bytes:
        """Something like `data`, in one to three steps."""
        return self._steps(data, (self._flip, self._flip, self._cut, self._grow, self._overwrite, self._noise))

    def records(self, batch: bytes) -> bytes:
        """Something like the batch, in one to three steps; mostly whole records."""
        kinds = (self._edge, self._edge, self._edge, self._repeat, self._swap, self._drop, self._flip, self._cut)
        return self._steps(batch, kinds)

    def _steps(self, data: bytes, kinds: tuple[Callable[[bytearray], None], ...]) -> bytes:
        damaged = bytearray(data)
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            self.chance.choice(kinds)(damaged)
        return bytes(damaged)

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)

    def _cut(self, data: bytearray) -> None:
        del data[self.chance.randrange(len(data) + 1) :]

    def _grow(self, data: bytearray) -> None:
        data += self.chance.randbytes(self.chance.randrange(1, 40))

    def _overwrite(self, data: bytearray) -> None:
        start = self.chance.randrange(len(data) + 1)
        data[start : start + 4] = self.chance.choice(EDGES).to_bytes(8, "little")[:4]

    def _noise(self, data: bytearray) -> None:
        data[:] = self.chance.randbytes(self.chance.randrange(200))

    def _edge(self, batch: bytearray) -> None:
        """A field of a record at the edge of what it may be, or a little beside what it was."""
        offset, form = self.chance.choice(FIELDS)
        place = self._record(batch) + offset
        size = struct.calcsize(form)
        if place + size > len(batch):
            return
        (value,) = struct.unpack_from(f"<{form}", batch, place)
        value = self.chance.choice((*EDGES, value + 1, value - 1, value * 2)) % 2 ** (8 * size)
        struct.pack_into(f"<{form}", batch, place, value)

    def _repeat(self, batch: bytearray) -> None:
        start = self._record(batch)
        batch[start:start] = batch[start : start + RECORD_BYTES]

    def _swap(self, batch: bytearray) -> None:
        first, second = sorted((self._record(batch), self._record(batch)))
        if first != second and second + RECORD_BYTES <= len(batch):
            one = batch[first : first + RECORD_BYTES]
            batch[first : first + RECORD_BYTES] = batch[second : second + RECORD_BYTES]
            batch[second : second + RECORD_BYTES] = one

    def _drop(self, batch: bytearray) -> None:
        start = self._record(batch)
        del batch[start : start + RECORD_BYTES]

    def _record(self, batch: bytearray) -> int:
        """Where one of its records begins."""
        return self.chance.randrange(max(1, len(batch) // RECORD_BYTES)) * RECORD_BYTES
