"""Real torch jobs in which a rank calls what is not emulated, is killed, or strangers talk to the simulator."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_rank import packed
from launched import Workplace, pid_in, wait_for_files, wait_until

from phantora_native.functions import Policy, load_all
from phantora_py.frames import MAX_PAYLOAD_BYTES, FrameType, frame

pytest.importorskip("torch")

SCRIPT = str(Path(__file__).parent / "jobs" / "disturbed.py")
LIMIT_S = 600.0
"""The hook may have to be compiled first, on a busy machine."""
DEPENDS_ON_THE_MACHINE = ("wall_s", "speculated_answers", "corrected_answers")
"""Keys of the report that two equal runs may differ in (docs/report.md)."""


def job(ranks: int, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), SCRIPT, *arguments)


def unsupported_function() -> tuple[str, str]:
    """(library, function): some one of the runtime's."""
    (library,) = (library for library in load_all() if library.name == "cudart")
    return library.builds[13].soname, library.with_policy(Policy.UNSUPPORTED)[-1].name


def test_an_unsupported_function_ends_its_rank_and_the_job(torch_workplace: Workplace) -> None:
    library, function = unsupported_function()
    done = torch_workplace.run(*job(2, "call", library, function), cluster="dgx-h100", limit_s=LIMIT_S)
    assert done.code == 1
    assert f"phantora: rank 1: {function} of {library} is not emulated\n  hint: " in done.stderr
    assert f'File "{SCRIPT}"' in done.stderr  # where the script called it
    assert "rank 1 (local rank 1 on dgx-h100-0, pid " in done.stderr
    torch_workplace.assert_nothing_is_left()


def test_a_killed_rank_ends_the_job_and_is_named(torch_workplace: Workplace) -> None:
    with torch_workplace.started(*job(3, "forever"), cluster="dgx-h100") as phantora:
        wait_for_files(torch_workplace.folder, [f"up{rank}" for rank in range(3)], LIMIT_S)
        victim = pid_in(torch_workplace.folder / "up2")
        started = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        _, stderr = phantora.communicate(timeout=60)
        assert time.monotonic() - started < 10
        assert phantora.returncode == 1
        assert f"rank 2 (local rank 2 on dgx-h100-0, pid {victim}) was killed by SIGKILL" in stderr
        torch_workplace.assert_nothing_is_left()


# Garbage on the simulator's socket

NOISE = [
    random.Random(7).randbytes(1000),
    b"GET / HTTP/1.1\r\n\r\n",
    b"",  # closes at once
    struct.pack("<IHH", MAX_PAYLOAD_BYTES + 1, FrameType.BATCH, 0),
    struct.pack("<IHH", MAX_PAYLOAD_BYTES, FrameType.BATCH, 0),  # allowed, but nothing follows
    frame(FrameType.BATCH, b"x" * 32),
    frame(FrameType.HELLO, packed(protocol=99, role="rank", rank=0, pid=1, argv=[])),
    frame(FrameType.HELLO, packed(protocol=1, role="rank", rank=0, pid=1, argv=[])),  # a rank that is there already
    frame(FrameType.HELLO, packed(protocol=1, role="rank", rank=7, pid=1, argv=[])),  # one that this job has not
]


@contextmanager
def connection(workplace: Workplace) -> Iterator[socket.socket]:
    (path,) = workplace.run_parent.glob("*/sim.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.settimeout(60)
        stranger.connect(str(path))
        yield stranger


def send_noise(workplace: Workplace) -> None:
    for noise in NOISE:
        with connection(workplace) as stranger:
            stranger.sendall(noise)


def paused_report(workplace: Workplace, disturbed: bool) -> dict[str, Any]:
    """Of a job of two ranks that stands still after its first step until it has been disturbed."""
    fifo, report = workplace.folder / "fifo", workplace.folder / "report.json"
    os.mkfifo(fifo)
    with (
        ExitStack() as strangers,
        workplace.started(*job(2, "pause", str(fifo)), cluster="dgx-h100", options=("--json", str(report))) as phantora,
    ):
        go = open_for_writing(fifo)
        if disturbed:
            silent = strangers.enter_context(connection(workplace))
            send_noise(workplace)
        os.close(go)
        _, stderr = phantora.communicate(timeout=LIMIT_S)
        assert phantora.returncode == 0, stderr
        if disturbed:
            assert silent.recv(1) == b""  # it was heard to the end
    fifo.unlink()
    result: dict[str, Any] = json.loads(report.read_text())
    return {key: value for key, value in result.items() if key not in DEPENDS_ON_THE_MACHINE}


def open_for_writing(fifo: Path) -> int:
    """Waits until somebody reads it."""
    opened: list[int] = []

    def is_open() -> bool:
        try:
            opened.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody yet
            return False
        return True

    wait_until(is_open, "the job never came to its pause", LIMIT_S)
    return opened[0]


def test_garbage_on_the_socket_does_not_disturb_a_job(torch_workplace: Workplace) -> None:
    undisturbed = paused_report(torch_workplace, disturbed=False)
    assert len(undisturbed["iterations"]) == 4
    assert paused_report(torch_workplace, disturbed=True) == undisturbed
    torch_workplace.assert_nothing_is_left()
