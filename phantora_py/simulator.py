"""The simulator process: `python -m phantora_py.simulator --run-dir DIR --cluster NAME_OR_FILE [...] -- COMMAND...`.

Serves the ranks on DIR/sim.sock until its standard input ends (the launcher closes it when the job is over) or SIGTERM
comes; then writes the report and prints its table. Exit codes: 0; 1 when a file that was asked for could not be
written; 2 for a wrong command line or cluster; 70 when the job could not be simulated to its end.
"""

from __future__ import annotations

import argparse
import os
import signal
import stat
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from phantora_py.cluster import Cluster, ClusterError, load_cluster
from phantora_py.definitions import CostEngine
from phantora_py.engines import FusedEngine
from phantora_py.job import Job
from phantora_py.outbox import Outbox
from phantora_py.output import Output, ReportFile, tell_what_is_lost
from phantora_py.placement import Placement, placements
from phantora_py.progress import Progress
from phantora_py.recording import Recorder
from phantora_py.report import Report
from phantora_py.report_table import print_report
from phantora_py.server import Patience, Server
from phantora_py.trace import TraceWriter

_USAGE = 2
_CANNOT_GO_ON = 70
_OUTPUT_LOST = 1
_RESULT_NAME = "result.json"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        cluster = load_cluster(options.cluster).in_environment(os.environ)
        simulator = _Simulator(cluster, options)
    except (ClusterError, OSError) as error:
        print(f"phantora: simulator: {error}", file=sys.stderr)
        return _USAGE
    return simulator.run()


class _Simulator:
    """One job from its socket to its report."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace) -> None:
        self._cluster = cluster
        self._options = options
        self._engine: CostEngine = FusedEngine(cluster.gpu)
        self._recorder = Recorder(options.record, cluster, options.cluster) if options.record else None
        self._report: Report | None = None
        self._trace: TraceWriter | None = None
        self._json = ReportFile(options.json or options.run_dir / _RESULT_NAME)
        self._server = Server(
            options.run_dir,
            self._make_job,
            partial(placements, cluster=cluster),
            Patience(options.stuck_after_s, options.spinning_after_s),
            self._recorder,
        )

    def run(self) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the job; the simulator ends after it
        signal.signal(signal.SIGTERM, lambda _sign, _frame: self._server.stop())
        if _is_pipe(0):
            self._server.stop_at_end_of(0)
        started_s = time.monotonic()
        self._server.serve()
        job = self._server.job
        if job is None:
            why = "the job was refused" if self._server.has_refused else "no process of the job used CUDA"
            print(f"phantora: nothing to report: {why}", flush=True)
        else:
            job.finish()
            result = self._result(job, time.monotonic() - started_s)
            print_report(result, self._options.all_ranks)
            self._json.write(result)
        for output in (self._trace, self._recorder):
            if output is not None:
                output.close()
        is_lost = tell_what_is_lost(self._outputs())
        if self._server.failure is not None:
            return _CANNOT_GO_ON
        return _OUTPUT_LOST if is_lost else 0

    def _make_job(self, where: Sequence[Placement], outbox: Outbox) -> Job:
        job = Job(self._cluster, where, self._engine, outbox)
        self._report = Report(job.world_size, job.catalogue)
        job.observers.append(self._report)
        job.observers.append(Progress(self._options.run_dir, job.world_size))
        if self._options.trace:
            self._trace = TraceWriter(self._options.trace, where, job.catalogue)
            job.observers.append(self._trace)
        return job

    def _result(self, job: Job, wall_s: float) -> dict[str, Any]:
        assert self._report is not None
        return self._report.result(job, self._options.cluster, self._options.command, self._server.exit_codes, wall_s)

    def _outputs(self) -> list[tuple[str, Output | None]]:
        """Those that were asked for, by option."""
        options = self._options
        return [
            (f"--json {options.json}", self._json if options.json else None),
            (f"--trace {options.trace}", self._trace),
            (f"--record {options.record}", self._recorder),
        ]


def _is_pipe(file: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(file).st_mode)
    except OSError:
        return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m phantora_py.simulator", description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True, help="the run's private folder")
    parser.add_argument("--cluster", required=True, help="name of a preset or a TOML file, with :N for N nodes")
    parser.add_argument(
        "--json", type=Path, help=f"where the report goes (default: {_RESULT_NAME} in the run's folder)"
    )
    parser.add_argument("--trace", type=Path, help="write a Chrome trace; gzip when the name ends in .gz")
    parser.add_argument("--record", type=Path, help="write a recording of the job into this folder")
    parser.add_argument("--all-ranks", action="store_true", help="show every rank in the table")
    parser.add_argument(
        "--stuck-after-s",
        type=float,
        default=Patience.stuck_s,
        help="how long a job in which nothing can move is watched before it is ended (default: %(default)s)",
    )
    parser.add_argument(
        "--spinning-after-s",
        type=float,
        default=Patience.spinning_s,
        help="how long ranks wait for one that runs but says nothing, before they get a guess (default: %(default)s)",
    )
    parser.add_argument("command", nargs="*", help="the job's command, for the report")
    return parser


if __name__ == "__main__":
    sys.exit(main())
