"""Ops whose results have other sizes than their inputs: the bytes of both, by hand."""

from __future__ import annotations

import pytest

from phantora_py.engines import AnalyticEngine
from phantora_py.engines.measured import tensor
from phantora_py.engines.traffic import find_traffic, visible_traffic
from phantora_py.gpus import find_gpu
from phantora_py.signature import Scalar, Signature, Tensor

IMAGES = tensor("float32", 16, 64, 64, 64)
READ = 16 * 64 * 64 * 64 * 4
VOLUMES = tensor("float32", 4, 32, 32, 32, 32)
LARGER = (512, 512)


@pytest.mark.parametrize(
    ("name", "tensors", "scalars", "expected"),
    [
        ("upsample_nearest2d", [IMAGES], (LARGER, None, None), 65 * READ),
        ("upsample_bilinear2d", [IMAGES], (LARGER, False, None, None), 65 * READ),
        ("_upsample_bicubic2d_aa", [IMAGES], (LARGER, False, None, None), 65 * READ),
        ("upsample_trilinear3d", [VOLUMES], ((128, 128, 128), False, None, None, None), 65 * VOLUMES.bytes),
        ("upsample_nearest2d", [IMAGES], ((8, 8), None, None), 16 * 64 * 64 * (32 + 4)),
        ("upsample_bilinear2d", [IMAGES], ((8, 8), False, None, None), 16 * 64 * 64 * (2 * 32 + 4)),
        ("upsample_bicubic2d", [IMAGES], ((8, 8), False, None, None), 16 * 64 * 64 * (4 * 32 + 4)),
        (
            "upsample_bicubic2d_backward",
            [tensor("float32", 16, 64, 512, 512)],
            (LARGER, (16, 64, 64, 64), False, None, None),
            65 * READ,
        ),
        ("reflection_pad2d", [IMAGES], ((1, 2, 3, 4),), READ + 16 * 64 * (64 + 3 + 4) * (64 + 1 + 2) * 4),
        (
            "replication_pad3d_backward",
            [tensor("float32", 4, 32, 34, 34, 34), VOLUMES],
            ((1, 1, 1, 1, 1, 1),),
            4 * 32 * 34**3 * 4 + VOLUMES.bytes,
        ),
        ("im2col", [IMAGES], ((5, 5), (1, 1), (2, 2), (1, 1)), 26 * READ),
        ("im2col", [IMAGES], ((3, 3), (2, 2), (0, 0), (2, 2)), READ + 16 * 64 * 9 * 30 * 30 * 4),
        (
            "col2im",
            [tensor("float32", 16, 64 * 25, 4096)],
            ((64, 64), (5, 5), (1, 1), (2, 2), (1, 1)),
            26 * READ,
        ),
        ("avg_pool2d", [IMAGES], ((2, 2), (), (0, 0), False, True, None), READ * 5 // 4),
        ("avg_pool2d", [IMAGES], ((3, 3), (2, 2), (1, 1), False, True, None), READ * 5 // 4),
        ("avg_pool3d", [VOLUMES], ((3,), (2,), (0,), True, True, None), VOLUMES.bytes + 4 * 32 * 16**3 * 4),
        (
            "max_pool2d_with_indices",
            [IMAGES],
            ((2, 2), (2, 2), (0, 0), (1, 1), False),
            READ + 16 * 64 * 32 * 32 * (4 + 8),
        ),
        (
            "max_pool2d_with_indices_backward",
            [tensor("float32", 16, 64, 32, 32), IMAGES, tensor("int64", 16, 64, 32, 32)],
            ((2, 2), (2, 2), (0, 0), (1, 1), False),
            16 * 64 * 32 * 32 * (4 + 8) + READ,
        ),
        ("_adaptive_avg_pool2d", [IMAGES], ((1, 1),), READ + 16 * 64 * 4),
        ("_adaptive_avg_pool2d_backward", [tensor("float32", 16, 64, 1, 1), IMAGES], (), 16 * 64 * 4 + READ),
        (
            "grid_sampler_2d",
            [tensor("float32", 4, 32, 8, 8), tensor("float32", 4, 512, 512, 2)],
            (0, 0, False),
            4 * 32 * 64 * 4 + 4 * 512 * 512 * (2 + 32) * 4,
        ),
    ],
)
def test_inputs_are_read_and_results_written(
    name: str, tensors: list[Tensor], scalars: tuple[Scalar, ...], expected: int
) -> None:
    traffic = find_traffic(Signature(f"aten::{name}", tensors=tuple(tensors), scalars=scalars))
    assert traffic is not None
    assert (traffic.kind, traffic.bytes) == ("elementwise", expected)


def test_guesses_write_results_of_known_size() -> None:
    points, others = tensor("float32", 2, 1000, 3), tensor("float32", 500, 3)
    for name, tensors, pairs in (
        ("_cdist_forward", (points, others), 2 * 1000 * 500),
        ("_pdist_forward", (tensor("float32", 1000, 3),), 1000 * 999 // 2),
    ):
        signature = Signature(f"aten::{name}", tensors=tensors, scalars=(2, None))
        assert visible_traffic(signature).bytes == sum(t.bytes for t in tensors) + pairs * 4
        assert AnalyticEngine(find_gpu("H100-SXM-80GB")).cost(signature).guessed


def test_arguments_that_make_no_sense_are_no_error() -> None:
    for name in ("upsample_nearest2d", "im2col", "avg_pool2d", "reflection_pad2d", "_adaptive_avg_pool2d_backward"):
        signature = Signature(f"aten::{name}", tensors=(IMAGES,), scalars=((0,),))
        assert AnalyticEngine(find_gpu("H100-SXM-80GB")).cost(signature).duration_ns > 0


@pytest.mark.parametrize(("dtype", "width"), [("int64", 8), ("float32", 4), ("bfloat16", 2)])
def test_counting_writes_an_element_for_each_thread(dtype: str, width: int) -> None:
    unsized = Signature(
        "aten::arange.start_out",
        tensors=(tensor(dtype, 0, role="mut"),),
        scalars=(0, 2, 1),
        grid=(2**20, 1, 1),
        block=(64, 1, 1),
    )
    traffic = find_traffic(unsized)
    assert traffic is not None
    assert (traffic.kind, traffic.bytes) == ("fill", 2**26 * width)
