"""Process trees on Linux: children that die with their parent, and trees that are ended to the last process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)
_LOOK_INTERVAL_S = 0.02
_EXEC_FAILED = 127


def _prctl(option: int, value: int | bytes) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}): {os.strerror(error)}")


def die_with_parent(parent: int, sign: int = signal.SIGKILL) -> None:
    """Asks the kernel to send `sign` to this process when its parent ends, however that happens."""
    _prctl(_PR_SET_PDEATHSIG, sign)
    if os.getppid() != parent:  # it ended before we asked
        os.kill(os.getpid(), sign)


def become_subreaper() -> None:
    """Orphans among our descendants become our children, so that none gets away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    """The process name that `ps` and `top` show (15 bytes)."""
    _prctl(_PR_SET_NAME, name.encode()[:15])


def spawn(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    new_session: bool = True,
    dies_with_us: bool = True,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    gate: int | None = None,
    closes: int | None = None,
) -> int:
    """Starts a child and returns its pid. Call it from the main thread: the kernel ties "parent" to the thread.

    With `gate`, a pipe's read end, the child waits before it executes `command` until every copy of the pipe's other
    end is closed; it closes its own copy, `closes`, itself.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        _become(
            command, environment, parent if dies_with_us else 0, new_session, (stdin, stdout, stderr), (gate, closes)
        )
    except BaseException as error:  # a child must never return into the caller's code
        reason = error.strerror if isinstance(error, OSError) else error
        os.write(2, f"phantora: cannot start {command[0]!r}: {reason}\n".encode())
    finally:
        os._exit(_EXEC_FAILED)


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    parent: int,
    new_session: bool,
    streams: tuple[int | None, int | None, int | None],
    gate: tuple[int | None, int | None],
) -> None:
    if new_session:
        os.setsid()
    if parent:
        die_with_parent(parent)
    for sign in _HANDLED:
        signal.signal(sign, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for target, source in enumerate(streams):
        if source is not None and source != target:
            os.dup2(source, target)
    wait_for, own_copy = gate
    if own_copy is not None:
        os.close(own_copy)
    if wait_for is not None:
        os.read(wait_for, 1)
    os.execvpe(command[0], list(command), environment)


def reaped() -> Iterator[tuple[int, int]]:
    """(pid, exit code; negative for a signal) of every child that has ended by now, adopted orphans included."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def descendants(root: int) -> list[int]:
    """Every living process below `root`, zombies not counted."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    found: list[int] = []
    pending = [root]
    while pending:
        below = children.pop(pending.pop(), [])
        found += below
        pending += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, parent = _state_and_parent(int(entry))
            if state not in ("Z", "X"):
                yield int(entry), parent


def _state_and_parent(pid: int) -> tuple[str, int]:
    with open(f"/proc/{pid}/stat", "rb") as file:
        # the command's name stands in parentheses and may hold anything
        state, parent, *_ = file.read().rpartition(b")")[2].split()
    return state.decode(), int(parent)


def is_stopped(pid: int) -> bool:
    """By SIGSTOP or its like, until SIGCONT."""
    try:
        return _state_and_parent(pid)[0] == "T"
    except OSError:
        return False


def environment_of(pid: int) -> dict[str, str]:
    """What it was started with; nothing if it has ended or is not ours."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            assignments = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return {name: value for name, found, value in (text.partition("=") for text in assignments) if found}


def with_environment(assignment: str) -> list[int]:
    """Processes of this user that were started with `NAME=value` in their environment, ourselves excepted."""
    needle = assignment.encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
            if needle in file.read().split(b"\0"):
                found.append(int(entry))
    return found


def send(pids: Sequence[int], sign: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, sign)


def end(find: Callable[[], list[int]], grace_s: float, reap: Callable[[], object] = lambda: list(reaped())) -> None:
    """Ends every process that `find` tells, until it tells none: SIGTERM first, SIGKILL after the grace.

    Children that have ended are taken with `reap`, so that they do not stay behind as zombies.
    """
    deadline = time.monotonic() + grace_s
    asked: set[int] = set()
    while True:
        reap()
        left = find()
        if not left:
            return
        if time.monotonic() < deadline:
            send([pid for pid in left if pid not in asked], signal.SIGTERM)
            asked.update(left)
        else:
            send(left, signal.SIGKILL)
        time.sleep(_LOOK_INTERVAL_S)
