"""Triton's and Inductor's kernels: their values, their costs, and their caches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "values"
LIMIT_S = 900.0
"""The hook may have to be compiled first, on a busy machine."""


def run(script: str, folder: Path) -> list[dict[str, Any]]:
    """The trace's events. The compilers' caches are in `folder`."""
    trace = folder / "trace.json"
    command = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--trace", str(trace), "--"]
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
    done = subprocess.run(
        [*command, sys.executable, str(SCRIPTS / script)],
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    events: list[dict[str, Any]] = json.loads(trace.read_text())["traceEvents"]
    return events


def by_inductor(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["name"].startswith("triton_")]


def second_steps(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The kernels of every second optimizer step."""
    ends = [event["ts"] for event in events if event["name"] == "optimizer step ended"]
    kernels = [event for event in events if event["ph"] == "X"]
    spans = zip(ends[::2], ends[1::2], strict=True)
    return [[event for event in kernels if begin <= event["ts"] < end] for begin, end in spans]


def products_us(kernels: list[dict[str, Any]]) -> list[float]:
    return sorted(kernel["dur"] for kernel in kernels if kernel["args"]["kind"] in ("gemm", "convolution"))


def compiled_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.suffix in (".cubin", ".so")}


def test_values_and_caches(tmp_path: Path) -> None:
    generated = by_inductor(run("generated_kernels.py", tmp_path))
    assert all(event["args"]["fused"] for event in generated)
    kinds = {event["args"]["kind"] for event in generated}
    assert kinds == {"elementwise", "reduction", "attention", "attention_backward"}

    before = compiled_files(tmp_path)
    assert before
    again = by_inductor(run("generated_kernels.py", tmp_path))
    assert compiled_files(tmp_path) == before
    assert {(event["name"], event["dur"]) for event in again} == {(event["name"], event["dur"]) for event in generated}


def test_compiled_training_costs_no_more_than_eager(tmp_path: Path) -> None:
    eager, compiled, templates = second_steps(run("compiled_training.py", tmp_path))
    for way in (compiled, templates):
        assert products_us(way) == pytest.approx(products_us(eager), rel=0.1)
        assert sum(kernel["dur"] for kernel in way) < sum(kernel["dur"] for kernel in eager)

    by_triton = [kernel for kernel in templates if kernel["name"].startswith("triton_tem_")]
    products = [kernel for kernel in eager if kernel["name"] in ("aten::mm", "aten::addmm", "aten::cudnn_convolution")]
    assert len(by_triton) == len(products) == 1 + 3 * 2
    assert {kernel["args"]["kind"] for kernel in by_triton} == {"gemm", "convolution"}

    [gelu] = [kernel for kernel in eager if kernel["name"] == "aten::gelu"]
    [fused_gelu] = [kernel for kernel in compiled if kernel["name"].startswith("triton_poi_fused_gelu_view")]
    assert fused_gelu["dur"] == pytest.approx(gelu["dur"], rel=0.01)
