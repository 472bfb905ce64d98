"""Starts the ranks, watches them, and ends the job with the first that fails."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from phantora_launcher import exit_codes, processes
from phantora_launcher.errors import LaunchError
from phantora_launcher.torchrun.failures import Failure, summary
from phantora_launcher.torchrun.output import Destination, Output
from phantora_launcher.torchrun.plan import Plan, RankPlan, rank_environment
from phantora_launcher.torchrun.simulator_link import SimulatorLink

_LOOK_INTERVAL_S = 0.5
_SHUTDOWN_GRACE_S = 5
"""Seconds between SIGTERM and SIGKILL for ranks, unless the user says. Torchrun's own 30 s would be spent in full by
every rank that is blocked in a collective."""


class Agent:
    """The job's ranks. `run` returns the exit code of torchrun."""

    def __init__(self, options: Namespace, plan: Plan, output: Output, link: SimulatorLink) -> None:
        self._options = options
        self._plan = plan
        self._output = output
        self._link = link
        self._running: dict[int, RankPlan] = {}
        self._failures: list[Failure] = []
        self._is_ending = False
        self._signals = _signals(options.signals_to_handle)
        self._grace_s = _shutdown_grace_s(options.shutdown_timeout)

    def run(self, inherited: Mapping[str, str]) -> int:
        processes.become_subreaper()
        signal.pthread_sigmask(signal.SIG_BLOCK, {*self._signals, signal.SIGCHLD})
        self._start(inherited)
        self._output.start()
        try:
            return self._watch()
        finally:
            self._end_all()
            self._output.finish()
            if self._failures:
                _say_block(summary(self._options.training_script, self._failures))

    def _start(self, inherited: Mapping[str, str]) -> None:
        """All ranks wait at a gate until the simulator knows them."""
        gate, opener = os.pipe()
        os.set_inheritable(opener, False)
        pids = []
        for rank, destination in zip(self._plan.ranks, self._output.destinations, strict=True):
            variables = rank_environment(rank, inherited)
            variables["TORCHELASTIC_ERROR_FILE"] = str(destination.error_file or "")
            pids.append(_start_rank(rank, destination, variables, gate, opener))
        self._running = dict(zip(pids, self._plan.ranks, strict=True))
        self._link.job(self._plan.ranks, pids)
        os.close(opener)
        os.close(gate)

    def _watch(self) -> int:
        while self._running and not self._failures:
            told = signal.sigtimedwait({*self._signals, signal.SIGCHLD}, _LOOK_INTERVAL_S)
            self._reap()
            if told is not None and told.si_signo in self._signals:
                self._end_all(told.si_signo)
                self._failures.clear()  # those that the signal ended
                return exit_codes.SIGNAL_BASE + told.si_signo
        return exit_codes.FAILED if self._failures else exit_codes.OK

    def _reap(self) -> None:
        for pid, code in processes.reaped():
            rank = self._running.pop(pid, None)
            if rank is None:
                continue  # an orphan of some rank
            self._link.exited(rank.rank, code)
            if code != 0:
                self._failed(rank, pid, code)

    def _failed(self, rank: RankPlan, pid: int, code: int) -> None:
        error_file = self._output.destinations[rank.rank].error_file
        failure = Failure(rank, pid, code, error_file, datetime.now())
        if not self._failures and not self._is_ending:
            _say(f"{failure.sentence}; ending the job")
        self._failures.append(failure)

    def _end_all(self, sign: int = signal.SIGTERM) -> None:
        """Ends the remaining ranks and whatever they started, gently at first."""
        self._is_ending = True
        seen = len(self._failures)
        deadline = time.monotonic() + self._grace_s
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, sign)
        while self._running and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, 0.1)
            self._reap()
        processes.end(lambda: processes.descendants(os.getpid()), 0.0, self._reap)
        self._reap()
        del self._failures[max(seen, 1) :]  # ranks that we ended have not failed by themselves


def _start_rank(rank: RankPlan, destination: Destination, variables: Mapping[str, str], gate: int, opener: int) -> int:
    streams = [_open(path) for path in (destination.stdout, destination.stderr)]
    try:
        return processes.spawn(rank.command, variables, stdout=streams[0], stderr=streams[1], gate=gate, closes=opener)
    finally:
        for stream in streams:
            if stream is not None:
                os.close(stream)


def _open(path: Path | None) -> int | None:
    return None if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)


def _signals(names: str) -> set[signal.Signals]:
    try:
        return {signal.Signals[name.strip()] for name in names.split(",") if name.strip()}
    except KeyError as error:
        raise LaunchError(
            f"--signals-to-handle names {error}, which is no signal", "names are like SIGTERM,SIGUSR1"
        ) from None


def _shutdown_grace_s(option: int | None) -> float:
    if option is not None:
        return float(option)
    return float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", _SHUTDOWN_GRACE_S))


def _say(text: str) -> None:
    print(f"phantora: {text}", file=sys.stderr, flush=True)


def _say_block(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
