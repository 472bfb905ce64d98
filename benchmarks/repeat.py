"""Are equal jobs equal? `python -m benchmarks.repeat`. Takes half an hour; needs the extra `demo`, and megatron-core.

Runs the jobs of `phantora demo` and of examples/megatron_gpt.py ten times each: with the machine as it is, with a busy
process on each core, and with ranks that start up to ten seconds late; prints a line for each run and what differs from
the first one in the report, the trace or what the job printed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phantora_launcher.commands.demo import command_line
from phantora_launcher.demo import assets

EXAMPLE = Path(__file__).parent.parent / "examples" / "megatron_gpt.py"
CONDITIONS = ("as is", "busy", "late ranks")
LATEST_S = 10
MACHINES_OWN = ("wall_s", "speculated_answers", "corrected_answers", "command")
"""Keys of the report that equal runs may differ in (docs/report.md), and the line that starts ranks late."""
OF_THE_RUN = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"  # wall clock
    r"|\[rank\d\]:[WI]\d{4} [\d:.]+ \d+"  # … and process number
    r"|\d{8}-\d{6}-\w{6}"  # … and chance: names of TorchTitan's log files
)


@dataclass(frozen=True)
class Outcome:
    report: dict[str, Any]
    trace: str
    printed: list[str]

    def differences(self, first: Outcome) -> list[str]:
        found = [key for key in first.report if key not in MACHINES_OWN and self.report.get(key) != first.report[key]]
        if self.trace != first.trace:
            found.append("trace")
        lines = set(self.printed).symmetric_difference(first.printed)
        return found + [f"printed {line!r}" for line in sorted(lines)]


def training(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Cluster and command of each job."""
    assets.write_assets(folder)
    shutil.copy(Path(assets.__file__).with_name("titan_llama3_8b.py"), folder)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "4"]
    return {"demo": ("titan-h100", command_line(steps=6)), "megatron": ("dgx-h100:2", [*torchrun, str(EXAMPLE)])}


def late(command: Sequence[str], seed: int) -> list[str]:
    """The same ranks, each of which sleeps before its Python starts."""
    rank = next(i for i, word in enumerate(command) if word == "torchtitan.train" or word.endswith(".py"))
    rank -= command[rank - 1] == "-m"
    delays = " ".join(str(random.Random(seed + i).randrange(LATEST_S)) for i in range(8))
    shell = f'delays=({delays}); sleep ${{delays[$RANK]}}; exec "$@"'
    return [*command[:rank], "--no-python", "bash", "-c", shell, "late", sys.executable, *command[rank:]]


@contextlib.contextmanager
def busy() -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def run(folder: Path, cluster: str, command: Sequence[str]) -> Outcome:
    report, trace = folder / "report.json", folder / "trace.json"
    front = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", cluster]
    environment = {**os.environ, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*front, "--json", str(report), "--trace", str(trace), "--", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    job, _, _ = done.stdout.partition("┏")  # above our own report
    lines = (OF_THE_RUN.sub("", line) for line in (job + done.stderr).splitlines())
    printed = sorted(line for line in lines if not line.startswith("phantora: "))
    return Outcome(json.loads(report.read_text()), hashlib.sha256(trace.read_bytes()).hexdigest(), printed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each job (default: 10)")
    parser.add_argument("--only", default="", help="demo or megatron")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="phantora-repeat-") as name:
        for job, (cluster, command) in training(Path(name)).items():
            first = None
            for i in range(options.runs if options.only in ("", job) else 0):
                condition = CONDITIONS[i % len(CONDITIONS)]
                with busy() if condition == "busy" else contextlib.nullcontext():
                    outcome = run(Path(name), cluster, late(command, i) if condition == "late ranks" else command)
                first = first or outcome
                wall_s, iteration_s = outcome.report["wall_s"], outcome.report["iteration_ns"] / 1e9
                speculated = outcome.report["speculated_answers"]
                verdict = ", ".join(outcome.differences(first)) or "equal"
                print(
                    f"{job:9}{condition:11}{wall_s:5.0f} s, {iteration_s:.9f} s an iteration, "
                    f"{speculated} answers speculated: {verdict}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
