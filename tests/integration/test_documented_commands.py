"""Every command that README, docs and help texts show is run as it stands, unless a table below says why not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from documented import ROOT, commands

LIMIT_S = 600.0
"""The hook may have to be compiled first, on a busy machine."""
DATA = ROOT.parent / "shared" / "data"
REPORT = ROOT / "tests" / "golden" / "simulator_report.json"

FORMS = {
    "phantora bench",
    "phantora bench collectives",
    "phantora compare",
    "phantora topology",
    "phantora run",
    "phantora run --native-clock",
    "phantora run --record DIR",
    "phantora replay",
    "phantora run --cluster NAME --",
    "phantora run --cluster NAME|FILE.toml [options] -- CMD…",
    "phantora run --json FILE",
    "bash run.sh",
    "python -m torch.distributed.run …",
    "python train.py",
    "torchrun …",
}
"""No commands: how one looks, or what a job of the user's may be."""

ELSEWHERE = {
    "phantora run --cluster dgx-h100:2 --record recorded -- torchrun --nnodes 2 --nproc-per-node 4 examples/ddp.py": (
        "test_jobs.py records a job on two nodes"
    ),
    "phantora run --cluster dgx-h100:2 --record recorded -- torchrun --nnodes 2 --nproc-per-node 8 train.py": (
        "the same"
    ),
    "phantora replay recorded --cluster mine.toml": "test_jobs.py replays that job on two other clusters",
    "phantora replay recorded --cluster slow.toml --json slow.json": "the same",
    "phantora dump recorded": "test_simulator_report_golden.py tests the text",
    "pip install '.[demo]' && phantora demo": "CI installs from scratch (.ci/run); for the demo see below",
    "pip install '.[test]' && pytest": "CI does just this (.ci/run)",
    "phantora demo": "test_jobs.py runs it",
    "phantora run --native-clock --cluster dgx-h100 -- ./build/all_reduce_perf -b 8M -e 512M -f 8 -g 8": (
        "nccl-tests are no part of the project, and take nvcc to build; test_preload.py tests the clock"
    ),
    "phantora run --cluster dgx-h100:2 --native-clock -- "
    "mpirun -np 16 ./build/all_reduce_perf -b 1K -e 256M -f 2 -g 1": (
        "the same, and MPI is no Python package; test_mpi.py runs ranks as mpirun starts them"
    ),
    "python -m benchmarks.end_to_end --data DATA": "34 jobs, an hour; test_end_to_end_cases.py tests its parts",
    "python -m benchmarks.end_to_end --data DATA --only 'h100 *'": "the same, ten of them",
    "phantora bench accuracy": "the same with --data is run here",
    "python -m phantora_py.nccl.calibrate --data DATA": "takes minutes; the errors alone are run here",
    "python -m phantora_py.engines.calibrate --data DATA": "takes minutes; with --no-fit all but the fits is run here",
}


@dataclass(frozen=True)
class Shown:
    """A command that is run."""

    writes: tuple[str, ...] = ()
    """Files that it says it writes."""
    instead: tuple[str, str] = ("", "")
    """A part of it → what is run in its place."""
    data: bool = False
    """Reads the measurements beside the checkout."""


RUN = {
    "phantora run --cluster dgx-h100 -- python examples/single_gpu.py": Shown(),
    "phantora run --cluster dgx-h100 -- torchrun --nproc-per-node 4 examples/ddp.py": Shown(),
    "phantora run --cluster dgx-h100:2 --json report.json --trace trace.json.gz -- "
    "torchrun --nnodes 2 --nproc-per-node 4 examples/megatron_gpt.py": Shown(
        writes=("report.json", "trace.json.gz"),
        # It imports Megatron-Core in eight processes, for a minute; test_jobs.py runs it.
        instead=("examples/megatron_gpt.py", "train.py"),
    ),
    "phantora run --cluster dgx-h100 -- python train.py": Shown(),
    "phantora run --cluster dgx-h100:2 --json report.json -- torchrun --nnodes 2 --nproc-per-node 8 train.py": Shown(
        writes=("report.json",)
    ),
    "phantora run --cluster mine.toml --trace trace.json.gz -- bash run.sh": Shown(writes=("trace.json.gz",)),
    "phantora run --cluster dgx-h100 --json eager.json -- torchrun train.py": Shown(writes=("eager.json",)),
    "phantora run --cluster dgx-h100 --json compiled.json -- torchrun train.py --compile": Shown(
        writes=("compiled.json",)
    ),
    "phantora compare eager.json compiled.json": Shown(instead=("eager.json compiled.json", f"{REPORT} {REPORT}")),
    "phantora run --help": Shown(),
    "phantora clusters": Shown(),
    "phantora clusters --gpus": Shown(),
    "phantora topology dgx-h100:16": Shown(),
    "phantora bench collectives --cluster dgx-h100": Shown(),
    "phantora bench collectives --cluster dgx-h100 --nodes 2 --op all_gather -b 1M -e 1G -f 2 -g 8": Shown(),
    "phantora bench collectives --cluster dgx-h100 -b 1K -e 256M -f 4 --beside printed.txt": Shown(),
    "phantora bench accuracy --data DATA": Shown(instead=("DATA", str(DATA)), data=True),
    "phantora topology mine.toml --plot fabric.svg": Shown(writes=("fabric.svg",)),
    "phantora doctor": Shown(),
    "python -m phantora_py.engines.calibrate --data DATA --no-fit": Shown(instead=("DATA", str(DATA)), data=True),
}


def test_every_command_is_known() -> None:
    unknown = {command: pages for command, pages in commands().items() if command not in {*RUN, *ELSEWHERE, *FORMS}}
    assert not unknown, f"no test runs {unknown}\n  hint: add it to RUN in this file, or to ELSEWHERE with the reason"


def test_tables_hold_what_is_shown_only() -> None:
    assert {*RUN, *ELSEWHERE, *FORMS} <= commands().keys()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader of the docs might stand."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "train.py").write_text("import os\nprint('rank', os.environ.get('RANK', '0'), 'trains')\n")
    (tmp_path / "printed.txt").write_text("# nccl-tests\n1024 256 float sum -1 29.00 0.04 0.06 0 29.00 0.04 0.06 0\n")
    (tmp_path / "run.sh").write_text("torchrun --nproc-per-node 2 train.py\n")
    (shown,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs" / "clusters.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.toml").write_text(shown)
    return tmp_path


@pytest.mark.parametrize("command", RUN, ids=RUN.keys())
def test_command_runs(command: str, folder: Path) -> None:
    shown = RUN[command]
    if shown.data and not DATA.is_dir():
        pytest.skip(f"the measurements are not there: {DATA}")
    line = command.replace(*shown.instead) if shown.instead[0] else command
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if "examples/" in line:
        pytest.importorskip("torch")
    if ("torchrun" in command or "run.sh" in command) and not shutil.which("torchrun", path=path):
        pytest.skip("no torchrun on PATH: torch is not installed in this environment")
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
    for name in shown.writes:
        assert (folder / name).stat().st_size > 0
