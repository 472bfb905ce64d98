"""Values of device memory, as a script sees them.

The scripts in values/ check themselves; what they read although nothing computed it shows in the report.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "values"
LIMIT_S = 900.0
"""The hook may have to be compiled first, on a busy machine."""


def report_of(folder: Path, script: str, *launcher: str, cluster: str = "dgx-h100") -> dict[str, Any]:
    report = folder / "report.json"
    command = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", cluster, "--json", str(report), "--"]
    command += [*(launcher or (sys.executable,)), str(SCRIPTS / script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report_read: dict[str, Any] = json.loads(report.read_text())
    return report_read


def test_small_tensors_are_true(tmp_path: Path) -> None:
    assert report_of(tmp_path, "small_tensors.py")["unknown_reads"] == 0


def test_small_gradients_are_true(tmp_path: Path) -> None:
    assert report_of(tmp_path, "gradients.py")["unknown_reads"] == 0


def test_small_models_train(tmp_path: Path) -> None:
    assert report_of(tmp_path, "training.py")["unknown_reads"] == 0


def test_recurrent_networks_train(tmp_path: Path) -> None:
    assert report_of(tmp_path, "recurrent.py")["unknown_reads"] == 0


def test_batch_norm_over_ranks(tmp_path: Path) -> None:
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    assert report_of(tmp_path, "synchronised_batch_norm.py", *torchrun)["unknown_reads"] == 0


def test_values_under_what_frameworks_do(tmp_path: Path) -> None:
    assert report_of(tmp_path, "frameworks.py")["unknown_reads"] == 0


def test_random_numbers(tmp_path: Path) -> None:
    assert report_of(tmp_path, "random_numbers.py")["unknown_reads"] == 0


def test_unknown_values_are_benign_and_counted(tmp_path: Path) -> None:
    report = report_of(tmp_path, "unknown.py")
    assert report["unknown_reads"] > 0
    sites = {read["site"] for read in report["unknown_read_sites"]}
    [line] = [
        number
        for number, text in enumerate((SCRIPTS / "unknown.py").read_text().splitlines(), 1)
        if "read by Inductor's code" in text
    ]
    assert f"unknown.py:{line}" in sites
    assert not any(site.startswith("cab") for site in sites)


def test_an_index_out_of_range_ends_the_job_as_on_a_gpu(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--json", str(report), "--"]
    command += [sys.executable, str(SCRIPTS / "index_out_of_range.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 70
    assert "went on" not in done.stdout
    assert "aten::embedding: index out of range in self" in done.stderr
    assert "index_out_of_range.py" in done.stderr.partition("Stack (most recent call first)")[2]
    result = json.loads(report.read_text())
    assert "peak memory of rank 0: at least; ended before telling it" in result["guessed"]
    (rank,) = result["ranks"]
    assert rank["peak_reserved_bytes"] == 22 << 20
    assert rank["peak_allocated_bytes"] >= 8 << 20


def test_peaks_outlive_resets(tmp_path: Path) -> None:
    (rank,) = report_of(tmp_path, "memory.py")["ranks"]
    assert rank["peak_allocated_bytes"] == 1 << 30


def test_symmetric_memory(tmp_path: Path) -> None:
    report_of(tmp_path, "symmetric_memory.py", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4")


def test_gloo_collectives_join_clocks(tmp_path: Path) -> None:
    report_of(tmp_path, "gloo.py", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
