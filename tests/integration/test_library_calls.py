"""CUDA's math libraries as PyTorch calls them, on an emulated H100."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "values" / "library_calls.py"
LIMIT_S = 900.0
"""The hook may have to be compiled first, on a busy machine."""

LAUNCHED = (
    "cublasGemmEx",
    "cublasLtMatmul",
    "cublasGemmStridedBatchedEx",
    "cudnnBackendExecute:CONVOLUTION_FORWARD/tf32",
    "cudnnRNNForward/tf32",
    "cusolverDn",
    "cufftXtExec",
)
"""Calls that the trace must hold: the libraries were asked, and no op went by another way."""


def test_math_libraries(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json.gz"
    command = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--trace", str(trace), "--"]
    done = subprocess.run(
        [*command, sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with gzip.open(trace, "rt") as file:
        text = json.dumps(json.load(file))
    assert [name for name in LAUNCHED if name not in text] == []
