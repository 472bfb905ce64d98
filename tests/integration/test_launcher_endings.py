"""Whatever is killed or interrupted, no process, socket or folder stays behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from launched import Workplace, pid_in, wait_for_files, wait_until

RANK_SCRIPT = """\
import os, subprocess, time
rank = os.environ["RANK"]
subprocess.Popen(["sleep", "3600"])                              # a child
subprocess.Popen(["setsid", "sleep", "3600"])                    # one in its own session
open(f"up{rank}", "w").write(str(os.getpid()))
while True:
    time.sleep(1)
"""
STUBBORN_SCRIPT = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + RANK_SCRIPT
COMMAND = ("bash", "-c", "torchrun --nnodes 2 --nproc-per-node 2 ranks.py; exit $?")


@pytest.fixture
def job(workplace: Workplace) -> Workplace:
    workplace.script("ranks.py", RANK_SCRIPT)
    return workplace


def pid_of(workplace: Workplace, rank: int) -> int:
    wait_for_files(workplace.folder, [f"up{rank}" for rank in range(4)])
    return pid_in(workplace.folder / f"up{rank}")


def find(workplace: Workplace, part: str) -> int:
    """The process whose command line holds `part`."""
    for pid in workplace.processes():
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        if part in line and not line.startswith("bash"):
            return pid
    raise AssertionError(f"no process with {part!r}")


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_stop_signals(job: Workplace, sign: signal.Signals, code: int) -> None:
    with job.started(*COMMAND) as phantora:
        pid_of(job, 3)
        phantora.send_signal(sign)
        assert phantora.wait(60) == code
        job.assert_nothing_is_left()


def test_ctrl_c_while_ranks_ignore_sigterm(workplace: Workplace) -> None:
    workplace.script("ranks.py", STUBBORN_SCRIPT)
    with workplace.started(*COMMAND) as phantora:
        pid_of(workplace, 3)
        phantora.send_signal(signal.SIGINT)
        assert phantora.wait(60) == 130
        workplace.assert_nothing_is_left()


def test_second_ctrl_c_ends_everything_at_once(workplace: Workplace) -> None:
    workplace.script("ranks.py", STUBBORN_SCRIPT)
    workplace.script("trap.sh", "trap '' INT TERM\ntorchrun --nproc-per-node 4 ranks.py\n")
    with workplace.started("bash", "trap.sh") as phantora:
        pid_of(workplace, 3)
        started = time.monotonic()
        phantora.send_signal(signal.SIGINT)
        time.sleep(0.5)
        phantora.send_signal(signal.SIGINT)
        assert phantora.wait(60) == 130
        assert time.monotonic() - started < 9
        workplace.assert_nothing_is_left()


def test_killed_rank_ends_the_job_and_is_named(job: Workplace) -> None:
    with job.started(*COMMAND) as phantora:
        victim = pid_of(job, 3)
        started = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        _, stderr = phantora.communicate(timeout=60)
        assert time.monotonic() - started < 10
        assert phantora.returncode == 1
        assert f"rank 3 (local rank 1 on dgx-h100-1, pid {victim}) was killed by SIGKILL" in stderr
        job.assert_nothing_is_left()


def test_killed_rank_when_the_others_ignore_sigterm(workplace: Workplace) -> None:
    workplace.script("ranks.py", STUBBORN_SCRIPT)
    with workplace.started(*COMMAND) as phantora:
        victim = pid_of(workplace, 0)
        started = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        assert phantora.wait(60) == 1
        assert time.monotonic() - started < 10
        workplace.assert_nothing_is_left()


def test_killed_simulator(job: Workplace) -> None:
    with job.started(*COMMAND) as phantora:
        pid_of(job, 3)
        os.kill(find(job, "phantora_py.simulator"), signal.SIGKILL)
        _, stderr = phantora.communicate(timeout=60)
        assert phantora.returncode == 70
        assert "the simulator ended before the job was over (SIGKILL)" in stderr
        job.assert_nothing_is_left()


def test_killed_supervisor(job: Workplace) -> None:
    with job.started(*COMMAND) as phantora:
        pid_of(job, 3)
        phantora.kill()
        phantora.wait(60)
        job.assert_nothing_is_left()


def test_killed_front(job: Workplace) -> None:
    with job.started(*COMMAND) as phantora:
        pid_of(job, 3)
        os.kill(find(job, "phantora_launcher.torchrun"), signal.SIGKILL)
        assert phantora.wait(60) == 137
        job.assert_nothing_is_left()


def test_killed_janitor_is_not_missed(workplace: Workplace) -> None:
    workplace.script(
        "wait.py", "import os, time\nopen('up', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.1)\n"
    )
    with workplace.started("python", "wait.py") as phantora:
        wait_for_files(workplace.folder, ["up"])
        janitors = [pid for pid in workplace.processes() if "phantora-clean" in Path(f"/proc/{pid}/comm").read_text()]
        assert len(janitors) == 1
        os.kill(janitors[0], signal.SIGKILL)
        (workplace.folder / "go").touch()
        assert phantora.wait(60) == 0
        workplace.assert_nothing_is_left()


def test_interrupt_before_the_ranks_are_up(job: Workplace) -> None:
    with job.started(*COMMAND) as phantora:
        wait_until(lambda: len(job.processes()) > 1, "nothing was started")
        phantora.send_signal(signal.SIGINT)
        assert phantora.wait(60) == 130
        job.assert_nothing_is_left()
