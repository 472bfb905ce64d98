"""`phantora run`: a job on an emulated cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phantora_launcher.errors import LaunchError
from phantora_launcher.machine import HostTime
from phantora_launcher.simulator import ReportOptions
from phantora_launcher.supervisor import Job, supervise


def add_to(app: typer.Typer) -> None:
    # Options after the first word of CMD belong to CMD, with or without "--" before it.
    app.command("run", context_settings={"allow_interspersed_args": False})(run)


def run(
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="The job, as you start it on real GPUs.")],
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml", help="A preset (`phantora clusters`) or a file; NAME:N for N nodes. Required."
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON.")] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a trace for Perfetto; compressed if it ends in .gz.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Record what the ranks did, to simulate it again later.")
    ] = None,
    all_ranks: Annotated[
        bool, typer.Option("--all-ranks", help="Show the memory of every rank, not the worst.")
    ] = False,
    host_time: Annotated[
        HostTime, typer.Option(help="Host time between GPU calls: calibrated model, this machine's CPU time, or none.")
    ] = HostTime.MODELLED,
    value_limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="BYTES",
            show_default=False,
            help="Ops on tensors of up to so many bytes in all are computed for real (262144 if not given).",
        ),
    ] = None,
    native_clock: Annotated[
        bool, typer.Option("--native-clock", help="Show simulated time to a program in C or C++, too.")
    ] = False,
    ranks_per_node: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            show_default=False,
            help="Ranks of an MPI program on each node (as many as it has GPUs if not given).",
        ),
    ] = None,
) -> None:
    """Run a job on an emulated cluster and report its simulated time and memory.

    CMD is what you type today: torchrun ..., python -m torch.distributed.run ..., mpirun ..., bash run.sh, or python
    train.py (one rank). torchrun and mpirun start the ranks of all nodes here: one command stands for the cluster.
    """
    if cluster is None:
        raise LaunchError("no cluster is given", "--cluster dgx-h100, say; `phantora clusters` lists the presets")
    report = ReportOptions(json_file, trace, record, all_ranks)
    raise typer.Exit(supervise(Job(command, cluster, report, host_time, value_limit, native_clock, ranks_per_node)))
