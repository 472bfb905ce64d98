"""How large the results of ops are that change the size of images: scaling, pooling, padding, windows, distances."""

from __future__ import annotations

import math
from collections.abc import Callable

from phantora_py.engines.shapes import broadcast
from phantora_py.signature import Signature

_BACKWARD = "_backward"
Sizes = tuple[int, ...]


def find_elements(signature: Signature) -> int | None:
    """Elements of the first result; None for any other op, or if its arguments make no sense."""
    name = signature.base_op
    backward = name.endswith(_BACKWARD)
    rule = _RULES.get(name.removesuffix(_BACKWARD))
    if rule is None:
        return None
    try:
        if not backward:
            return rule(signature)
        return math.prod(_lists(signature)[1]) if rule is _scaled else signature.tensors[1].numel
    except (IndexError, ValueError, ZeroDivisionError):
        return None


def only_gives_shape(signature: Signature) -> bool:
    """Whether the op's second tensor is the input of a forward pass, of which it takes the shape alone."""
    name = signature.base_op
    rule = _RULES.get(name.removesuffix(_BACKWARD))
    return name.endswith(_BACKWARD) and rule in (_pooled, _adapted, _padded)


def runs(signature: Signature) -> int:
    """Runs of neighbours in a row of the input that an element of the result is made of; 0: of all that is near."""
    name = signature.base_op
    return 0 if name.endswith(("_aa", _BACKWARD)) else next((n for part, n in _RUNS.items() if part in name), 0)


_RUNS = {
    "nearest": 1,
    "linear1d": 1,
    "bilinear2d": 2,
    "trilinear3d": 4,
    "bicubic2d": 4,
    "grid_sampler_2d": 2,
    "grid_sampler_3d": 4,
}


def _lists(signature: Signature) -> list[Sizes]:
    lists = [scalar for scalar in signature.scalars if isinstance(scalar, tuple)]
    return [tuple(n for n in sizes if isinstance(n, int)) for sizes in lists]


def _scaled(signature: Signature) -> int:
    """The first list has the new sizes of the last dimensions."""
    sizes = _lists(signature)[0]
    return math.prod(signature.tensors[0].shape[: -len(sizes)]) * math.prod(sizes)


def _adapted(signature: Signature) -> int:
    """As scaled, but backward it has the input instead of its sizes."""
    return _scaled(signature)


def _pooled(signature: Signature) -> int:
    """Kernel, stride (none: as the kernel), padding, dilation; then whether to round up."""
    kernel, stride, padding, dilation = [*_lists(signature), (), (), ()][:4]
    rounds_up = next((scalar for scalar in signature.scalars if isinstance(scalar, bool)), False)
    shape = signature.tensors[0].shape
    dims = 3 if "3d" in signature.base_op else 2
    counts = []
    for i, side in enumerate(shape[-dims:]):
        taps = _at(kernel, i, 1)
        free = side + 2 * _at(padding, i, 0) - _at(dilation, i, 1) * (taps - 1) - 1
        steps = _at(stride, i, taps)
        counts.append((free + (steps - 1 if rounds_up else 0)) // steps + 1)
    return math.prod(shape[:-dims]) * math.prod(counts)


def _at(sizes: Sizes, i: int, default: int) -> int:
    """One size may stand for all."""
    return sizes[min(i, len(sizes) - 1)] if sizes else default


def _padded(signature: Signature) -> int:
    """Before and after each dimension, the last one first."""
    around = _lists(signature)[0]
    sides = list(signature.tensors[0].shape)
    for i, (before, after) in enumerate(zip(around[::2], around[1::2], strict=True), 1):
        sides[-i] += before + after
    return math.prod(sides)


def _windows(signature: Signature) -> int:
    """im2col: all channels of each window."""
    kernel, dilation, padding, stride = _lists(signature)[:4]
    shape = signature.tensors[0].shape
    sizes = zip(shape[-2:], kernel, dilation, padding, stride, strict=True)
    counts = [(side + 2 * pad - spread * (taps - 1) - 1) // step + 1 for side, taps, spread, pad, step in sizes]
    return math.prod(shape[:-2]) * math.prod(kernel) * math.prod(counts)


def _from_windows(signature: Signature) -> int:
    """col2im: [..., channels * window, windows] to images."""
    size, kernel = _lists(signature)[:2]
    return math.prod(signature.tensors[0].shape[:-1]) // math.prod(kernel) * math.prod(size)


def _sampled(signature: Signature) -> int:
    """grid_sampler: all channels at each point of the grid."""
    images, grid = signature.tensors[:2]
    return math.prod(images.shape[:2]) * math.prod(grid.shape[1:-1])


def _distances(signature: Signature) -> int:
    """cdist: of all pairs."""
    one, other = signature.tensors[:2]
    return math.prod(broadcast((one.shape[:-2], other.shape[:-2]))) * one.shape[-2] * other.shape[-2]


def _pairs(signature: Signature) -> int:
    """pdist."""
    rows = signature.tensors[0].shape[0]
    return rows * (rows - 1) // 2


_NAMES = {
    _scaled: """
upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d
_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa max_unpool2d max_unpool3d
""",
    _adapted: "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d",
    _pooled: "avg_pool2d avg_pool3d max_pool2d_with_indices max_pool3d_with_indices",
    _padded: "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d",
    _windows: "im2col",
    _from_windows: "col2im",
    _sampled: "grid_sampler_2d grid_sampler_3d",
    _distances: "_cdist_forward",
    _pairs: "_pdist_forward",
}
_RULES: dict[str, Callable[[Signature], int]] = {name: rule for rule, names in _NAMES.items() for name in names.split()}
_BEYOND_BYTES = (_distances, _pairs)
"""May take longer to compute than their bytes to move."""
NAMES = [each for name, rule in _RULES.items() if rule not in _BEYOND_BYTES for each in (name, f"{name}{_BACKWARD}")]
"""Ops that cost the bytes of their inputs and results."""
