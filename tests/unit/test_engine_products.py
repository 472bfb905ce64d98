"""Products that are not tiles in waves: vectors, a few of them, and the deepest ones. Roofs by hand."""

from __future__ import annotations

import pytest

from phantora_py.engines import AnalyticEngine
from phantora_py.engines.measured import product, tensor
from phantora_py.gpus import find_gpu
from phantora_py.signature import Signature

H100 = find_gpu("H100-SXM-80GB")
ENGINE = AnalyticEngine(H100)
MI = 2**20


def microseconds(signature: Signature) -> float:
    return ENGINE.cost(signature).duration_ns / 1e3


@pytest.mark.parametrize("name", ["dot", "vdot"])
def test_dots_stream(name: str) -> None:
    vector = tensor("float32", 128 * MI)
    roof_us = 2 * 128 * MI * 4 / 3.35e6
    assert roof_us == pytest.approx(320.5, abs=0.1)
    assert roof_us < microseconds(Signature(f"aten::{name}", tensors=(vector, vector))) < 1.3 * roof_us


@pytest.mark.parametrize(
    ("m", "n", "k", "batch", "dtype", "roof_us"),
    [
        (8, 1, 16 * MI, 1, "float32", 180.3),  # 9 x 16 Mi x 4 bytes
        (16 * MI, 1, 8, 1, "float32", 180.3),
        (1, 1, 64 * MI, 1, "bfloat16", 80.1),  # 2 x 64 Mi x 2
        (1, 1, 64 * MI, 1, "float32", 160.3),
        (8, 8, 8 * MI, 1, "bfloat16", 80.1),  # 16 x 8 Mi x 2
        (4 * MI, 2, 2, 1, "bfloat16", 10.0),  # 4 x 4 Mi x 2
        (1, 1, 128, MI, "bfloat16", 160.9),  # Mi x (2 x 128 + 1) x 2
        (64, 64, MI, 1, "bfloat16", 80.1),  # 128 x Mi x 2: not narrow, but as deep as the GPU is wide
        (16, 16, 8 * MI, 1, "bfloat16", 160.3),
    ],
)
def test_what_has_few_results_costs_about_its_bytes(
    m: int, n: int, k: int, batch: int, dtype: str, roof_us: float
) -> None:
    assert roof_us < microseconds(product(m, n, k, dtype, batch)) < 1.7 * roof_us
