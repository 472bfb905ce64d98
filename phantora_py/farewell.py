"""What a rank says of itself at its end (docs/protocol.md, "Farewell")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from phantora_py.fields import Fields


@dataclass(frozen=True)
class UnknownRead:
    """A place where the script read bytes of device memory that nothing had computed."""

    op: str
    site: str
    count: int
    bytes: int


@dataclass(frozen=True)
class Farewell:
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    unknown_reads: tuple[UnknownRead, ...] = ()
    guessed: tuple[str, ...] = ()

    @classmethod
    def read(cls, payload: bytes) -> Farewell:
        """Reads a BYE payload. Raises ProtocolError."""
        fields = Fields.decode(payload, "BYE")
        reads = (
            UnknownRead(read.text("op"), read.text("site"), read.wide("count"), read.wide("bytes"))
            for read in fields.maps("unknown_reads", [])
        )
        return cls(
            fields.wide("peak_allocated_bytes") if "peak_allocated_bytes" in fields else None,
            fields.wide("peak_reserved_bytes") if "peak_reserved_bytes" in fields else None,
            tuple(reads),
            tuple(fields.texts("guessed", [])),
        )


def unknown_reads(farewells: Iterable[Farewell]) -> list[UnknownRead]:
    """All ranks' unknown reads, summed by op and site, in that order."""
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for farewell in farewells:
        for read in farewell.unknown_reads:
            counts[read.op, read.site] += read.count
            sizes[read.op, read.site] += read.bytes
    return [UnknownRead(op, site, counts[op, site], sizes[op, site]) for op, site in sorted(counts)]
