"""Says in the job's own words what the core says in numbers: ranks for members, operations for definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from phantora_py.catalogue import Catalogue

_COMM = re.compile(r"\bcomm (\d+)")
_DEFINITION = re.compile(r"\(rank (\d+), definition (\d+)\)")
_RANKS_SHOWN = 16


def explain(text: str, comm_ranks: Mapping[int, Sequence[int | None]], catalogue: Catalogue) -> str:
    """`comm_ranks`: by the core's number, the global ranks of each communicator in member order."""

    def comm(found: re.Match[str]) -> str:
        ranks = comm_ranks.get(int(found[1]))
        return f"the communicator of {_ranks(ranks)}" if ranks is not None else found[0]

    def definition(found: re.Match[str]) -> str:
        info = catalogue.collectives[int(found[1])].get(int(found[2]))
        if info is None:
            return found[0]
        return f"(rank {found[1]}: {info.op} of {info.bytes:,} bytes, {info.dtype or 'any type'})"

    return _DEFINITION.sub(definition, _COMM.sub(comm, text))


def _ranks(ranks: Sequence[int | None]) -> str:
    shown = ", ".join("?" if rank is None else str(rank) for rank in ranks[:_RANKS_SHOWN])
    more = f" and {len(ranks) - _RANKS_SHOWN} more" if len(ranks) > _RANKS_SHOWN else ""
    return f"ranks {shown}{more}"
