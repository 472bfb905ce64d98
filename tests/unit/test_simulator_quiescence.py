"""Quiescence by thread states: a proof with real processes, and the rules with a made-up /proc."""

import subprocess
import sys
import time
from pathlib import Path

from phantora_py.quiescence import POLLS_TO_BE_A_POLLER, Quiescence

ROOT = 100


class FakeProc:
    """A /proc of files: processes with their parent, threads with state, name and switches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def thread(self, pid: int, tid: int, state: str, switches: int, *, name: str = "python", parent: int = 1) -> None:
        task = self.folder / str(pid) / "task" / str(tid)
        task.mkdir(parents=True, exist_ok=True)
        (self.folder / str(pid) / "stat").write_text(f"{pid} (a) odd (name)) {state} {parent} 0 0\n")
        (task / "status").write_text(
            f"Name:\t{name}\nUmask:\t0022\nState:\t{state} (somehow)\nTgid:\t{pid}\n"
            f"voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t3\n"
        )


def look(proc: FakeProc, quiescence: Quiescence | None = None) -> bool:
    """Two scans with nothing in between."""
    quiescence = quiescence or Quiescence(str(proc.folder), own_pid=999)
    quiescence.look([ROOT])
    return quiescence.look([ROOT])


def test_sleeping_threads_are_still(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.thread(ROOT, 100, "S", 5)
    proc.thread(ROOT, 101, "S", 6)
    proc.thread(200, 200, "S", 7, parent=ROOT)
    assert look(proc)


def test_one_scan_proves_nothing(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.thread(ROOT, 100, "S", 5)
    assert not Quiescence(str(tmp_path), own_pid=999).look([ROOT])


def test_a_runnable_waiting_or_stopped_thread_moves(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.thread(ROOT, 100, "S", 5)
    for state in "RDTt":
        proc.thread(200, 201, state, 5, parent=ROOT)
        assert not look(proc)


def test_a_thread_that_ran_between_the_scans_moves(tmp_path: Path) -> None:
    proc, quiescence = FakeProc(tmp_path), Quiescence(str(tmp_path), own_pid=999)
    proc.thread(ROOT, 100, "S", 5)
    quiescence.look([ROOT])
    proc.thread(ROOT, 100, "S", 6)
    assert not quiescence.look([ROOT])
    assert quiescence.look([ROOT])


def test_a_new_thread_moves(tmp_path: Path) -> None:
    proc, quiescence = FakeProc(tmp_path), Quiescence(str(tmp_path), own_pid=999)
    proc.thread(ROOT, 100, "S", 5)
    quiescence.look([ROOT])
    proc.thread(ROOT, 101, "S", 1)
    assert not quiescence.look([ROOT])


def test_processes_of_others_zombies_watchdogs_and_the_simulator_do_not_count(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.thread(ROOT, 100, "S", 5)
    proc.thread(ROOT, 101, "R", 5, name="pt_nccl_watchdg")
    proc.thread(200, 200, "Z", 5, parent=ROOT)
    proc.thread(300, 300, "R", 5, parent=1)
    proc.thread(999, 999, "R", 5, parent=ROOT)
    assert look(proc)


def test_a_thread_that_only_polls_is_ignored_in_the_end(tmp_path: Path) -> None:
    proc, quiescence = FakeProc(tmp_path), Quiescence(str(tmp_path), own_pid=999)
    stills = []
    for scan in range(POLLS_TO_BE_A_POLLER + 2):
        proc.thread(ROOT, 100, "S", scan)
        stills.append(quiescence.look([ROOT]))
    assert not any(stills[:POLLS_TO_BE_A_POLLER])
    assert stills[-1]
    quiescence.disturbed()
    assert not quiescence.look([ROOT])
    proc.thread(ROOT, 100, "S", 10_000)
    assert quiescence.look([ROOT])


def test_known_pollers_may_wake_up_but_not_run(tmp_path: Path) -> None:
    proc, quiescence = FakeProc(tmp_path), Quiescence(str(tmp_path), own_pid=999)
    for scan in range(3):
        proc.thread(ROOT, 100, "S", scan, name="gloo_tcp_loop")
        assert quiescence.look([ROOT]) == (scan > 0)
    proc.thread(ROOT, 100, "R", 3, name="gloo_tcp_loop")
    assert not look(proc)


def test_launchers_do_not_count_but_their_children_do(tmp_path: Path) -> None:
    proc, quiescence = FakeProc(tmp_path), Quiescence(str(tmp_path), own_pid=999)
    proc.thread(ROOT, 100, "R", 1)
    proc.thread(200, 200, "S", 1, parent=ROOT)
    quiescence.look([ROOT], keepers=[ROOT])
    assert quiescence.look([ROOT], keepers=[ROOT])
    proc.thread(200, 200, "R", 1, parent=ROOT)
    assert not quiescence.look([ROOT], keepers=[ROOT])


def test_real_processes(tmp_path: Path) -> None:
    """A process that waits for its input is still; one that computes is not."""
    script = "import sys; sys.stdin.readline()\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    try:
        quiescence = Quiescence()
        assert _becomes_still(quiescence, child.pid)
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
        time.sleep(0.05)
        for _ in range(20):
            assert not quiescence.look([child.pid])
            time.sleep(0.002)
    finally:
        child.kill()
        child.wait()


def _becomes_still(quiescence: Quiescence, pid: int) -> bool:
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        if quiescence.look([pid]):
            return True
        time.sleep(0.003)
    return False
