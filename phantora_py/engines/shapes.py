"""Arithmetic of shapes that several rules share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phantora_py.signature import Tensor


def broadcast(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Shape that several shapes broadcast to; a size that does not fit counts as its larger one."""
    result: list[int] = []
    for shape in shapes:
        result = [1] * (len(shape) - len(result)) + result
        for i, size in enumerate(reversed(shape), 1):
            result[-i] = size if result[-i] == 1 else max(result[-i], size) if size != 1 else result[-i]
    return tuple(result)


def promoted_bytes(tensors: Sequence[Tensor]) -> int:
    """Element size of a result: zero-dimensional tensors do not widen it unless there are no others."""
    widths = [t.element_bytes for t in tensors if t.shape] or [t.element_bytes for t in tensors]
    return max(widths, default=4)
