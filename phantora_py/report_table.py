"""Prints a report (docs/report.md) for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phantora_py.averages import op_averages, stretch
from phantora_py.plain_console import plain_console
from phantora_py.rank_list import ending, named_ranks

_ITERATIONS_SHOWN = 20
_SITES_SHOWN = 8
_LINKS_SHOWN = 3
_OPS_SHOWN = 8
_UNKNOWN_READS = (
    "what nothing computed reads as zero: a loss or norm that was printed may be such a value, or come from one;\n"
    "`--value-limit BYTES` has larger ops computed for real"
)


def print_report(result: Mapping[str, Any], all_ranks: bool = False, console: Console | None = None) -> None:
    """`all_ranks`: list every rank's memory instead of the worst one's. `console`: a plain one."""
    out = console or plain_console()
    out.print()
    out.print(Text.assemble(("phantora", "bold"), f": {result['world_size']} ranks on {result['cluster']}"))
    if failed := [rank for rank in result["ranks"] if rank["exit_code"]]:
        ended = f" ({_endings(failed)}); this is what ran until then"
        out.print(Text.assemble(("the job did not end well", "bold"), ended))
    if result["iterations"]:
        out.print(_iterations(result["iterations"]))
    out.print(_summary(result))
    if result["ops"]:
        out.print(_ops(result))
    if all_ranks or result["world_size"] <= 8:
        out.print(_ranks(result["ranks"]))
    for line in _remarks(result):
        out.print(line)


def _endings(failed: Sequence[Mapping[str, Any]]) -> str:
    ranks: defaultdict[int, list[int]] = defaultdict(list)
    for rank in failed:
        ranks[rank["exit_code"]].append(rank["rank"])
    return "; ".join(f"{named_ranks(ranks[code])}: {ending(code)}" for code in sorted(ranks, reverse=True))


def _iterations(iterations: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("iteration", "simulated time", "", title="iterations", title_justify="left")
    table.columns[0].justify = table.columns[1].justify = "right"
    shown = iterations
    if len(iterations) > _ITERATIONS_SHOWN:
        shown = [*iterations[: _ITERATIONS_SHOWN // 2], *iterations[-_ITERATIONS_SHOWN // 2 :]]
    for position, iteration in enumerate(shown):
        if position and iteration["index"] > shown[position - 1]["index"] + 1:
            table.add_row("…", "…", f"{len(iterations) - len(shown)} more")
        note = "warm-up" if iteration["warm_up"] else ""
        table.add_row(str(iteration["index"] + 1), duration(iteration["duration_ns"]), note)
    return table


def _summary(result: Mapping[str, Any]) -> Table:
    table = Table(show_header=False, title="summary", title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, value in _summary_rows(result):
        table.add_row(name, value)
    return table


def _summary_rows(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [("iteration (steady median)", _or_unknown(result["iteration_ns"], duration, "no optimizer steps seen"))]
    breakdown, tokens = result["breakdown"], result["tokens"]
    if breakdown:
        rows += [
            ("compute", _percent(breakdown["compute"])),
            ("exposed communication", _percent(breakdown["exposed_communication"])),
            ("idle", _percent(breakdown["idle"])),
        ]
    if tokens:
        rows += [
            ("tokens/s", f"{tokens['per_s']:,.0f}"),
            ("tokens/s a rank", f"{tokens['per_s_per_rank']:,.0f}"),
        ]
    busiest = result["links"][:_LINKS_SHOWN]
    rows += [
        ("peak memory allocated", _worst(result["ranks"], "peak_allocated_bytes")),
        ("peak memory reserved", _worst(result["ranks"], "peak_reserved_bytes")),
        ("device time by engine", _engines(result["cost_engines"])),
        *([("busiest links", "\n".join(_link(link, result) for link in busiest))] if busiest else []),
        ("unknown reads", f"{result['unknown_reads']:,}"),
        ("speculated answers", f"{result['speculated_answers']} ({result['corrected_answers']} corrected)"),
        ("wall time", f"{result['wall_s']:.1f} s"),
    ]
    return rows


def _engines(shares: Mapping[str, float]) -> str:
    largest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {_percent(share)}" for name, share in largest) or "nothing ran on a device"


def _link(link: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    name = link["link"] + (f" and {link['alike'] - 1:,} alike" if link["alike"] > 1 else "")
    if result["iteration_ns"] is None:
        return f"{name}: filled for {duration(link['full_ns'])}"
    full_ns = link["iteration_full_ns"]
    return f"{name}: filled for {duration(full_ns)} ({_percent(full_ns / result['iteration_ns'])})"


def _ops(result: Mapping[str, Any]) -> Table:
    title = f"device time by op, {stretch(result)} on average over ranks"
    table = Table("op", "calls", "time", "share", title=title, title_justify="left")
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
    averages = op_averages(result)
    total_ns = sum(average.device_ns for average in averages.values())
    rows = [(name, f"{average.calls:,.10g}", average.device_ns) for (_, name), average in averages.items()]
    if rest := rows[_OPS_SHOWN:]:
        rows[_OPS_SHOWN:] = [(f"{len(rest):,} more", "", sum(time_ns for _, _, time_ns in rest))]
    for name, calls, time_ns in rows:
        table.add_row(name, calls, duration(round(time_ns)), _percent(time_ns / total_ns))
    return table


def _ranks(ranks: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("rank", "node", "peak allocated", "peak reserved", "clock", title="ranks", title_justify="left")
    for column in table.columns:
        column.justify = "right"
    for rank in ranks:
        table.add_row(
            str(rank["rank"]),
            str(rank["node"]),
            _or_unknown(rank["peak_allocated_bytes"], gibibytes),
            _or_unknown(rank["peak_reserved_bytes"], gibibytes),
            duration(rank["clock_ns"]),
        )
    return table


def _remarks(result: Mapping[str, Any]) -> list[str]:
    sites = sorted(result["unknown_read_sites"], key=lambda site: (-site["count"], site["op"], site["site"]))
    lines = [_UNKNOWN_READS] if sites else []
    lines += [
        f"unknown read: {site['op']} at {site['site']}: {site['count']:,} times, {site['bytes']:,} bytes"
        for site in sites[:_SITES_SHOWN]
    ]
    if len(sites) > _SITES_SHOWN:
        lines.append(f"unknown read: {len(sites) - _SITES_SHOWN} more places")
    return lines + [f"guessed: {text}" for text in result["guessed"]]


def _worst(ranks: Sequence[Mapping[str, Any]], key: str) -> str:
    known = [(rank[key], -rank["rank"]) for rank in ranks if rank[key] is not None]
    if not known:
        return "not known"
    value, negated = max(known)
    return f"{gibibytes(value)} (rank {-negated})"


def _or_unknown(value: Any, show: Any, unknown: str = "not known") -> str:
    return unknown if value is None else str(show(value))


def gibibytes(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.2f} GiB"


def duration(time_ns: int) -> str:
    """In the unit in which people would say it."""
    if time_ns >= 10**9:
        return f"{time_ns / 10**9:.3f} s"
    if time_ns >= 10**6:
        return f"{time_ns / 10**6:.3f} ms"
    return f"{time_ns / 10**3:.3f} µs"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
