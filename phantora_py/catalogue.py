"""What the ids in the timeline mean: kernels and collectives of each rank, and their properties as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phantora_py.collectives import Plan
from phantora_py.op_times import Op
from phantora_py.tokens import Lookup, Lookups

FORWARD_KINDS = frozenset({"gemm", "attention", "attention_backward", "convolution", "embedding", "recurrent"})
"""Kinds of cost (phantora_py.engines) that stand for forward or backward work: see docs/report.md, "Iterations"."""


@dataclass(frozen=True)
class KernelInfo:
    """One kernel signature with its cost, shared by all ranks that have it."""

    op: str
    kernel: str
    shapes: str
    """Types and shapes of the tensors, for people."""
    engine: str
    kind: str
    guessed: bool
    """The engine does not know the op."""
    duration_ns: int
    share: int
    """Of its GPU that it fills, in 1/1024."""
    lookup: Lookup | None
    """Of an embedding's forward."""
    fused: str = ""
    """Ops that a generated kernel was fused from."""
    doubt: str = ""
    """What the engine guesses about an op that it does know."""

    @property
    def name(self) -> str:
        return self.op or self.kernel or "kernel"


@dataclass(frozen=True)
class CollectiveInfo:
    """One collective definition of a rank."""

    op: str
    bytes: int
    dtype: str
    ranks: tuple[int, ...]
    """Global ranks of the communicator, in member order."""
    algorithm: str
    protocol: str
    call: str
    """The whole call, for people: "broadcast of 1,024 float32 (4,096 bytes), root rank 1"."""
    carried: tuple[Plan, ...]
    """What the call puts on the links, said by one member of a collective, and of a group for its sends."""
    peers: tuple[tuple[str, int, int], ...] = ()
    """Of a group or stores: ("send" | "recv", global rank, bytes)."""

    @property
    def name(self) -> str:
        return self.op

    @property
    def is_signals(self) -> bool:
        """Stores that tell who waits for them something, and move nothing."""
        return self.op == "stores" and self.bytes == 0


class Catalogue:
    """Definitions by (rank, id), with the columns that the report looks up for whole batches of the timeline."""

    def __init__(self, ranks: int) -> None:
        self.kernels: list[dict[int, KernelInfo]] = [{} for _ in range(ranks)]
        self.collectives: list[dict[int, CollectiveInfo]] = [{} for _ in range(ranks)]
        self.lookups = [Lookups() for _ in range(ranks)]
        self.engines: list[str] = []
        self.ops: list[Op] = []
        self._op_numbers: dict[Op, int] = {}
        self._engine_of = _Table(ranks, np.int16)
        self._op_of_kernel = _Table(ranks, np.int32)
        self._op_of_collective = _Table(ranks, np.int32)
        self._is_forward = _Table(ranks, np.bool_)
        self._is_lookup = _Table(ranks, np.bool_)

    def add_kernel(self, rank: int, signature: int, info: KernelInfo) -> None:
        if info.engine not in self.engines:
            self.engines.append(info.engine)
        self.kernels[rank][signature] = info
        self._engine_of.put(rank, signature, self.engines.index(info.engine))
        self._op_of_kernel.put(rank, signature, self._op_number(Op("kernel", info.name)))
        self._is_forward.put(rank, signature, info.kind in FORWARD_KINDS)
        self._is_lookup.put(rank, signature, info.lookup is not None)
        self.lookups[rank].kernel(signature, info.op, info.lookup)

    def add_collective(self, rank: int, definition: int, info: CollectiveInfo) -> None:
        self.collectives[rank][definition] = info
        self._op_of_collective.put(rank, definition, self._op_number(Op("collective", info.name)))

    def engine_of(self, ranks: NDArray[np.int32], signatures: NDArray[np.uint32]) -> NDArray[Any]:
        """Index into `engines`; all arguments name kernels."""
        return self._engine_of.get(ranks, signatures)

    def op_of(
        self, ranks: NDArray[np.int32], definitions: NDArray[np.uint32], is_kernel: NDArray[np.bool_]
    ) -> NDArray[np.int32]:
        """Index into `ops` of kernels and collectives."""
        ops = np.zeros(len(ranks), np.int32)
        for table, chosen in ((self._op_of_kernel, is_kernel), (self._op_of_collective, ~is_kernel)):
            ops[chosen] = table.get(ranks[chosen], definitions[chosen])
        return ops

    def is_forward(self, ranks: NDArray[np.int32], signatures: NDArray[np.uint32]) -> NDArray[Any]:
        return self._is_forward.get(ranks, signatures)

    def is_lookup(self, ranks: NDArray[np.int32], signatures: NDArray[np.uint32]) -> NDArray[Any]:
        return self._is_lookup.get(ranks, signatures)

    def _op_number(self, op: Op) -> int:
        number = self._op_numbers.setdefault(op, len(self.ops))
        if number == len(self.ops):
            self.ops.append(op)
        return number


class _Table:
    """A (rank, id) array that grows."""

    def __init__(self, ranks: int, dtype: Any) -> None:
        self._values = np.zeros((ranks, 64), dtype)

    def put(self, rank: int, index: int, value: int) -> None:
        width = self._values.shape[1]
        if index >= width:
            more = max(width, index + 1 - width)
            self._values = np.pad(self._values, ((0, 0), (0, more)))
        self._values[rank, index] = value

    def get(self, ranks: NDArray[np.int32], indices: NDArray[np.uint32]) -> NDArray[Any]:
        return self._values[ranks, indices]
