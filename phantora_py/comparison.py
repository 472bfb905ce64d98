"""Prints for people what two reports (docs/report.md) say of one job on two clusters, or of two jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phantora_py.averages import OpAverage, breakdown_average, op_averages, stretch
from phantora_py.plain_console import plain_console
from phantora_py.report_table import duration, gibibytes

_OPS_SHOWN = 16
_NONE = OpAverage(0, 0)
_PARTS = ("compute", "exposed_communication", "idle")

Report = Mapping[str, Any]
Show = Callable[[float], str]
Named = tuple[str, Report]
"""A report, with the name of its file."""


def print_comparison(first: Named, second: Named, console: Console | None = None) -> None:
    out = console or plain_console()
    for letter, (name, report) in zip("AB", (first, second), strict=True):
        out.print(Text.assemble((letter, "bold"), f"  {name}: {report['world_size']} ranks on {report['cluster']}"))
    out.print(_figures(first[1], second[1]))
    stretches = [stretch(report) for _, report in (first, second)]
    if stretches[0] == stretches[1]:
        out.print(_ops(first[1], second[1]))
    else:
        out.print(f"A holds times of {stretches[0]}, B of {stretches[1]}: ops and device time are not compared")


def _figures(first: Report, second: Report) -> Table:
    table = _table("", "A", "B", "difference", title="summary")
    parts = _PARTS if stretch(first) == stretch(second) else ()
    for (name, one, show), (_, other, _) in zip(_rows(first, parts), _rows(second, parts), strict=True):
        difference = "" if one is None or other is None else _difference(one, other, show)
        table.add_row(name, _shown(one, show), _shown(other, show), difference)
    return table


def _rows(report: Report, parts: Iterable[str]) -> Iterable[tuple[str, float | None, Show]]:
    yield "iteration (steady median)", report["iteration_ns"], _time
    for part in parts:
        yield part.replace("_", " "), breakdown_average(report, part), _time
    tokens = report["tokens"]
    yield "tokens/s", tokens and tokens["per_s"], "{:,.0f}".format
    yield "peak memory allocated", _worst(report, "peak_allocated_bytes"), _size
    yield "peak memory reserved", _worst(report, "peak_reserved_bytes"), _size


def _ops(first: Report, second: Report) -> Table | str:
    """Those whose time or number differs, the largest difference first."""
    ours, theirs = op_averages(first), op_averages(second)
    differing = [op for op in {**ours, **theirs} if ours.get(op, _NONE) != theirs.get(op, _NONE)]
    if not differing:
        return "each op ran as often on both, and for as long"
    rows = [_OpRow(op, ours.get(op, _NONE), theirs.get(op, _NONE)) for op in differing]
    rows.sort(key=lambda row: (-abs(row.difference_ns), row.op))
    title = f"device time of ops that differ, {stretch(first)} on average over ranks"
    table = _table("op", "calls A", "calls B", "time A", "time B", "difference", title=title)
    for row in rows[:_OPS_SHOWN]:
        calls = (f"{side.calls:,.10g}" for side in (row.first, row.second))
        times = (_time(side.device_ns) for side in (row.first, row.second))
        table.add_row(row.op[1], *calls, *times, _signed(row.difference_ns, _time))
    if rest := rows[_OPS_SHOWN:]:
        first_ns, second_ns = (sum(row.first.device_ns for row in rest), sum(row.second.device_ns for row in rest))
        difference = _signed(second_ns - first_ns, _time)
        table.add_row(f"{len(rest):,} more", "", "", _time(first_ns), _time(second_ns), difference)
    return table


@dataclass(frozen=True)
class _OpRow:
    op: tuple[str, str]
    first: OpAverage
    second: OpAverage

    @property
    def difference_ns(self) -> float:
        return self.second.device_ns - self.first.device_ns


def _table(*columns: str, title: str) -> Table:
    table = Table(*columns, title=title, title_justify="left")
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _difference(one: float, other: float, show: Show) -> str:
    share = f" ({(other - one) / one * 100:+.1f} %)" if one else ""
    return "none" if one == other else _signed(other - one, show) + share


def _signed(value: float, show: Show) -> str:
    return ("-" if value < 0 else "+") + show(abs(value))


def _shown(value: float | None, show: Show) -> str:
    return "not known" if value is None else show(value)


def _worst(report: Report, key: str) -> int | None:
    return max((rank[key] for rank in report["ranks"] if rank[key] is not None), default=None)


def _time(time_ns: float) -> str:
    return duration(round(time_ns))


def _size(size_bytes: float) -> str:
    return gibibytes(round(size_bytes))
