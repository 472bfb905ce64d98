"""What PyTorch's NCCL watchdogs notice is a function of the job's calls, whenever they happen to look."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).parent / "jobs" / "unwaited_collectives.py"
RANKS = 2
ROUNDS = 20
TENSOR_BYTES = 4 << 20


@pytest.mark.parametrize("ending", ["destroyed", "by_thread", "aborted"])
def test_tensors_are_let_go_at_the_first_call_after_a_wait(ending: str) -> None:
    phantora = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), str(SCRIPT), ending]
    done = subprocess.run([*phantora, *torchrun], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    held = [line for line in done.stdout.splitlines() if line.startswith("held")]
    assert held == [f"held {TENSOR_BYTES} {TENSOR_BYTES} 0"] * (ROUNDS * RANKS)
