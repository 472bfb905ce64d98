"""The names of what NCCL chooses between."""

from __future__ import annotations

from enum import Enum


class Algorithm(Enum):
    """How the members of a collective pass data on; the value is NCCL's name."""

    TREE = "Tree"
    RING = "Ring"
    COLLNET_DIRECT = "CollNetDirect"
    COLLNET_CHAIN = "CollNetChain"
    NVLS = "NVLS"
    NVLS_TREE = "NVLSTree"
    PAT = "PAT"

    @property
    def label(self) -> str:
        """As reports and traces show it."""
        return self.name if self is Algorithm.PAT else str(self.value).lower()

    @property
    def is_nvls(self) -> bool:
        return self in (Algorithm.NVLS, Algorithm.NVLS_TREE)

    @property
    def is_collnet(self) -> bool:
        return self in (Algorithm.COLLNET_DIRECT, Algorithm.COLLNET_CHAIN)


class Protocol(Enum):
    """How a step writes: flags with every word, with every 128 bytes, or by chunks."""

    LL = "LL"
    LL128 = "LL128"
    SIMPLE = "Simple"

    @property
    def label(self) -> str:
        return self.value

    @property
    def number(self) -> int:
        """Place in a table of three."""
        return _NUMBERS[self]

    @property
    def wire_overhead(self) -> float:
        """Bytes on the wire for a byte of data."""
        return _OVERHEADS[self.number]


_NUMBERS = {protocol: number for number, protocol in enumerate(Protocol)}
_OVERHEADS = (2.0, 128 / 120, 1.0)

FUNCTIONS = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
}
"""Collectives that the tuner decides on → NCCL's name."""

ALGORITHMS_OF = {
    "all_reduce": tuple(algorithm for algorithm in Algorithm if algorithm is not Algorithm.PAT),
    "all_gather": (Algorithm.RING, Algorithm.COLLNET_DIRECT, Algorithm.NVLS, Algorithm.PAT),
    "reduce_scatter": (Algorithm.RING, Algorithm.COLLNET_DIRECT, Algorithm.NVLS, Algorithm.PAT),
    "broadcast": (Algorithm.RING,),
    "reduce": (Algorithm.RING,),
}
"""What NCCL has for each of them."""


def passes(op: str) -> int:
    """How often an op goes round: an all-reduce is a reduce-scatter and an all-gather."""
    return 2 if op == "all_reduce" else 1
