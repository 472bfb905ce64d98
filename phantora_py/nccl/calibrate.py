"""Repeats the fits behind nccl/fitted.py and prints how far the model of NCCL is from what was measured.

    python -m phantora_py.nccl.calibrate --data ../shared/data [--no-fit]

Each class of figures (a generation of NVLink, a network) is fitted to the tables that `tables` names for it; all
others are held out. A fit goes through the figures one after the other, in ever smaller steps, and takes a step that
lowers the mean absolute logarithm of predicted over measured, in which each table counts alike, plus a pull to where
it started.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from phantora_netsim import Network
from phantora_py.collectives import CollectivePlanner
from phantora_py.nccl.fitted import Inside, Outside
from phantora_py.nccl.tables import NoTablesError, Table, load
from phantora_py.nccl.timing import FITTED, Figures
from phantora_py.topology import Topology

Fitted = Inside | Outside

LARGE_BYTES = 1 << 20
"""From here on a message counts as large."""
_STEPS = (0.25, 0.1, 0.04)
_ROUNDS = 4
"""Through all figures, for each step."""
_PULL = 0.001
"""What it costs a figure to be e times what it starts from, in mean logarithm: what no table shows stays there."""

START: Mapping[str, Fitted] = {
    "volta": Inside(8, (1.0, 2.0, 4.0), (0.8, 0.9, 0.95), 0.4, 15, 25, 0.8, 60, 8, 0.4, 3, 3, 0.9, 15, 0.3, 15, 5),
    "ampere": Inside(8, (1.0, 2.0, 4.0), (0.8, 0.9, 0.95), 0.4, 15, 25, 0.8, 60, 8, 0.4, 3, 3, 0.9, 15, 0.3, 15, 5),
    "hopper": Inside(5, (0.8, 2.0, 4.0), (0.8, 0.9, 0.95), 0.4, 15, 25, 0.8, 60, 8, 0.4, 3, 3, 0.9, 15, 0.3, 20, 6),
    "blackwell": Inside(7, (1.2, 2.0, 4.0), (0.8, 0.9, 0.95), 0.4, 15, 25, 0.7, 60, 8, 0.4, 3, 3, 0.9, 15, 0.3, 30, 6),
    "pcie": Inside(4, (1.5, 2.5, 5.7), (0.8, 0.9, 0.95), 0.4, 15, 25, 0.8, 60, 6, 0.4, 3, 3, 0.9, 15, 0.3, 20, 6),
    "infiniband": Outside((6, 7, 10), (0.6, 0.9, 0.98), 15, 12, 0.9, 25),
    "efa": Outside((28, 35, 40), (0.2, 0.6, 0.8), 400, 60, 0.8, 20),
    "efa-1": Outside((70, 80, 80), (0.2, 0.6, 0.85), 500, 90, 0.8, 10),
    "slingshot": Outside((5, 10, 15), (0.3, 0.5, 0.75), 20, 30, 0.5, 20),
    "ethernet": Outside((15, 20, 30), (0.5, 0.5, 0.9), 30, 20, 0.9, 8),
}
"""Reasoned from NCCL's own constants and the largest and smallest sizes of the tables."""


class Bench:
    """Predicts the rows of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._topology = Topology(table.cluster, Network())

    def predicted_us(self, figures: Figures = FITTED) -> list[float]:
        planner = CollectivePlanner(self._topology, figures=figures)
        return [self._row_ns(planner, row.size_bytes) / 1e3 for row in self.table.rows]

    def _row_ns(self, planner: CollectivePlanner, size_bytes: int) -> int:
        members = self.table.members
        if self.table.op != "send_recv":
            return planner.collective(members, self.table.op, size_bytes).alone_ns
        pairs = zip(members, (*members[1:], members[0]), strict=True)
        return max(planner.transfer(source, target, size_bytes, members).alone_ns for source, target in pairs)

    def errors(self, figures: Figures = FITTED) -> list[float]:
        """predicted / measured - 1, by row."""
        return [
            predicted / row.measured_us - 1
            for predicted, row in zip(self.predicted_us(figures), self.table.rows, strict=True)
        ]

    def loss(self, figures: Figures) -> float:
        return statistics.fmean(abs(math.log1p(error)) for error in self.errors(figures))


@dataclass(frozen=True)
class ErrorRow:
    """Median absolute errors of one table; None where it has no such messages."""

    table: str
    held_out: bool
    doubt: str
    large: float | None
    small: float | None
    bias: float
    """Median of all signed errors."""


def errors(benches: Sequence[Bench]) -> list[ErrorRow]:
    return [_error_row(bench) for bench in benches]


def _error_row(bench: Bench) -> ErrorRow:
    found = list(zip(bench.table.rows, bench.errors(), strict=True))
    large = [abs(error) for row, error in found if row.size_bytes >= LARGE_BYTES]
    small = [abs(error) for row, error in found if row.size_bytes < LARGE_BYTES]
    bias = statistics.median(error for _, error in found)
    return ErrorRow(bench.table.name, not bench.table.fitted, bench.table.doubt, _median(large), _median(small), bias)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


# --- fits ------------------------------------------------------------------------------------------------------------


def fit(name: str, benches: Sequence[Bench]) -> Fitted:
    """The figures of one class, from START."""
    values = _flat(START[name])
    most = [_most(field, start) for field, start in zip(_names(START[name]), values, strict=True)]
    loss = _loss(name, values, benches)
    for step in _STEPS:
        for _ in range(_ROUNDS):
            before = loss
            for place, limit in enumerate(most):
                for factor in (1 + step, 1 / (1 + step)):
                    tried = [*values]
                    tried[place] = float(f"{min(values[place] * factor, limit):.3g}")
                    found = _loss(name, tried, benches)
                    if found < loss - 1e-6:
                        values, loss = tried, found
                        break
            if before - loss < 1e-4:
                break
    return _built(START[name], values)


def _most(field: str, start: float) -> float:
    """The largest value that a figure may take; no table shows a channel by itself."""
    if "efficiency" in field:
        return 1.0
    return 1.5 * start if field == "channel_GBps" else math.inf


def _loss(name: str, values: Sequence[float], benches: Sequence[Bench]) -> float:
    figures = _built(START[name], values)
    if isinstance(figures, Inside):
        changed = replace(FITTED, inside={**FITTED.inside, name: figures})
    else:
        changed = replace(FITTED, outside={**FITTED.outside, name: figures})
    pull = sum(abs(math.log(value / start)) for value, start in zip(values, _flat(START[name]), strict=True))
    return statistics.fmean(bench.loss(changed) for bench in benches) + _PULL * pull


def _flat(figures: Fitted) -> list[float]:
    """All figures in a row."""
    return [one for value in astuple(figures) for one in (value if isinstance(value, tuple) else (value,))]


def _names(figures: Fitted) -> list[str]:
    """Whose they are."""
    values = ((field.name, getattr(figures, field.name)) for field in fields(figures))
    return [name for name, value in values for _ in (value if isinstance(value, tuple) else (value,))]


def _built(like: Fitted, values: Sequence[float]) -> Fitted:
    rest = iter(values)
    parts: list[Any] = [
        tuple(next(rest) for _ in part) if isinstance(part, tuple) else next(rest) for part in astuple(like)
    ]
    return type(like)(*parts)


def fits(benches: Sequence[Bench]) -> Iterator[str]:
    """Every fit, as lines to compare with nccl/fitted.py."""
    for name in START:
        chosen = [bench for bench in benches if bench.table.fitted == name]
        if chosen:
            found = fit(name, chosen)
            yield f'"{name}": {found},'


# --- output ----------------------------------------------------------------------------------------------------------


def show(rows: Sequence[ErrorRow]) -> str:
    """The tables as Markdown, with the medians over them."""
    lines = ["| table | held out | >= 1 MiB | < 1 MiB | bias |", "|---|---|--:|--:|--:|"]
    lines += [
        f"| {row.table}{' *' if row.doubt else ''} | {'yes' if row.held_out else '-'} | {_percent(row.large)} "
        f"| {_percent(row.small)} | {row.bias:+.1%} |"
        for row in rows
    ]
    for name, some in _summaries(rows).items():
        lines.append(f"| **{name}**, {len(some)} tables | | {_over(some, 'large')} | {_over(some, 'small')} | |")
    doubts = dict.fromkeys(row.doubt for row in rows if row.doubt)
    notes = [f"\\* {', '.join(row.table for row in rows if row.doubt == doubt)}: {doubt}" for doubt in doubts]
    return "\n".join([*lines, "", *notes])


def _summaries(rows: Sequence[ErrorRow]) -> Mapping[str, list[ErrorRow]]:
    return {
        "all": list(rows),
        "held out": [row for row in rows if row.held_out],
        "without the doubtful": [row for row in rows if not row.doubt],
    }


def _over(rows: Sequence[ErrorRow], field: str) -> str:
    return _percent(_median([value for row in rows if (value := getattr(row, field)) is not None]))


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m phantora_py.nccl.calibrate", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with nccl_collectives.csv")
    parser.add_argument("--no-fit", action="store_true", help="only print the errors")
    parser.add_argument("--classes", nargs="+", help="fit only these")
    options = parser.parse_args(arguments)
    try:
        tables = load(options.data, lambda message: print(message, file=sys.stderr))
    except NoTablesError as error:
        print(
            f"{error}\n  hint: --data names the folder; `pip install aiconfigurator-core` brings the others",
            file=sys.stderr,
        )
        return 2
    benches = [Bench(table) for table in tables]
    if not options.no_fit:
        chosen = [bench for bench in benches if not options.classes or bench.table.fitted in options.classes]
        for line in fits(chosen):
            print(line, flush=True)
        print()
    print(show(errors(benches)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
