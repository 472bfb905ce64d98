"""Bytes that ops move which pick or store by indices: what they touch of the large tensor, the other side, the indices.

Memory moves in sectors, so that values which lie alone cost a sector each. Indices are taken to differ; what they touch
is no more than the tensor has, unless more is picked than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from phantora_py.engines.shapes import broadcast
from phantora_py.signature import Signature, Tensor

SECTOR_BYTES = 32
"""Least that a scattered access moves."""
Bytes = Callable[[Signature], float]
_MASKS = ("bool", "uint8")


def index_bytes(signature: Signature) -> float:
    """index: x[i, :, j]."""
    source = signature.tensors[0]
    present = _present(signature)
    count = sum(present) if present else len(_read(signature)) - 1
    indices = signature.tensors[1 : 1 + count]
    dims = _indexed_dims(indices, present)
    elements = _picks(indices) * _rest(source, dims)
    return _touched(source, dims, elements) + elements * source.element_bytes + _stored(indices)


def index_put_bytes(signature: Signature) -> float:
    """index_put_: x[i, :, j] = values, which may be broadcast, or +=."""
    target = signature.tensors[0]
    present = _present(signature)
    count = sum(present) if present else len(signature.tensors) - 2
    indices, values = signature.tensors[1 : 1 + count], signature.tensors[1 + count]
    dims = _indexed_dims(indices, present)
    picks, rest = _picks(indices), _rest(target, dims)
    if any(index.dtype in _MASKS for index in indices) and values.numel > rest:
        picks = values.numel // max(rest, 1)  # as many as the masks leave
    touched = _touched(target, dims, picks * rest)
    return (2 if accumulates(signature) else 1) * touched + values.stored_bytes + _stored(indices)


def accumulates(signature: Signature) -> bool:
    """Whether what an op stores is added to what was there: index_put_ and put_ have a flag for it."""
    flag = next((scalar for scalar in signature.scalars if isinstance(scalar, bool)), False)
    return flag if "put" in signature.base_op else "add" in signature.base_op or "reduce" in signature.op


def select_bytes(signature: Signature) -> float:
    """index_select: slices of one dimension; embedding: rows."""
    source, index = signature.tensors[:2]
    dim = _dim(signature) if "select" in signature.base_op else 0
    elements = index.numel * _rest(source, (dim,))
    return _touched(source, (dim,), elements) + elements * source.element_bytes + index.stored_bytes


def store_bytes(signature: Signature) -> float:
    """index_add_, index_copy_, index_reduce_: slices of one dimension come from a tensor; index_fill_: from a value."""
    target, index = signature.tensors[:2]
    values = [t for t in _read(signature) if t is not target and t is not index]
    dim = _dim(signature)
    touched = _touched(target, (dim,), index.numel * _rest(target, (dim,)))
    return (2 if accumulates(signature) else 1) * touched + _stored(values) + index.stored_bytes


def gather_bytes(signature: Signature) -> float:
    """gather, take: an element for each index."""
    source, index = signature.tensors[:2]
    return _touched_elements(source, index) + index.numel * source.element_bytes + index.stored_bytes


def scatter_bytes(signature: Signature) -> float:
    """scatter_, scatter_add_, put_: an element for each index, from a tensor or a value."""
    target, index = signature.tensors[:2]
    values = [t for t in _read(signature) if t is not target and t is not index]
    taken = sum(min(t.stored_bytes, index.numel * t.element_bytes) for t in values)
    touched = _touched_elements(target, index)
    return (2 if accumulates(signature) else 1) * touched + taken + index.stored_bytes


def bag_bytes(signature: Signature) -> float:
    """_embedding_bag: rows picked, one row written for each bag, and for each index the bag that it is in."""
    table, index, offsets = signature.tensors[:3]
    elements = index.numel * _rest(table, (0,))
    written = offsets.numel * _rest(table, (0,)) * table.element_bytes + index.bytes
    return _touched(table, (0,), elements) + written + _stored(_read(signature)[1:])


# --- which dimensions, and how much of them ---------------------------------------------------------------------------


def _read(signature: Signature) -> list[Tensor]:
    return [tensor for tensor in signature.tensors if tensor.role == "in"]


def _stored(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.stored_bytes for tensor in tensors)


def _present(signature: Signature) -> tuple[bool, ...]:
    """By dimension, whether there is an index; () if nothing tells."""
    for scalar in signature.scalars:
        if isinstance(scalar, tuple) and scalar and all(isinstance(item, bool) for item in scalar):
            return tuple(map(bool, scalar))
    return ()


def _dim(signature: Signature) -> int:
    """The only plain integer of such an op that is not a value, and the first."""
    dim = next((n for n in signature.scalars if isinstance(n, int) and not isinstance(n, bool)), 0)
    return dim % max(len(signature.tensors[0].shape), 1)


def _indexed_dims(indices: Sequence[Tensor], present: Sequence[bool]) -> list[int]:
    """A mask stands for as many dimensions as it has itself."""
    dims: list[int] = []
    remaining = iter(indices)
    dim = 0
    for there in present or [True] * len(indices):
        index = next(remaining) if there else None
        width = len(index.shape) if index and index.dtype in _MASKS else 1
        if index:
            dims += range(dim, dim + width)
        dim += width
    return dims


def _picks(indices: Sequence[Tensor]) -> int:
    """How many places the indices name; of a mask all, as nothing tells how many it leaves."""
    named = math.prod(broadcast(index.shape for index in indices if index.dtype not in _MASKS))
    masked = max((index.numel for index in indices if index.dtype in _MASKS), default=1)
    return masked if named == 1 else named


def _rest(tensor: Tensor, dims: Sequence[int]) -> int:
    """Elements of the dimensions that are not indexed: as many as one place has."""
    return math.prod(size for dim, size in enumerate(tensor.shape) if dim not in dims)


def _touched(tensor: Tensor, dims: Sequence[int], elements: int) -> float:
    """Bytes of the sectors in which `elements` lie, where `dims` are indexed and all of the others taken."""
    run = 1
    for stride, dim in sorted((tensor.strides[dim], dim) for dim, size in enumerate(tensor.shape) if size != 1):
        if dim in dims or stride != run:
            break
        run *= tensor.shape[dim]
    return _sectors(tensor, elements, run)


def _touched_elements(tensor: Tensor, index: Tensor) -> float:
    """An index that is expanded over its last dimension (as PyTorch's embedding makes one) picks whole rows."""
    run = index.shape[-1] if index.shape and index.strides[-1] == 0 else 1
    return _sectors(tensor, index.numel, run)


def _sectors(tensor: Tensor, elements: int, run: int) -> float:
    """Bytes of `elements` in stretches of `run`, each in whole sectors."""
    run_bytes = max(run, 1) * tensor.element_bytes
    picked = elements * tensor.element_bytes
    sectors = math.ceil(run_bytes / SECTOR_BYTES) * SECTOR_BYTES
    return min(picked / run_bytes * sectors, max(tensor.stored_bytes, picked))
