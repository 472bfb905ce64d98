"""Tells from /proc whether anything in the job can still move by itself.

Proof that two scans suffice. Scan 1 reads each thread's state and number of context switches; scan 2 does so again. A
thread that sleeps in both with the same number has not run between the two readings: to run, it would have had to be
switched in, and to sleep again it would have been switched out and counted. All these intervals contain the moment
between the scans. So at that moment no thread ran, and whatever is to happen must come from a timer or from outside.

Some threads wake up by timers, look, and sleep again; their switches are not counted. They hold nothing back: what is
sent to them makes them runnable, and whom they wake is counted. They are known by their names, or by waking up again
and again while nothing reaches the simulator.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

_STATUS = re.compile(
    rb"Name:\t(?P<name>[^\n]*)\n.*?State:\t(?P<state>\w).*?"
    rb"voluntary_ctxt_switches:\t(?P<yielded>\d+)\nnonvoluntary_ctxt_switches:\t(?P<preempted>\d+)",
    re.DOTALL,
)
_WATCHDOGS = (b"pt_nccl_",)
"""PyTorch's NCCL watchdog and heartbeat monitor never move a job that is well, so even running they do not count."""
_POLLERS = (b"gloo_tcp_loop", b"pt_tcpstore_uv")
"""The loops of gloo and of the TCPStore's server only carry messages; the first looks around every 10 ms, the second is
asked by watchdogs."""
_ASLEEP = b"S"
_GONE = (b"Z", b"X")
POLLS_TO_BE_A_POLLER = 100
"""Pairs of scans between which a thread woke up while nothing reached the simulator; then its wake-ups are ignored."""


class Quiescence:
    """Looks at the process trees below some processes, this process excepted."""

    def __init__(self, proc: str = "/proc", own_pid: int | None = None) -> None:
        self._proc = proc
        self._own_pid = os.getpid() if own_pid is None else own_pid
        self._last: dict[int, int] | None = None
        self._wakes: Counter[int] = Counter()
        self._pollers: set[int] = set()
        self._suspect: tuple[int, int] | None = None  # (pid, tid) that was found busy last: looked at first

    def disturbed(self) -> None:
        """Something reached the simulator or left it: what was seen before says nothing any more."""
        self._last = None
        self._wakes.clear()

    def look(self, roots: Collection[int], keepers: Collection[int] = ()) -> bool:
        """Scans once. True if this scan and the one before prove that everything below `roots` slept in between.

        `keepers` are launchers: they look after their children on timers, and only the children count.
        """
        if self._suspect is not None and self._is_busy(*self._suspect):
            self._last = None
            return False
        switches = self._scan(roots, keepers)
        last, self._last = self._last, switches
        if switches is None or last is None:
            return False
        return self._unchanged(last, switches)

    def _unchanged(self, last: dict[int, int], switches: dict[int, int]) -> bool:
        if last.keys() != switches.keys():
            return False
        still = True
        for tid, count in switches.items():
            if count != last[tid] and tid not in self._pollers:
                still = False
                self._wakes[tid] += 1
                if self._wakes[tid] >= POLLS_TO_BE_A_POLLER:
                    self._pollers.add(tid)
        return still

    def _scan(self, roots: Collection[int], keepers: Collection[int]) -> dict[int, int] | None:
        """Thread → context switches of all threads that count; None if one can move."""
        switches: dict[int, int] = {}
        for pid in self._tree(roots):
            if pid in keepers:
                continue
            for tid in self._threads(pid):
                status = self._status(pid, tid)
                if status is None:
                    return None  # it ended just now: that may have woken another
                state, name, count = status
                if state in _GONE or name.startswith(_WATCHDOGS):
                    continue
                if state != _ASLEEP:
                    self._suspect = (pid, tid)
                    return None
                if not name.startswith(_POLLERS):
                    switches[tid] = count
        self._suspect = None
        return switches

    def _is_busy(self, pid: int, tid: int) -> bool:
        status = self._status(pid, tid)
        return status is not None and status[0] != _ASLEEP and status[0] not in _GONE

    def _tree(self, roots: Collection[int]) -> list[int]:
        children: defaultdict[int, list[int]] = defaultdict(list)
        for pid, parent in self._processes():
            children[parent].append(pid)
        found: dict[int, None] = {}
        pending = list(roots)
        while pending:
            pid = pending.pop()
            if pid not in found and pid != self._own_pid:
                found[pid] = None
                pending += children[pid]
        return list(found)

    def _processes(self) -> Iterator[tuple[int, int]]:
        """(process, parent) of every process."""
        for entry in os.listdir(self._proc):
            if entry.isdigit():
                text = self._read(f"{self._proc}/{entry}/stat")
                if text is not None:
                    # the command's name stands in parentheses and may hold anything, parentheses too
                    yield int(entry), int(text.rpartition(b")")[2].split()[1])

    def _threads(self, pid: int) -> list[int]:
        try:
            return [int(entry) for entry in os.listdir(f"{self._proc}/{pid}/task")]
        except OSError:
            return []

    def _status(self, pid: int, tid: int) -> tuple[bytes, bytes, int] | None:
        """(state, name, context switches) of a thread; None if it has ended."""
        text = self._read(f"{self._proc}/{pid}/task/{tid}/status")
        found = _STATUS.search(text) if text is not None else None
        if found is None:
            return None
        return found["state"], found["name"], int(found["yielded"]) + int(found["preempted"])

    def _read(self, path: str) -> bytes | None:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            return os.read(handle, 8192)
        except OSError:
            return None
        finally:
            os.close(handle)
