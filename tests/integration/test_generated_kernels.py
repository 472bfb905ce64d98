"""Triton's and Inductor's kernels: their values, their costs, and their caches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "values" / "generated_kernels.py"
LIMIT_S = 900.0
"""The hook may have to be compiled first, on a busy machine."""


def run(folder: Path) -> list[dict[str, Any]]:
    """Inductor's kernels in the trace. The compilers' caches are in `folder`."""
    trace = folder / "trace.json"
    command = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--trace", str(trace), "--"]
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
    done = subprocess.run(
        [*command, sys.executable, str(SCRIPT)],
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    return [event for event in events if event["ph"] == "X" and event["name"].startswith("triton_")]


def compiled_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.suffix in (".cubin", ".so")}


def test_values_costs_and_caches(tmp_path: Path) -> None:
    generated = run(tmp_path)
    assert all(event["args"]["fused"] for event in generated)
    kinds = {event["args"]["kind"] for event in generated}
    assert kinds == {"elementwise", "reduction", "attention", "attention_backward"}

    before = compiled_files(tmp_path)
    assert before
    again = run(tmp_path)
    assert compiled_files(tmp_path) == before
    assert {(event["name"], event["dur"]) for event in again} == {(event["name"], event["dur"]) for event in generated}
