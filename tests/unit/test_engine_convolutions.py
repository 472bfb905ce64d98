"""Convolutions under three roofs, each by hand: arithmetic, windows from the L2 cache, images from memory."""

from __future__ import annotations

import pytest

from phantora_py.engines import AnalyticEngine
from phantora_py.engines.measured import tensor
from phantora_py.gpus import find_gpu
from phantora_py.signature import Scalar, Signature

H100 = find_gpu("H100-SXM-80GB")
L2 = 5.5e12 / 1e6
"""Bytes a microsecond."""
MEMORY = 3.35e12 / 1e6
ARITHMETIC = 0.75 * 700 / 1.129e-12 / 1e6
"""Operations: 700 W at 1.129 pJ each."""


def microseconds(
    images: tuple[int, ...], filters: tuple[int, ...], *, groups: int = 1, gradients: tuple[bool, bool] | None = None
) -> float:
    """Padded so that the results have the images' sizes."""
    dims = len(images) - 2
    ones, padding = (1,) * dims, tuple(taps // 2 for taps in filters[2:])
    x, weight = tensor("bfloat16", *images), tensor("bfloat16", *filters)
    if gradients is None:
        scalars: tuple[Scalar, ...] = (padding, ones, ones, groups, False, False, True)
        signature = Signature("aten::cudnn_convolution", tensors=(x, weight), scalars=scalars)
    else:
        result = tensor("bfloat16", images[0], filters[0], *images[2:])
        scalars = (None, ones, padding, ones, False, (0,) * dims, groups, (*gradients, False))
        signature = Signature("aten::convolution_backward", tensors=(result, x, weight), scalars=scalars)
    return AnalyticEngine(H100).cost(signature).duration_ns / 1e3


@pytest.mark.parametrize(
    ("images", "filters", "groups", "roof_us"),
    [
        # the windows of 64 x 56 x 56 positions, 9 x 64 values each
        ((64, 64, 56, 56), (64, 64, 3, 3), 1, 64 * 56 * 56 * 9 * 64 * 2 / L2),
        # 3 filters: hardly any arithmetic, but all windows
        ((16, 64, 512, 512), (3, 64, 7, 7), 1, 16 * 512 * 512 * 49 * 64 * 2 / L2),
        ((4, 64, 32, 64, 64), (64, 64, 3, 3, 3), 1, 4 * 32 * 64 * 64 * 27 * 64 * 2 / L2),
        ((32, 128, 65536), (64, 128, 3), 1, 32 * 65536 * 3 * 128 * 2 / L2),
        ((32, 128, 56, 56), (64, 64, 3, 3), 2, 2 * 32 * 56 * 56 * 9 * 64 * 2 / L2),
        # 1 x 1: every value once from memory, which is slower than the cache
        ((8, 64, 512, 512), (1, 64, 1, 1), 1, 8 * 512 * 512 * (64 + 1) * 2 / MEMORY),
        # many channels: arithmetic
        ((32, 256, 56, 56), (256, 128, 3, 3), 2, 2 * 32 * 56 * 56 * 9 * 128 * 256 / ARITHMETIC),
        ((8, 512, 128, 128), (512, 512, 3, 3), 1, 2 * 8 * 128 * 128 * 512 * 512 * 9 / ARITHMETIC),
    ],
)
def test_the_highest_roof_is_the_cost(
    images: tuple[int, ...], filters: tuple[int, ...], groups: int, roof_us: float
) -> None:
    assert roof_us <= microseconds(images, filters, groups=groups) < 1.8 * roof_us


@pytest.mark.parametrize(
    ("gradients", "roof_us"),
    [
        # of the images: each position meets 3 filters of 49 taps
        ((True, False), 16 * 512 * 512 * 49 * 3 * 2 / L2),
        # of the filters: all windows, as forward
        ((False, True), 16 * 512 * 512 * 49 * 64 * 2 / L2),
        ((True, True), 16 * 512 * 512 * 49 * (3 + 64) * 2 / L2),
    ],
)
def test_each_gradient_has_windows_of_its_own(gradients: tuple[bool, bool], roof_us: float) -> None:
    assert roof_us <= microseconds((16, 64, 512, 512), (3, 64, 7, 7), gradients=gradients) < 1.8 * roof_us


def test_more_channels_never_cost_less() -> None:
    times = [microseconds((16, 64, 112, 112), (filters, 64, 3, 3)) for filters in (1, 3, 16, 64, 128, 256, 512, 1024)]
    assert times == sorted(times)
