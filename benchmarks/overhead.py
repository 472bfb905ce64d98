"""What the emulator itself costs: `python -m benchmarks.overhead`. Takes minutes; needs the extra `demo`.

Hook and shims: TorchTitan's Llama 3 8B on one rank, CPU time of its process for each training step, under the emulator
and with bare shims: no hook, no values, nothing sent. The simulator: CPU time of its process against the wall time of
`phantora demo`. CPU time of a step is that of a long run less that of a short one, over the steps between.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from phantora_launcher.commands.demo import command_line
from phantora_launcher.demo import assets
from phantora_launcher.machine import HostTime, machine_lines
from phantora_native import LIBRARY_DIR
from phantora_py.cluster import load_cluster

SHORT, LONG = 4, 44  # steps
POLL_S = 0.05
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CLUSTER = '[gpu]\nmodel = "H100-SXM-80GB"\nmemory_GiB = 400\n[node]\ngpus = 1\n'  # the whole model on one GPU
TRAINER = "titan"  # benchmarks/jobs/titan.py
SIMULATOR = "phantora_py.simulator"


def cpu_times_s(marks: Sequence[str]) -> dict[str, float]:
    """CPU time so far of the running Python module of each mark."""
    found: dict[str, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        module = arguments[arguments.index("-m") + 1] if "-m" in arguments[:-1] else ""
        if module in marks:
            found[module] = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    return found


def run(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> tuple[dict[str, float], float]:
    """CPU time of trainer and simulator, and wall time."""
    latest: dict[str, float] = {}
    started = time.monotonic()
    with open(folder / "output.log", "w") as log:
        environment = {**os.environ, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", **variables}
        job = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        while job.poll() is None:
            latest |= cpu_times_s((TRAINER, SIMULATOR))
            time.sleep(POLL_S)
    if job.returncode != 0:
        sys.exit(f"{' '.join(command)} failed\n{(folder / 'output.log').read_text()[-4000:]}")
    return latest, time.monotonic() - started


def trainer_command(steps: int) -> list[str]:
    """The demo's, on one rank and without its launcher."""
    command = command_line(steps)
    return [sys.executable, "-m", TRAINER, *command[command.index("torchtitan.train") + 1 :]]


def emulated(folder: Path, steps: int) -> float:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1"]
    front = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", "one.toml", "--"]
    return run([*front, *launcher, *trainer_command(steps)[1:]], folder, {})[0][TRAINER]


def bare(folder: Path, steps: int) -> float:
    lines = machine_lines(load_cluster(str(folder / "one.toml")), HostTime.MODELLED, None)
    (folder / "machine.conf").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {
        "LD_PRELOAD": str(LIBRARY_DIR / "libphantora_preload.so"),
        "PHANTORA_RUN_DIR": str(folder),
        "PHANTORA_RANK": "0",
        "PHANTORA_SINK": "null",
        **dict(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)),
    }
    return run(trainer_command(steps), folder, variables)[0][TRAINER]


def demo(folder: Path) -> None:
    report = folder / "demo.json"
    front = [sys.executable, "-m", "phantora_launcher", "demo", "--json", str(report)]
    cpu_s, wall_s = run(front, folder, {})
    iteration_s = json.loads(report.read_text())["iteration_ns"] / 1e9
    share = cpu_s[SIMULATOR] / wall_s
    print(f"phantora demo: {wall_s:.1f} s of wall time, {iteration_s:.3f} s an iteration simulated")
    print(f"simulator: {cpu_s[SIMULATOR]:.1f} s of CPU, {share:.1%} of the wall time (goal: below 15 %)", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="phantora-overhead-") as name:
        folder = Path(name)
        assets.write_assets(folder)
        shutil.copy(Path(assets.__file__).with_name("titan_llama3_8b.py"), folder)
        shutil.copy(Path(__file__).parent / "jobs" / f"{TRAINER}.py", folder)
        (folder / "one.toml").write_text(f'name = "one"\n{CLUSTER}')
        per_step_s = {}
        for kind in (bare, emulated):
            per_step_s[kind] = (kind(folder, LONG) - kind(folder, SHORT)) / (LONG - SHORT)
            print(f"{kind.__name__:8}: {per_step_s[kind]:.3f} s of CPU a step of Llama 3 8B on one rank", flush=True)
        print(f"hook and shims add {per_step_s[emulated] / per_step_s[bare] - 1:.1%} (goal: below 25 %)", flush=True)
        demo(folder)


if __name__ == "__main__":
    main()
