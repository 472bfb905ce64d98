"""Convolutions: what a signature convolves, as an implicit product or value by value.

One goes from wide images to narrow ones: filters [filters, channels of a group, …] each make one value at each position
of the narrow images. Transposed, it goes the other way with as many operations, as the wide images' gradient does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from phantora_py.engines.gemm import Product, multiplied_type
from phantora_py.signature import Signature, Tensor


@dataclass(frozen=True, slots=True)
class Convolution:
    """A pass for each thing that is made: one forward, backward one for each gradient that is wanted."""

    made: tuple[str, ...]
    """"narrow", "wide", "filters"."""
    positions: int
    """Of narrow images."""
    wide_positions: int
    channels: int
    """Of wide images, of one group."""
    filters: int
    """Of one group."""
    depth: int
    """Values of the wide images that make one of the narrow ones."""
    groups: int
    dtype: str
    """As in a Product."""
    element_bytes: int
    pass_bytes: int
    """Images, filters and results, each once."""

    @property
    def flops(self) -> int:
        return 2 * self.positions * self.filters * self.depth * self.groups * len(self.made)

    @property
    def products(self) -> list[Product]:
        """Group by group: every position times every filter; every wide position times every channel, with as many
        filters and taps as meet there; or every filter times every value of a window, over all positions."""
        meeting = self.positions * self.filters * self.depth / max(self.wide_positions * self.channels, 1)
        extents = {
            "narrow": (self.positions, self.filters, self.depth),
            "wide": (self.wide_positions, self.channels, math.ceil(meeting)),
            "filters": (self.filters, self.depth, self.positions),
        }
        width = self.element_bytes
        return [Product(*extents[made], self.groups, self.dtype, width, width) for made in self.made]


_LISTS = {
    "convolution": ("stride", "padding", "dilation"),
    "_convolution": ("stride", "padding", "dilation"),
    "cudnn_convolution": ("padding", "stride", "dilation"),
    "cudnn_convolution_relu": ("stride", "padding", "dilation"),
    "cudnn_convolution_transpose": ("padding", "output_padding", "stride", "dilation"),
    "_conv_depthwise2d": ("kernel", "stride", "padding", "dilation"),
    "conv_depthwise3d": ("kernel", "stride", "padding", "dilation"),
    "slow_conv3d_forward": ("kernel", "stride", "padding"),
}
"""By op: in which order its schema has lists of sizes."""
_BACKWARD = "convolution_backward"


def find_convolution(signature: Signature) -> Convolution | None:
    """The convolution of an op; None for anything else, or if its shapes make no sense."""
    name = signature.base_op
    images = [tensor for tensor in signature.tensors if len(tensor.shape) >= 3]
    if name == _BACKWARD and len(images) >= 3:
        grad, x, weight = images[:3]
        wide, narrow = (grad, x) if _is_transposed(signature) else (x, grad)
        of_input = "narrow" if wide is grad else "wide"
        return _between(wide.shape, narrow.shape, weight, signature, _wanted_gradients(signature, of_input))
    if name not in _LISTS or len(images) < 2:
        return None
    x, weight = images[:2]
    if _is_transposed(signature):
        sides = [axis.widened for axis in _axes(signature, x, weight)]
        return _between(
            (x.shape[0], weight.shape[1] * _groups(signature), *sides), x.shape, weight, signature, ("wide",)
        )
    sides = [axis.narrowed for axis in _axes(signature, x, weight)]
    return _between(x.shape, (x.shape[0], weight.shape[0], *sides), weight, signature, ("narrow",))


def _between(
    wide: Sequence[int], narrow: Sequence[int], weight: Tensor, signature: Signature, made: tuple[str, ...]
) -> Convolution:
    groups = max(wide[1] // max(weight.shape[1], 1), 1)
    return Convolution(
        made=made,
        wide_positions=wide[0] * math.prod(wide[2:]),
        channels=weight.shape[1],
        positions=narrow[0] * math.prod(narrow[2:]),
        filters=weight.shape[0] // groups,
        depth=math.prod(weight.shape[1:]),
        groups=groups,
        dtype=multiplied_type(signature, weight.dtype),
        element_bytes=weight.element_bytes,
        pass_bytes=(math.prod(wide) + math.prod(narrow) + weight.numel) * weight.element_bytes,
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """One dimension of the images."""

    side: int
    taps: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    output_padding: int = 0

    @property
    def narrowed(self) -> int:
        return max((self.side + 2 * self.padding - self.dilation * (self.taps - 1) - 1) // max(self.stride, 1) + 1, 1)

    @property
    def widened(self) -> int:
        reach = self.dilation * (self.taps - 1) + 1 + self.output_padding
        return max((self.side - 1) * self.stride + reach - 2 * self.padding, 1)


def _axes(signature: Signature, x: Tensor, weight: Tensor) -> list[_Axis]:
    lists = [sizes for sizes in signature.scalars if isinstance(sizes, tuple) and len(sizes) == len(x.shape) - 2]
    named = dict(zip(_LISTS[signature.base_op], lists, strict=False))
    named.pop("kernel", None)
    return [
        _Axis(side, taps, **{name: size for name, sizes in named.items() if isinstance(size := sizes[i], int)})
        for i, (side, taps) in enumerate(zip(x.shape[2:], weight.shape[2:], strict=False))
    ]


def _is_transposed(signature: Signature) -> bool:
    """Where a schema asks, it is by its first bool."""
    name = signature.base_op
    if name not in ("convolution", "_convolution", _BACKWARD):
        return name.endswith("_transpose")
    return next((scalar for scalar in signature.scalars if isinstance(scalar, bool)), False)


def _groups(signature: Signature) -> int:
    """The only plain number in a schema."""
    return next((n for n in signature.scalars if isinstance(n, int) and not isinstance(n, bool)), 1)


def _wanted_gradients(signature: Signature, of_input: str) -> tuple[str, ...]:
    """Those of input and weight; that of a bias is an op of its own."""
    mask = signature.scalars[-1] if signature.scalars else None
    if not isinstance(mask, tuple) or not all(isinstance(wanted, bool) for wanted in mask):
        return of_input, "filters"
    return tuple(made for made, wanted in zip((of_input, "filters"), mask, strict=False) if wanted)
