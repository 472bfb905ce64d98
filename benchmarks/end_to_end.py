"""Whole training iterations against ones that others measured: `python -m benchmarks.end_to_end --data DATA`.

DATA is a folder with e2e_training.csv. Which rows are run was settled before any of them was:

- llm-foundry's MPT on one node of 8 GPUs, bf16: 760m, 3b, 7b and 13b at 1,024, 2,048 and 8,192 tokens, on H100 and A100
  of 80 GB: the 22 that there are of these 24.
- vTrain's GPT of width 2,048 with 24 layers: for each layout of 2 and of 8 GPUs the row with the largest
  micro-batch, among those the one with the largest batch.

Of MPT's many micro-batches, all alike, steps of one and of two are emulated, and the difference stands for each further
one. What the jobs do otherwise than those of then is in their docstrings (benchmarks/jobs). "then" is the error with an
estimate of the larger part of that: MPT ran FlashAttention 1, by published rates of both versions; Megatron fused
kernels, by the bytes that those do not move.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

JOBS = Path(__file__).parent / "jobs"

MPT_CLUSTERS = {"h100_80gb": "dgx-h100", "a100_80gb": "dgx-a100"}
MPT_MODELS = ("MPT-760m", "MPT-3b", "MPT-7b", "MPT-13b")
MPT_SEQUENCES = (1024, 2048, 8192)
FLASH_TFLOPS = {
    "h100_80gb": {1024: (109, 221), 2048: (108, 265), 8192: (135, 308)},
    "a100_80gb": {1024: (61, 133), 2048: (68, 155), 8192: (78, 182)},
}
"""FlashAttention 1 and 2, forward and backward, causal, heads 128 wide, by length: Dao-AILab/flash-attention's charts
assets/flash2_*_fwd_bwd_benchmark.png. A100: version 1 in Triton, as MPT had it; H100: in CUDA, for want of Triton's."""

A100_BYTES_PER_S = 0.87 * 2039e9
"""What streaming kernels reach (docs/accuracy.md)."""

VTRAIN_GPUS = (2, 8)
VTRAIN_WIDTH, VTRAIN_LAYERS = 2048, 24

Row = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """One measured iteration and the job that stands for it."""

    name: str
    cluster: str
    ranks: int
    job: tuple[str, ...]
    """Script and arguments."""
    micro_batches: int
    """Of a data-parallel rank, in one iteration."""
    emulated: tuple[int, ...]
    """Micro-batches of each step of the job."""
    measured_s: float
    then_s: float
    """What kernels of then take longer (or less) than the job's, by estimate."""

    def command(self, report: Path) -> list[str]:
        phantora = [sys.executable, "-m", "phantora_launcher", "run", "--cluster", self.cluster, "--json", str(report)]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(self.ranks)]
        return [*phantora, "--", *torchrun, *self.job]

    def iteration_s(self, durations_ns: Sequence[int]) -> float:
        """From the durations of the steps: the last, and its difference to the one before for each that it lacks."""
        *_, before, last = durations_ns
        further = self.micro_batches - self.emulated[-1]
        return (last + further * (last - before)) / 1e9


@dataclass(frozen=True)
class Outcome:
    case: Case
    simulated_s: float
    compute: float
    exposed: float
    idle: float
    peak_bytes: int
    wall_s: float

    @property
    def error(self) -> float:
        """Above 0: the simulated iteration is longer than the measured one."""
        return self.simulated_s / self.case.measured_s - 1

    @property
    def error_then(self) -> float:
        """With the kernels of then."""
        return self.error + self.case.then_s / self.case.measured_s


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.end_to_end", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with e2e_training.csv")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases to run, as a file pattern: 'h100 *'")
    parser.add_argument("--list", action="store_true", help="only say which cases there are")
    args = parser.parse_args()
    with open(args.data / "e2e_training.csv", newline="") as file:
        cases = [case for case in chosen(list(csv.DictReader(file))) if fnmatch(case.name, args.only)]
    if not cases:
        parser.error(f"no case is called {args.only!r}\n  hint: --list shows their names")
    if args.list:
        print("\n".join(case.name for case in cases))
        return 0
    print(HEADER, flush=True)
    outcomes = []
    for case in cases:
        outcomes.append(run(case))
        print(line(outcomes[-1]), flush=True)
    print(summary(outcomes))
    return 0


def chosen(rows: Sequence[Row]) -> list[Case]:
    return [mpt_case(row) for row in rows if is_chosen_mpt(row)] + [vtrain_case(row) for row in chosen_vtrain(rows)]


def is_chosen_mpt(row: Row) -> bool:
    return (
        row["gpu"] in MPT_CLUSTERS
        and row["model"] in MPT_MODELS
        and row["precision"] == "amp_bf16"
        and int(row["n_gpus"]) == 8
        and int(row["seq"]) in MPT_SEQUENCES
    )


def mpt_case(row: Row) -> Case:
    ranks, sequence = int(row["n_gpus"]), int(row["seq"])
    tokens_per_s = float(row["value"]) * ranks
    options = ["--width", row["hidden"], "--layers", row["layers"], "--sequence", row["seq"]]
    count = micro_batches(row)
    emulated = (1, 1) if count == 1 else (1, 1, 2)
    options += ["--micro-batch", row["mbs"], "--micro-batches", *map(str, emulated)]
    recomputes = row["ac"] == "full"
    if recomputes:
        options.append("--checkpoint")
    name = f"{row['gpu'].split('_')[0]} {row['model'].lower()} {sequence}{' recompute' if recomputes else ''}"
    job = (str(JOBS / "mpt.py"), *options)
    measured_s = int(row["gbs"]) * sequence / tokens_per_s
    then_s = count * older_attention_s(row)
    return Case(name, MPT_CLUSTERS[row["gpu"]], ranks, job, count, emulated, measured_s, then_s)


def older_attention_s(row: Row) -> float:
    """What FlashAttention 1 takes longer than 2 for a micro-batch; the backward pass is 2.5 times the forward one."""
    sequence = int(row["seq"])
    forward_flops = 4 * sequence**2 * int(row["hidden"]) * int(row["layers"]) * int(row["mbs"]) / 2
    passes = 4.5 if row["ac"] == "full" else 3.5
    older, newer = FLASH_TFLOPS[row["gpu"]][sequence]
    return passes * forward_flops / 1e12 * (1 / older - 1 / newer)


def chosen_vtrain(rows: Iterable[Row]) -> list[Row]:
    """The largest micro-batch, then batch, of every layout."""
    best: dict[tuple[int, ...], Row] = {}
    for row in rows:
        if "vTrain" not in row["source"]:
            continue
        if (int(row["hidden"]), int(row["layers"])) != (VTRAIN_WIDTH, VTRAIN_LAYERS):
            continue
        if int(row["n_gpus"]) not in VTRAIN_GPUS:
            continue
        layout = tuple(int(row[key]) for key in ("n_gpus", "tp", "pp", "dp"))
        if layout not in best or batch_order(row) > batch_order(best[layout]):
            best[layout] = row
    return [best[layout] for layout in sorted(best)]


def batch_order(row: Row) -> tuple[int, int]:
    return int(row["mbs"]), int(row["gbs"])


def vtrain_case(row: Row) -> Case:
    options = ["--tensor", row["tp"], "--pipeline", row["pp"], "--layers", row["layers"], "--hidden", row["hidden"]]
    options += ["--heads", row["heads"], "--sequence", row["seq"]]
    count = micro_batches(row)
    options += ["--micro-batch", row["mbs"], "--micro-batches", str(count), "--steps", "2"]
    name = f"a100 gpt tp{row['tp']} pp{row['pp']} dp{row['dp']}"
    job = (str(JOBS / "gpt_fp16.py"), *options)
    then_s = -(count + int(row["pp"]) - 1) * fused_kernels_s(row)
    return Case(name, "dgx-a100", int(row["n_gpus"]), job, count, (count, count), float(row["value"]) / 1e3, then_s)


def fused_kernels_s(row: Row) -> float:
    """What Megatron's fused kernels save a pipeline stage in a micro-batch: the bytes that they do not move.

    In both forward passes (one recomputes) of each layer the masked scores, the sum with the bias before GELU, and
    twice those with bias and after dropout, are neither written nor read; in the backward pass softmax multiplies its
    gradient and result, three more passes over the scores.
    """
    tokens, tensor, width = int(row["mbs"]) * int(row["seq"]), int(row["tp"]), int(row["hidden"])
    scores = tokens * int(row["seq"]) * int(row["heads"]) / tensor
    hidden, inner = tokens * width, 4 * tokens * width / tensor
    elements = (2 * 2 + 3) * scores + 2 * 2 * inner + 2 * 2 * 4 * hidden
    return 2 * elements * int(row["layers"]) / int(row["pp"]) / A100_BYTES_PER_S


def micro_batches(row: Row) -> int:
    batch, at_once = int(row["gbs"]), int(row["mbs"]) * int(row["dp"])
    if batch % at_once:
        raise ValueError(f"row {row['id']}: a batch of {batch} is no multiple of {at_once}\n  hint: leave the row out")
    return batch // at_once


def run(case: Case) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        report_file = Path(folder) / "report.json"
        done = subprocess.run(case.command(report_file), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{case.name}: the job ended with code {done.returncode}\n{done.stdout}{done.stderr}")
        return outcome(case, json.loads(report_file.read_text()))


def outcome(case: Case, report: Mapping[str, Any]) -> Outcome:
    shares = report["breakdown"]
    return Outcome(
        case,
        case.iteration_s([iteration["duration_ns"] for iteration in report["iterations"]]),
        shares["compute"],
        shares["exposed_communication"],
        shares["idle"],
        max(rank["peak_allocated_bytes"] for rank in report["ranks"]),
        report["wall_s"],
    )


HEADER = (
    "| case | measured s | simulated s | error | then | computing | exposed | idle | peak GiB | wall s |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def line(outcome: Outcome) -> str:
    return (
        f"| {outcome.case.name} | {outcome.case.measured_s:.3f} | {outcome.simulated_s:.3f} | {outcome.error:+.1%} "
        f"| {outcome.error_then:+.1%} | {outcome.compute:.1%} | {outcome.exposed:.1%} | {outcome.idle:.1%} "
        f"| {outcome.peak_bytes / 2**30:.1f} | {outcome.wall_s:.0f} |"
    )


def summary(outcomes: Sequence[Outcome]) -> str:
    now = spread("error", [(outcome.error, outcome.case.name) for outcome in outcomes])
    then = spread("then", [(outcome.error_then, outcome.case.name) for outcome in outcomes])
    return f"\n{len(outcomes)} cases\n{now}\n{then}"


def spread(title: str, errors: Sequence[tuple[float, str]]) -> str:
    values = [error for error, _ in errors]
    worst, name = max(errors, key=lambda pair: abs(pair[0]))
    return (
        f"{title}: median {statistics.median(values):+.1%}, absolute {statistics.median(map(abs, values)):.1%}, "
        f"worst {worst:+.1%} ({name})"
    )


if __name__ == "__main__":
    raise SystemExit(main())
