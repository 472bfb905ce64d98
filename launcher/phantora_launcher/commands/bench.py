"""`phantora bench`: the simulated nccl-tests, and how far the model behind them is from measured tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from phantora_launcher.errors import LaunchError
from phantora_launcher.job_cluster import job_cluster
from phantora_py.cluster import Cluster
from phantora_py.nccl.bench import DTYPES, OPS, CollectiveBench, Line, Loop, dtype_named, op_named, sizes

MOST_BYTES = 1 << 50
MOST_SIZES = 100_000
_TIME = 5
"""Column of nccl-tests, from 0."""
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

bench = typer.Typer(help="Benchmarks without a GPU.", no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    app.add_typer(bench, name="bench")


@bench.command()
def collectives(
    cluster: Annotated[str, typer.Option(metavar="NAME|FILE.toml", help="Cluster; NAME:N has N nodes.")] = "dgx-h100",
    op: Annotated[str, typer.Option(help=f"One of {', '.join(OPS)}.")] = "all_reduce",
    begin: Annotated[str, typer.Option("-b", "--minbytes", help="Smallest size: bytes, or with K, M, G.")] = "8",
    end: Annotated[str, typer.Option("-e", "--maxbytes", help="Largest size.")] = "8G",
    factor: Annotated[float, typer.Option("-f", "--stepfactor", help="From one size to the next.")] = 2.0,
    step: Annotated[str, typer.Option("-i", "--stepbytes", help="Added instead, if not 0.")] = "0",
    gpus: Annotated[int | None, typer.Option("-g", "--ngpus", help="GPUs of each node. [default: all]")] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes. [default: the cluster's]")] = None,
    processes: Annotated[
        int | None,
        typer.Option("-p", "--processes", help="Processes of a node. [default: 1 on one node, else one a GPU]"),
    ] = None,
    iterations: Annotated[
        int, typer.Option("-n", "--iters", min=1, max=100_000, help="Operations in a row; their mean is shown.")
    ] = 20,
    dtype: Annotated[str, typer.Option("-d", "--dtype", help=f"One of {', '.join(DTYPES)}.")] = "float",
    explain: Annotated[bool, typer.Option(help="Also show the algorithm and protocol that NCCL takes.")] = False,
    beside: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also show how far off what nccl-tests printed is.")
    ] = None,
) -> None:
    """Show what nccl-tests would: time and bandwidth of a collective, size by size.

    NCCL_... variables of the environment count as they would for nccl-tests (docs/collectives.md).

    \b
    Examples:
      phantora bench collectives --cluster dgx-h100
      phantora bench collectives --cluster dgx-h100 --nodes 2 --op all_gather -b 1M -e 1G -f 2 -g 8
      phantora bench collectives --cluster dgx-h100 -b 1K -e 256M -f 4 --beside printed.txt
      NCCL_ALGO=Ring phantora bench collectives --cluster dgx-a100:4 --op all_reduce -b 1K -e 16M -f 4 --explain
    """
    machine = _cluster(cluster, nodes)
    each = machine.node.gpus if gpus is None else gpus
    if not 1 <= each <= machine.node.gpus:
        raise LaunchError(f"-g {each}: a node of {machine.name} has {machine.node.gpus} GPUs", "give 1 to that many")
    if processes is None:  # as nccl-tests is started: without MPI, or with it
        processes = 1 if machine.nodes == 1 else each
    if processes < 1 or each % processes:
        raise LaunchError(f"-p {processes} does not divide the {each} GPUs of a node", "give a divisor")
    op, dtype = _one_of("--op", op, op_named, OPS), _one_of("--dtype", dtype, dtype_named, DTYPES)
    wanted = _sizes(begin, end, factor, step)
    more = [*(_TAKEN if explain else ()), *(_differences(_printed_us(beside)) if beside else ())]
    try:
        table = CollectiveBench(machine, each, machine.nodes, Loop(each // processes, iterations))
        first, *others = wanted
        lines = chain([table.line(op, first, dtype)], (table.line(op, size, dtype) for size in others))
        print(
            f"# phantora {op}: {machine.nodes} x {each} {machine.gpu.name} of {machine.name}, "
            f"NCCL {machine.nccl.version}"
        )
        _show(lines, more)
    except ValueError as error:  # NCCL_ALGO and NCCL_PROTO leave nothing
        what, _, hint = str(error).partition("\n  hint: ")
        raise LaunchError(what, hint or "docs/collectives.md lists what is understood") from error


@bench.command()
def accuracy(
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With nccl_collectives.csv; the other tables are a package's.")
    ] = None,
) -> None:
    """Show how far the model of NCCL is from measured tables.

    \b
    Examples:
      phantora bench accuracy
      phantora bench accuracy --data DATA
    """
    from phantora_py.nccl import calibrate  # it needs more packages than the emulator

    arguments = ["--no-fit", *(["--data", str(data)] if data else [])]
    raise typer.Exit(calibrate.main(arguments))


def _cluster(name: str, nodes: int | None) -> Cluster:
    if nodes is not None:
        base, _, count = name.rpartition(":")
        name = f"{base if base and count.isdigit() else name}:{nodes}"
    return job_cluster(name)


def _bytes(option: str, text: str) -> int:
    """A size as nccl-tests takes it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    size = float(found[1]) * (1 << _UNITS[found[2].upper()]) if found else -1
    if not 0 <= size <= MOST_BYTES:
        raise LaunchError(f"{option} {text!r} is no size", "bytes up to 1024T, like 8, 64K, 128M or 8G")
    return int(size)


def _sizes(begin: str, end: str, factor: float, step: str) -> list[int]:
    first, last, added = _bytes("-b", begin), _bytes("-e", end), _bytes("-i", step)
    if first > last:
        raise LaunchError(f"-b {begin} is more than -e {end}", "sizes go from -b to -e")
    if not 1 < factor <= MOST_BYTES:
        raise LaunchError(f"-f {factor:g} leads to no next size", "give more than 1, like -f 2")
    found = list(islice(sizes(first, last, factor, added), MOST_SIZES + 1))
    if len(found) > MOST_SIZES:
        count = f"{(last - first) // added + 1:,}" if added else f"more than {MOST_SIZES:,}"
        raise LaunchError(
            f"-b {begin} -e {end} {f'-i {step}' if added else f'-f {factor:g}'} are {count} sizes",
            f"at most {MOST_SIZES:,} are shown; a larger step gives fewer",
        )
    return found


def _one_of(option: str, value: str, named: Callable[[str], str | None], known: Iterable[str]) -> str:
    """What a value names, as nccl-tests writes it."""
    name = named(value)
    if name is None:
        raise LaunchError(f"{option} {value!r} is not known", f"one of {', '.join(known)}")
    return name


def _printed_us(file: Path) -> dict[int, float]:
    """Size → out-of-place time, of nccl-tests' output."""
    try:
        rows = [line.split() for line in file.read_text(errors="replace").splitlines() if not line.startswith("#")]
    except OSError as error:
        raise LaunchError(f"--beside {file}: {error.strerror}", "name a file with nccl-tests' output") from error
    found = {int(row[0]): float(row[_TIME]) for row in rows if len(row) > _TIME and _is_line(row)}
    if not found:
        raise LaunchError(f"--beside {file}: holds no line of nccl-tests", "name a file with nccl-tests' output")
    return found


def _is_line(row: list[str]) -> bool:
    return row[0].isdigit() and re.fullmatch(r"\d+(\.\d+)?", row[_TIME]) is not None


@dataclass(frozen=True)
class _Column:
    """One that nccl-tests does not have."""

    head: str
    unit: str
    width: int
    cell: Callable[[Line], str]


_TAKEN = (
    _Column("algorithm", "", 15, lambda line: line.algorithm),
    _Column("proto", "", 8, lambda line: line.protocol),
)


def _differences(printed_us: dict[int, float]) -> tuple[_Column, ...]:
    def printed(line: Line) -> str:
        return _us(printed_us[line.size_bytes]) if line.size_bytes in printed_us else "-"

    def difference(line: Line) -> str:
        theirs_us = printed_us.get(line.size_bytes)
        return f"{(theirs_us / line.time_us - 1) * 100:+.2f}" if theirs_us else "-"

    return _Column("printed", "(us)", 12, printed), _Column("differs", "(%)", 9, difference)


def _show(lines: Iterable[Line], more: Sequence[_Column]) -> None:
    """Each as soon as it is known. Sizes that are rounded to the one before are left out."""
    print("#\n#" + " " * 61 + "out-of-place")
    heads = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw")
    units = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)")
    for texts, added in ((heads, [each.head for each in more]), (units, [each.unit for each in more])):
        row = "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}".format(*texts)
        print((row + "".join(f"{text:>{each.width}}" for text, each in zip(added, more, strict=True))).rstrip())
    busbws: list[float] = []
    last = None
    for line in lines:
        if line.size_bytes == last:
            continue
        last = line.size_bytes
        busbws.append(line.busbw)
        print(
            f"{line.size_bytes:12}  {line.count:12}  {line.dtype:>8}  {line.redop:>6}  {line.root:6}  "
            f"{_us(line.time_us):>7}  {line.algbw:6.2f}  {line.busbw:6.2f}"
            + "".join(f"{each.cell(line):>{each.width}}" for each in more),
            flush=True,
        )
    print(f"# Avg bus bandwidth    : {sum(busbws) / len(busbws):g}")


def _us(time_us: float) -> str:
    """As nccl-tests: two decimals below 10,000 µs, fewer above."""
    for decimals, limit in ((2, 1e4), (1, 1e5)):
        if time_us < limit:
            return f"{time_us:.{decimals}f}"
    return f"{time_us:.0f}"
