"""PyTorch over the runtime library: one rank without a simulator, and how process groups wait and end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phantora_native import LIBRARY_DIR

pytest.importorskip("torch")

HERE = Path(__file__).parent

MACHINE = """
device.name = NVIDIA H100 80GB HBM3
device.count = 4
device.memory_bytes = 85017493504
device.context_bytes = 536870912
device.sm_count = 132
device.cc_major = 9
device.cc_minor = 0
device.l2_bytes = 52428800
device.hbm_bytes_per_s = 3350000000000
device.clock_khz = 1980000
device.shared_per_block_optin = 232448
device.shared_per_sm = 233472
host.policy = {policy}
host.launch_ns = 4000
host.call_ns = 1000
host.sync_ns = 5000
"""


@pytest.mark.parametrize("policy", ["modelled", "measured"])
def test_script_without_simulator(tmp_path: Path, policy: str) -> None:
    (tmp_path / "machine.conf").write_text(MACHINE.format(policy=policy))
    variables = {
        **os.environ,
        "LD_PRELOAD": str(LIBRARY_DIR / "libphantora_preload.so"),
        "PHANTORA_RUN_DIR": str(tmp_path),
        "PHANTORA_RANK": "0",
        "PHANTORA_SINK": "null",
    }
    script = HERE / "torch_device_script.py"
    done = subprocess.run([sys.executable, script], env=variables, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("ending", ["destroy", "keep"])
def test_process_group_waits_patiently_and_ends(tmp_path: Path, ending: str) -> None:
    job = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", HERE / "process_group_script.py"]
    front = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--", *job, ending]
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(front, env=variables, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("polls 2 sum [3.0, 3.0, 3.0, 3.0]") == 2
