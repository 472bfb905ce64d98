"""Processes of the job that a signal has stopped: the others wait for them, and nothing tells why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from phantora_launcher import environment, processes
from phantora_launcher.rank_conventions import RANK_CONVENTIONS


def tell_stopped(pids: Iterable[int]) -> list[str]:
    """A line on each that is stopped, and a last one on how they go on."""
    stopped = [pid for pid in pids if processes.is_stopped(pid)]
    if not stopped:
        return []
    lines = [f"{_name(pid)} is stopped by a signal (state T in /proc/{pid}/stat)" for pid in stopped]
    return [*lines, f"hint: kill -CONT {' '.join(map(str, stopped))} lets it go on, if nobody stopped it on purpose"]


def _name(pid: int) -> str:
    rank = rank_of(processes.environment_of(pid))
    return f"process {pid}" if rank is None else f"rank {rank} (pid {pid})"


def rank_of(variables: Mapping[str, str]) -> str | None:
    """Of the process with this environment; None for the command itself and launchers, which have a rank's as well."""
    if environment.RANKS_PER_NODE not in variables:
        return variables.get(environment.RANK)
    return next((variables[each.rank] for each in RANK_CONVENTIONS if each.rank in variables), None)
