"""`phantora replay`: a recorded job on another cluster, without running it again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from phantora_launcher import exit_codes
from phantora_launcher.errors import LaunchError
from phantora_launcher.job_cluster import in_our_environment
from phantora_launcher.output_files import check_outputs
from phantora_py.cluster import ClusterError, load_cluster
from phantora_py.engines import FusedEngine
from phantora_py.frames import ProtocolError
from phantora_py.job import Job, JobError
from phantora_py.output import ReportFile, tell_what_is_lost
from phantora_py.rank_list import named_ranks
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
    check_outputs(json_file, trace)
    started_s = time.monotonic()
    try:
        recorded = Recording.read(recording)
        job = _job(recorded, cluster)
        report = Report(job.world_size, job.catalogue)
        job.observers.append(report)
        writer = None if trace is None else _trace_writer(trace, job)
        if writer is not None:
            job.observers.append(writer)
        feed(job, recorded)
    except JobError as error:
        print(f"phantora: {error}", file=sys.stderr)
        raise typer.Exit(exit_codes.EMULATION) from error
    except (ClusterError, ProtocolError, OSError) as error:
        what, _, hint = str(error).partition("\n  hint: ")
        raise LaunchError(what, hint or "is it the folder of a recording by this version of phantora?") from error
    command = ["phantora", "replay", str(recording)]
    result = report.result(job, cluster or recorded.cluster_name, command, {}, time.monotonic() - started_s)
    if recorded.ended_early:
        result["guessed"] = sorted([*result["guessed"], _cut_short(recorded)])
        print(f"phantora: {_cut_short(recorded)}", file=sys.stderr)
    print_report(result, all_ranks)
    written = None if json_file is None else ReportFile(json_file)
    if written is not None:
        written.write(result)
    if writer is not None:
        writer.close()
    if tell_what_is_lost([(f"--json {json_file}", written), (f"--trace {trace}", writer)]):
        raise typer.Exit(exit_codes.EMULATION)


def _job(recorded: Recording, cluster: str | None) -> Job:
    chosen = in_our_environment(recorded.cluster if cluster is None else load_cluster(cluster))
    return recorded_job(recorded, FusedEngine(chosen.gpu), chosen)


def _trace_writer(file: Path, job: Job) -> TraceWriter:
    try:
        return TraceWriter(file, job.placements, job.catalogue)
    except OSError as error:
        raise LaunchError(f"--trace {file}: {error.strerror or error}", "name a file that can be written") from error


def _cut_short(recorded: Recording) -> str:
    return (
        f"the recording of {named_ranks(recorded.ended_early)} ends early: without a farewell, because the job failed "
        "or the file was cut; this is what ran until then"
    )
