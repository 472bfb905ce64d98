"""Products of few vectors, deep ones, and complex ones, with what else complex numbers cost. Roofs by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phantora_py.engines import AnalyticEngine
from phantora_py.engines.measured import product, tensor
from phantora_py.engines.traffic import find_traffic
from phantora_py.gpus import find_gpu
from phantora_py.signature import Scalar, Signature, Tensor

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


@pytest.mark.parametrize(("dtype", "real"), [("complex64", "float32"), ("complex128", "float64")])
def test_complex_products_do_four_times_as_much(dtype: str, real: str) -> None:
    flops = 4 * 2 * 4096**3
    assert 0.5 < flops / microseconds(product(4096, 4096, 4096, dtype)) / 66.9e6 < 0.7
    assert microseconds(product(4096, 4096, 4096, dtype)) == pytest.approx(
        4 * microseconds(product(4096, 4096, 4096, real)), rel=0.01
    )
    batch = Signature("aten::bmm", tensors=(tensor(dtype, 64, 512, 512), tensor(dtype, 64, 512, 512)))
    assert microseconds(batch) == pytest.approx(microseconds(product(512, 512, 512, dtype, 64)), rel=0.01)


def test_complex_products_in_tf32() -> None:
    exact = product(4096, 4096, 4096, "complex64")
    assert 4 < microseconds(exact) / microseconds(replace(exact, kernel="cublasCgemm_v2/tf32")) < 494.7 / 66.9


@pytest.mark.parametrize(
    ("name", "tensors", "scalars", "expected"),
    [
        ("mul.Tensor", [tensor("complex64", MI), tensor("complex64", MI)], (), MI * 3 * 8),
        ("abs", [tensor("complex64", MI)], (), MI * (8 + 4)),
        ("abs", [tensor("float32", MI)], (), MI * (4 + 4)),
        ("polar", [tensor("float32", MI), tensor("float32", MI)], (), MI * (4 + 4 + 8)),
        ("_fft_c2c", [tensor("complex64", 64, 1024)], ((1,), 0, True), 64 * 1024 * 2 * 8),
        ("_fft_c2c", [tensor("complex64", 64, MI)], ((1,), 0, True), 2 * 64 * MI * 2 * 8),
        ("_fft_r2c", [tensor("float32", 8, 512, 512)], ((1, 2), 0, True), 2 * 8 * 512 * 512 * 2 * 4),
    ],
)
def test_bytes_of_complex_numbers(name: str, tensors: list[Tensor], scalars: tuple[Scalar, ...], expected: int) -> None:
    traffic = find_traffic(Signature(f"aten::{name}", tensors=tuple(tensors), scalars=scalars))
    assert traffic is not None
    assert traffic.bytes == expected
