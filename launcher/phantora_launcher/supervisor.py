"""Runs one job: simulator, user's command, and whatever they start; and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from phantora_launcher import environment, exit_codes, processes
from phantora_launcher.errors import LaunchError
from phantora_launcher.janitor import Janitor
from phantora_launcher.job_cluster import job_cluster
from phantora_launcher.job_environment import job_environment, rank_variables
from phantora_launcher.machine import HostTime, machine_lines
from phantora_launcher.node_names import node_name
from phantora_launcher.output_files import check_outputs
from phantora_launcher.progress import ProgressReader
from phantora_launcher.run_folder import RunFolder
from phantora_launcher.simulator import ReportOptions, SimulatorProcess
from phantora_launcher.stopped import tell_stopped
from phantora_py.cluster import Cluster
from phantora_py.endings import note_ending

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_INTERVAL_S = 0.5
_STOP_GRACE_S = 10.0
"""How long the command may take to end after Ctrl-C, before its processes are ended one by one."""
_LEFTOVER_GRACE_S = 2.0


@dataclass(frozen=True)
class Job:
    """What `phantora run` was asked for."""

    command: Sequence[str]
    cluster: str
    report: ReportOptions = field(default_factory=ReportOptions)
    host_time: HostTime = HostTime.MODELLED
    value_limit_bytes: int | None = None
    native_clock: bool = False
    ranks_per_node: int | None = None
    """Of an MPI program; None: the GPUs of a node."""


def supervise(job: Job) -> int:
    """Runs the job to its end and returns the exit code of `phantora run`. Raises LaunchError if it cannot start."""
    cluster = job_cluster(job.cluster)
    _check_ranks_per_node(job.ranks_per_node, cluster)
    _check_command(job.command)
    check_outputs(job.report.json_file, job.report.trace_file)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_STOP_SIGNALS, signal.SIGCHLD})
    try:
        return _supervise_in_folder(job, cluster, RunFolder.create())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _supervise_in_folder(job: Job, cluster: Cluster, folder: RunFolder) -> int:
    janitor = Janitor(folder)
    try:
        folder.write_machine(machine_lines(cluster, job.host_time, job.value_limit_bytes))
        folder.write_job({"cluster": cluster.name, "nodes": cluster.nodes, "gpus_per_node": cluster.node.gpus})
        return _Supervisor(job, cluster, folder, janitor.pid).run()
    finally:
        folder.remove()
        janitor.dismiss()


def _check_ranks_per_node(ranks: int | None, cluster: Cluster) -> None:
    if ranks is not None and ranks > cluster.node.gpus:
        raise LaunchError(
            f"--ranks-per-node is {ranks}, but a node of {cluster.name} has {cluster.node.gpus} GPUs",
            "a rank has a GPU of its own: spread the ranks over more nodes, or describe larger ones",
        )


def _check_command(command: Sequence[str]) -> None:
    if shutil.which(command[0]) is None:
        raise LaunchError(f"{command[0]!r} is not a program on PATH", "is the virtual environment of the job active?")


class _Supervisor:
    def __init__(self, job: Job, cluster: Cluster, folder: RunFolder, janitor_pid: int) -> None:
        self._job = job
        self._folder = folder
        self._janitor_pid = janitor_pid
        self._hostname = node_name(cluster.name, 0)
        self._ranks_per_node = job.ranks_per_node or cluster.node.gpus
        self._command_pid = 0
        self._command_code: int | None = None
        self._stopped_by: int | None = None
        self._stop_deadline = float("inf")
        self._progress = ProgressReader(folder)

    def run(self) -> int:
        processes.become_subreaper()
        self._simulator = SimulatorProcess(self._folder, self._job.cluster, self._job.command, self._job.report)
        try:
            self._simulator.wait_until_ready()
            self._start_command()
            while not self._is_over():
                self._wait()
            self._end_command_tree()
            return self._finish()
        finally:
            processes.end(self._all_but_janitor, 0.0, self._reap)

    def _start_command(self) -> None:
        variables = job_environment(self._folder, os.environ, self._job.native_clock)
        variables |= rank_variables(0, 0, 0, self._hostname)
        variables[environment.RANKS_PER_NODE] = str(self._ranks_per_node)
        self._command_pid = processes.spawn(self._job.command, variables)

    def _is_over(self) -> bool:
        if self._command_code is not None or self._simulator.exit_code is not None:
            return True
        return time.monotonic() > self._stop_deadline

    def _wait(self) -> None:
        """Returns when a child has ended, a stop signal was dealt with, or after a moment."""
        signals = {*_STOP_SIGNALS, signal.SIGCHLD}
        told = signal.sigtimedwait(signals, _LOOK_INTERVAL_S)
        self._reap()
        if told is not None and told.si_signo in _STOP_SIGNALS:
            self._stop(told.si_signo)
        if told is None and (line := self._progress.news()):
            _say("\n  ".join([line, *tell_stopped(self._command_tree())]))

    def _reap(self) -> None:
        for pid, code in processes.reaped():
            if pid == self._command_pid:
                self._command_code = code
                if code != 0:
                    note_ending(self._folder.path, pid, code)
            elif pid == self._simulator.pid:
                self._simulator.exit_code = code

    def _stop(self, sign: int) -> None:
        """The first signal is passed on to the command; a second one ends everything at once."""
        if self._stopped_by is not None:
            self._stop_deadline = 0.0
            return
        _say(f"stopped by {signal.Signals(sign).name}")
        self._stopped_by = sign
        self._stop_deadline = time.monotonic() + _STOP_GRACE_S
        if self._command_pid and self._command_code is None:
            try:
                os.killpg(self._command_pid, sign)
            except ProcessLookupError:  # just forked: it has no session of its own yet
                os.kill(self._command_pid, sign)

    def _end_command_tree(self) -> None:
        left_over = self._command_tree()
        if left_over and self._command_code == 0:
            _say(f"ending {len(left_over)} processes that the command left behind")
        processes.end(self._command_tree, _LEFTOVER_GRACE_S, self._reap)

    def _command_tree(self) -> list[int]:
        return [pid for pid in self._all_but_janitor() if pid != self._simulator.pid]

    def _all_but_janitor(self) -> list[int]:
        return [pid for pid in processes.descendants(os.getpid()) if pid != self._janitor_pid]

    def _finish(self) -> int:
        simulator_died = self._simulator.exit_code is not None
        self._simulator.job_is_over()
        while self._simulator.exit_code is None and time.monotonic() < self._stop_deadline:
            self._wait()
        if self._stopped_by is not None:
            return exit_codes.SIGNAL_BASE + self._stopped_by
        return self._verdict(simulator_died)

    def _verdict(self, simulator_died: bool) -> int:
        simulator, code = self._simulator.exit_code, self._command_code
        if simulator_died or simulator != exit_codes.OK:
            _say(f"{_end_of_simulator(simulator, simulator_died)}\n{self._simulator.log_tail()}")
            if simulator_died or code == exit_codes.OK:
                return exit_codes.EMULATION
        if code is None:
            return exit_codes.EMULATION
        if code < 0:
            _say(f"the command (pid {self._command_pid}) was killed by {signal.Signals(-code).name}")
        return exit_codes.of_wait_status(code)


def _end_of_simulator(code: int | None, before_the_job: bool) -> str:
    if code == exit_codes.EMULATION and not before_the_job:
        return "the job could not be simulated to its end; the simulator's last words:"
    when = "before the job was over" if before_the_job else "while it made the report"
    return f"the simulator ended {when} ({describe_code(code)})"


def describe_code(code: int | None) -> str:
    """ "exit code 3", "SIGKILL" …"""
    if code is None:
        return "still running"
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _say(text: str) -> None:
    print(f"phantora: {text}", file=sys.stderr, flush=True)
