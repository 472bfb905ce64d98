"""NCCL as PyTorch uses it, on four emulated ranks: every collective gives true values where messages are small."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RANKS = 4
SCRIPT = Path(__file__).with_name("nccl_values_script.py")
CHECKS = [line.split("(")[0].removeprefix("def ") for line in SCRIPT.read_text().split("@check\n")[1:]]


def run(*checks: str, **variables: str) -> subprocess.CompletedProcess[str]:
    phantora = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), str(SCRIPT), *checks]
    environment = {**os.environ, **variables}
    return subprocess.run(
        [*phantora, *torchrun], capture_output=True, text=True, timeout=900, check=False, env=environment
    )


@pytest.fixture(scope="module")
def finished() -> subprocess.CompletedProcess[str]:
    return run()


@pytest.mark.parametrize("name", CHECKS)
def test_check_holds_on_every_rank(finished: subprocess.CompletedProcess[str], name: str) -> None:
    held = finished.stdout.splitlines().count(f"ok {name}")
    assert held == RANKS, finished.stdout + finished.stderr


def test_job_ends_well(finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("variable", ["CHECK_EAGER_INIT", "TORCH_NCCL_USE_COMM_NONBLOCKING"])
def test_other_ways_to_make_communicators(variable: str) -> None:
    """Groups split from the first communicator; communicators that are made while the host goes on."""
    checks = ["all_reduce_of_bool", "subgroups", "device_mesh", "objects", "send_and_receive"]
    finished = run(*checks, **{variable: "1"})
    held = finished.stdout.splitlines()
    assert {name: held.count(f"ok {name}") for name in checks} == dict.fromkeys(checks, RANKS), finished.stderr
    assert finished.returncode == 0, finished.stderr
