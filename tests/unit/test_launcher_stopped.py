"""Who of a job is stopped by a signal."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from phantora_launcher.stopped import rank_of, tell_stopped


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Rank 3 of a torchrun job."""
    process = subprocess.Popen(["sleep", "600"], env={"PHANTORA_RANK": "3", "PATH": os.environ["PATH"]})
    yield process
    process.kill()
    process.wait()


def test_a_stopped_rank_is_named_with_its_remedy(sleeper: subprocess.Popen[bytes]) -> None:
    pid = sleeper.pid
    assert tell_stopped([os.getpid(), pid]) == []
    sleeper.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED)
    assert tell_stopped([os.getpid(), pid]) == [
        f"rank 3 (pid {pid}) is stopped by a signal (state T in /proc/{pid}/stat)",
        f"hint: kill -CONT {pid} lets it go on, if nobody stopped it on purpose",
    ]
    sleeper.send_signal(signal.SIGCONT)
    os.waitid(os.P_PID, pid, os.WCONTINUED)
    assert tell_stopped([pid]) == []


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({"PHANTORA_RANK": "5"}, "5"),
        ({"PHANTORA_RANK": "0", "PHANTORA_RANKS_PER_NODE": "8", "OMPI_COMM_WORLD_RANK": "9"}, "9"),
        ({"PHANTORA_RANK": "0", "PHANTORA_RANKS_PER_NODE": "8"}, None),
        ({}, None),
    ],
)
def test_ranks_are_known_by_what_they_were_started_with(variables: dict[str, str], rank: str | None) -> None:
    assert rank_of(variables) == rank
