"""Tells the tokens of a job from the embeddings that its ranks look up.

*Which look-ups.* Launches of `aten::embedding`, whose second argument holds the indices. A model may have several
tables (positions, token types); the one with most rows is the vocabulary.

*Which ranks look up the same tokens.* Those of a tensor-parallel group do. What they do with them tells: their forward
pass sums activations over the group, of the size that was looked up, right after a vocabulary-parallel table or at the
latest after the first row-parallel matrix. Data-parallel ranks sum gradients only, context-parallel ones exchange keys
and values, pipeline stages send to each other. So an all-reduce or reduce-scatter of just as many elements as were
looked up, first used after the look-up and before any backward op, means that its group looks up the same tokens. They
count at its first member.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phantora_py.signature import DTYPE_BYTES, Signature

_SUMS = ("all_reduce", "reduce_scatter")


@dataclass(frozen=True)
class Lookup:
    """One kind of look-up."""

    indices: int
    rows: int
    """Of the table."""
    width: int

    @classmethod
    def of(cls, signature: Signature) -> Lookup | None:
        if signature.base_op != "embedding" or len(signature.tensors) < 2 or len(signature.tensors[0].shape) != 2:
            return None
        table, indices = signature.tensors[:2]
        return cls(indices.numel, *table.shape)


class Lookups:
    """The look-ups of one rank, from its definitions, whose order is that of first use."""

    def __init__(self) -> None:
        self._all: dict[int, Lookup] = {}
        self._in_forward: set[int] = set()
        """Those after which no backward op has come."""
        self._counted_elsewhere: set[int] = set()

    def kernel(self, number: int, op: str, lookup: Lookup | None) -> None:
        """The rank has defined signature `number`."""
        if "_backward" in op:
            self._in_forward.clear()
        if lookup:
            self._all[number] = lookup
            self._in_forward.add(number)

    def collective(self, op: str, size_bytes: int, dtype: str, member: int) -> None:
        """The rank, as `member` of several, has defined an operation; `size_bytes` are those of the whole buffer."""
        if op not in _SUMS or member == 0 or dtype not in DTYPE_BYTES:
            return
        for number in self._in_forward:
            lookup = self._all[number]
            if lookup.indices * lookup.width * DTYPE_BYTES[dtype] == size_bytes:
                self._counted_elsewhere.add(number)

    def tokens(self, launches: Mapping[int, int]) -> int:
        """What counts for this rank when its look-ups were launched so many times."""
        vocabulary = max((lookup.rows for lookup in self._all.values()), default=0)
        return sum(
            self._all[number].indices * times
            for number, times in launches.items()
            if self._all[number].rows == vocabulary and number not in self._counted_elsewhere
        )
