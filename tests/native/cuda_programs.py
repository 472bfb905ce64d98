"""C++ programs of this folder, compiled against the installed shims and run as a rank."""

from __future__ import annotations

import subprocess
from pathlib import Path

from phantora_native import INCLUDE_DIR, LIBRARY_DIR

HERE = Path(__file__).parent
SHIMS = HERE.parents[1] / "native" / "shims"

MACHINE = """
# comments and blank lines are allowed

device.name = NVIDIA H100 80GB HBM3
device.count = 4
device.memory_bytes = 85000000000
device.context_bytes = 500000000
device.sm_count = 132
device.cc_major = 9
device.cc_minor = 0
device.l2_bytes = 52428800
device.hbm_bytes_per_s = 3350000000000
device.clock_khz = 1980000
device.shared_per_block_optin = 232448
device.shared_per_sm = 233472
device.nvlink_count = 18
device.multicast = 1
host.policy = modelled
host.dispatch_ns = 3000
host.launch_ns = 4000
host.call_ns = 100
host.sync_ns = 500
"""


def compiled(folder: Path, name: str, *libraries: str) -> Path:
    program = folder / name
    cudart = LIBRARY_DIR / "cuda13"
    subprocess.run(
        [
            *("g++", "-std=c++20", "-O1", "-Wall", "-pthread", "-I", INCLUDE_DIR, "-I", HERE, HERE / f"{name}.cpp"),
            *("-o", program, f"-L{cudart}", f"-L{LIBRARY_DIR}", "-l:libcudart.so.13", *libraries, "-lphantora_rt"),
            f"-Wl,-rpath,{cudart}:{LIBRARY_DIR}",
        ],
        check=True,
    )
    return program


def run_as_rank(
    program: Path, *arguments: str, run_dir: Path, sink: str, machine: str = MACHINE, **variables: str
) -> subprocess.CompletedProcess[str]:
    (run_dir / "machine.conf").write_text(machine)
    environment = {
        "PHANTORA_RUN_DIR": str(run_dir),
        "PHANTORA_RANK": "3",
        "PHANTORA_SINK": sink,
        **variables,
    }
    return subprocess.run([program, *arguments], env=environment, timeout=120, capture_output=True, text=True)
