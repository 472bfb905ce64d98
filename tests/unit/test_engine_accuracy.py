"""The engine against measured kernels: the bounds that docs/accuracy.md states.

Reads the tables where they lie: ../shared/data beside the checkout, and the installed package aiconfigurator-core.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from phantora_py.engines import measured
from phantora_py.engines.calibrate import ErrorRow, errors, held_out, main, show
from phantora_py.engines.measured import NoDataError, Sample

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def rows_of(samples: Iterator[Sample]) -> dict[tuple[str, str], ErrorRow]:
    """Errors by op class and GPU, held out or not together."""
    try:
        found = list(samples)
    except NoDataError as missing:
        pytest.skip(str(missing))
    return {(row.op_class, row.gpu): row for row in errors(found)}


def test_products_of_a_device_that_was_not_fitted_to() -> None:
    for system, gpu in (("h200_sxm", "H200-SXM"), ("gb200", "GB200")):
        rows = rows_of(measured.silicon_gemm(system, limit=1_000))
        wide, thin = rows["gemm bf16, sides >= 256", gpu], rows["gemm bf16, thin", gpu]
        assert wide.held_out == thin.held_out == "device"
        assert wide.median < 0.07
        assert abs(wide.bias) < 0.05
        assert thin.median < 0.20


def test_products_in_the_layouts_of_training() -> None:
    rows = rows_of(measured.simumax(DATA))
    for layout in ("TN", "NN", "NT += fp32"):
        assert rows[f"gemm bf16 {layout}", "A100-PCIE-80GB"].median < 0.08
        assert rows[f"gemm bf16 {layout}", "B200-SXM"].median < 0.12


def test_products_of_other_sources() -> None:
    rows = rows_of(measured.vidur(DATA))
    assert rows["gemm fp16", "A100-SXM-80GB"].median < 0.10
    assert rows["gemm fp16", "A40"].median < 0.10
    assert rows["gemm fp16", "H100-SXM-80GB"].median < 0.18


def test_attention() -> None:
    rows = {**rows_of(measured.simumax(DATA)), **rows_of(measured.flash(DATA))}
    assert rows["attention forward cudnn", "H100-SXM-80GB"].median < 0.10
    assert rows["attention forward flash", "H100-SXM-80GB"].median < 0.10
    assert rows["attention backward flash", "H100-SXM-80GB"].median < 0.15
    assert rows["attention backward cudnn", "B200-SXM"].median < 0.08
    assert rows["attention forward flash", "A100-PCIE-80GB"].median < 0.25


def test_memory_bound_kernels() -> None:
    rows = {**rows_of(measured.neusight(DATA)), **rows_of(measured.vidur(DATA))}
    for gpu in ("A100-PCIE-40GB", "A100-PCIE-80GB"):
        assert rows["elementwise fp32", gpu].median < 0.03
        assert rows["norm fp32", gpu].median < 0.15
        assert rows["softmax fp32", gpu].median < 0.16
    assert rows["elementwise fp16", "H100-SXM-80GB"].median < 0.08
    assert rows["elementwise fp16", "A40"].median < 0.08


def test_the_table_prints_without_any_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = show([ErrorRow("gemm", "H100", "silicon", "device", 3, 0.05, 0.1, -0.01)])
    assert "| gemm | H100 | silicon | device | 3 | 5.0% | 10.0% | -1.0% |" in table
    assert main(["--data", str(tmp_path), "--no-fit", "--tables", "vidur"]) == 0
    assert "left out" in capsys.readouterr().err


def test_a_shape_is_always_on_the_same_side() -> None:
    sample = Sample("silicon", "L40S", "gemm bf16, thin", measured.product(8, 8, 8, "bfloat16"), 1.0, False)
    assert held_out(sample) == held_out(sample)
