"""Repeats the fits behind engines/constants.py and prints how far the engine is from what was measured.

    python -m phantora_py.engines.calibrate --data ../shared/data [--no-fit]

Whole training runs are never fitted to. Devices and shapes that a fit has not seen are marked "held out".
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from scipy.optimize import minimize

from phantora_py.engines import measured
from phantora_py.engines.analytic import AnalyticEngine
from phantora_py.engines.constants import (
    ARCHITECTURES,
    ArchitectureConstants,
    AttentionConstants,
    GemmConstants,
)
from phantora_py.engines.measured import NoDataError, Sample
from phantora_py.gpus import find_gpu

GEMM_DEVICES = {"ampere": "a100_sxm", "ada": "l40s", "hopper": "h100_sxm", "blackwell": "b200_sxm"}
"""Systems whose products the constants of each generation are fitted to."""
ATTENTION_FITS = (
    ("ampere", "flash"),
    ("ada", "flash"),
    ("hopper", "flash"),
    ("hopper", "cudnn"),
    ("blackwell", "cudnn"),
)
FITTED_PRODUCTS = "gemm bf16, sides >= 256"
"""Products as training has them; the errors are shown for thin ones too."""
_FIT_SHAPES = 500
_ROUNDS = 400


# --- errors ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ErrorRow:
    """Errors (predicted / measured - 1) of one op class on one GPU in one table."""

    op_class: str
    gpu: str
    table: str
    held_out: str
    """"device", "shapes", or "" where the constants were fitted to these samples or stated from them."""
    count: int
    median: float
    """Of the absolute errors."""
    p90: float
    bias: float
    """Median of the signed errors."""


def load(data: Path, tables: Sequence[str], warn: Callable[[str], None]) -> list[Sample]:
    """Every sample of `tables` that can be found; `warn` is told of tables that are not there."""
    samples: list[Sample] = []
    for table in tables:
        try:
            samples += TABLES[table](data)
        except NoDataError as missing:
            warn(f"left out: {missing}")
    return samples


def _silicon(_: Path) -> Iterator[Sample]:
    for system in measured.SILICON_GPUS:
        yield from measured.silicon_gemm(system)
    for system in ("h100_sxm", "h200_sxm", "b200_sxm"):
        yield from measured.silicon_gemm(system, "fp8", 500)
    for system in ("a100_sxm", "l40s"):
        yield from measured.silicon_attention(system)


TABLES: dict[str, Callable[[Path], Iterator[Sample]]] = {
    "silicon": _silicon,
    "simumax": measured.simumax,
    "vidur": measured.vidur,
    "neusight": measured.neusight,
    "flash": measured.flash,
}


def errors(samples: Sequence[Sample]) -> list[ErrorRow]:
    """The error table of the engine as it is, by op class and GPU."""
    engines: dict[tuple[str, bool], AnalyticEngine] = {}
    groups: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for sample in samples:
        key = (sample.gpu, sample.sustained)
        if key not in engines:
            engines[key] = AnalyticEngine(find_gpu(sample.gpu), sustained=sample.sustained)
        predicted = engines[key].cost(sample.signature).duration_ns
        groups[sample.op_class, sample.gpu, sample.table, held_out(sample)].append(predicted / sample.measured_ns - 1)
    return [_row(*key, values) for key, values in sorted(groups.items())]


def _row(op_class: str, gpu: str, table: str, held: str, values: list[float]) -> ErrorRow:
    absolute = sorted(map(abs, values))
    p90 = absolute[min(math.ceil(0.9 * len(absolute)), len(absolute)) - 1]
    bias = statistics.median(values)
    return ErrorRow(op_class, gpu, table, held, len(values), statistics.median(absolute), p90, bias)


_FITTED_DEVICES = {
    ("silicon", "A100-SXM-80GB"),
    ("silicon", "H100-SXM-80GB"),
    ("silicon", "B200-SXM"),
    ("neusight", "A100-PCIE-80GB"),
    ("vidur", "H100-SXM-80GB"),
}
_FITTED_HALVES = {
    ("simumax", "A100-PCIE-80GB"),
    ("simumax", "B200-SXM"),
    ("flash", "H100-SXM-80GB"),
    ("silicon", "L40S"),
}


def held_out(sample: Sample) -> str:
    """What keeps a sample out of the fits: its device, or its shape's hash where the device is fitted to."""
    if sample.table == "simumax" and sample.op_class.startswith("gemm"):
        return ""  # The sustained rates are medians of these.
    if "attention" in sample.op_class or (sample.table, sample.gpu) in _FITTED_HALVES:
        return "shapes" if sample.held_out else ""
    is_memory = not sample.op_class.startswith("gemm")
    if (sample.table, sample.gpu) in _FITTED_DEVICES and is_memory == (sample.table in ("neusight", "vidur")):
        return ""
    return "device"


def show(rows: Sequence[ErrorRow]) -> str:
    """The table as Markdown."""
    lines = ["| op class | GPU | table | held out | n | median | p90 | bias |", "|---|---|---|---|--:|--:|--:|--:|"]
    for row in rows:
        names = f"{row.op_class} | {row.gpu} | {row.table} | {row.held_out or '-'}"
        lines.append(f"| {names} | {row.count} | {row.median:.1%} | {row.p90:.1%} | {row.bias:+.1%} |")
    return "\n".join(lines)


# --- fits ------------------------------------------------------------------------------------------------------------


def fit_gemm(architecture: str, samples: Sequence[Sample]) -> GemmConstants:
    """Least mean absolute logarithm of predicted / measured, over short products of one device."""
    start = ARCHITECTURES[architecture]

    def limited(values: Sequence[float]) -> GemmConstants:
        constants = GemmConstants(*values)
        shares = {
            "memory_efficiency": min(constants.memory_efficiency, 0.95),
            "quantisation": min(constants.quantisation, 1.0),
        }
        return replace(constants, **shares)

    def build(values: Sequence[float]) -> ArchitectureConstants:
        return replace(start, gemm=limited(values))

    return limited(_descend(astuple(start.gemm), build, samples))


def fit_attention(architecture: str, implementation: str, samples: Sequence[Sample]) -> AttentionConstants:
    """The same for one implementation of attention."""
    start = ARCHITECTURES[architecture]

    def build(values: Sequence[float]) -> ArchitectureConstants:
        return replace(start, attention={**start.attention, implementation: AttentionConstants(*values)})

    return AttentionConstants(*_descend(astuple(start.attention[implementation]), build, samples))


def _descend(
    start: Sequence[float], build: Callable[[Sequence[float]], ArchitectureConstants], samples: Sequence[Sample]
) -> list[float]:
    """Nelder-Mead over the logarithms of the constants, which keeps them positive."""

    def loss(logs: Sequence[float]) -> float:
        constants = build([math.exp(value) for value in logs])
        engines = {gpu: AnalyticEngine(find_gpu(gpu), sustained=False, constants=constants) for gpu in gpus}
        ratios = (engines[s.gpu].cost(s.signature).duration_ns / s.measured_ns for s in samples)
        return statistics.fmean(abs(math.log(ratio)) for ratio in ratios)

    gpus = {sample.gpu for sample in samples}
    found = minimize(
        loss, [math.log(max(value, 1e-3)) for value in start], method="Nelder-Mead", options={"maxfev": _ROUNDS}
    )
    return [float(f"{math.exp(value):.4g}") for value in found.x]


def fits(samples: Sequence[Sample]) -> Iterator[str]:
    """Every fit, as lines to compare with engines/constants.py."""
    for architecture, system in GEMM_DEVICES.items():
        gpu = measured.SILICON_GPUS[system]
        chosen = [s for s in samples if s.table == "silicon" and s.gpu == gpu and s.op_class == FITTED_PRODUCTS]
        chosen = [s for s in chosen if not held_out(s)][:_FIT_SHAPES]
        if chosen:
            yield f"{architecture}: {fit_gemm(architecture, chosen)}"
    for architecture, implementation in ATTENTION_FITS:
        chosen = [
            s
            for s in samples
            if s.op_class.startswith("attention")
            and s.op_class.endswith(implementation)
            and find_gpu(s.gpu).architecture == architecture
            and not held_out(s)
        ]
        if chosen:
            yield f"{architecture} {implementation}: {fit_attention(architecture, implementation, chosen)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m phantora_py.engines.calibrate", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of measured tables (CSV)")
    parser.add_argument("--no-fit", action="store_true", help="only print the errors")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), help="read only these")
    options = parser.parse_args(arguments)
    samples = load(options.data, options.tables, lambda message: print(message, file=sys.stderr))
    if not options.no_fit:
        for line in fits(samples):
            print(line, flush=True)
        print()
    print(show(errors(samples)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
