"""`phantora replay`: a recorded job on another cluster, without running it again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from phantora_launcher.errors import LaunchError
from phantora_launcher.job_cluster import in_our_environment
from phantora_py.cluster import ClusterError, load_cluster
from phantora_py.engines import FusedEngine
from phantora_py.frames import ProtocolError
from phantora_py.job import JobError
from phantora_py.recording import Recording
from phantora_py.replay import feed, recorded_job
from phantora_py.report import Report
from phantora_py.report_table import print_report
from phantora_py.trace import TraceWriter


def add_to(app: typer.Typer) -> None:
    app.command("replay")(replay)


def replay(
    recording: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of `phantora run --record`.")],
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME|FILE.toml", help="Another cluster; without, the recording's.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON.")] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a trace for Perfetto.")] = None,
    all_ranks: Annotated[bool, typer.Option("--all-ranks", help="Show the memory of every rank.")] = False,
) -> None:
    """Simulate a recorded job again, on the cluster of the recording or on another one.

    What the ranks did stays as it is: a script that would do something else on the other cluster (another GPU's
    memory, a deadline) has to be run there.

    \b
    Examples:
      phantora run --cluster dgx-h100:2 --record recorded -- torchrun --nnodes 2 --nproc-per-node 8 train.py
      phantora replay recorded --cluster slow.toml --json slow.json
    """
    started_s = time.monotonic()
    try:
        recorded = Recording.read(recording)
        chosen = in_our_environment(recorded.cluster if cluster is None else load_cluster(cluster))
        job = recorded_job(recorded, FusedEngine(chosen.gpu), chosen)
        report = Report(job.world_size, job.catalogue)
        job.observers.append(report)
        if trace is not None:
            writer = TraceWriter(trace, job.placements, job.catalogue)
            job.observers.append(writer)
        feed(job, recorded)
        command = ["phantora", "replay", str(recording)]
        result = report.result(job, cluster or chosen.name, command, {}, time.monotonic() - started_s)
        if json_file is not None:
            json_file.write_text(json.dumps(result, indent=1) + "\n")
        if trace is not None:
            writer.close()
            if writer.failure is not None:
                raise writer.failure
    except (ClusterError, JobError, ProtocolError, OSError) as error:
        what, _, hint = str(error).partition("\n  hint: ")
        raise LaunchError(what, hint or "is it the folder of a recording by this version of phantora?") from error
    print_report(result, all_ranks)
