"""Torch jobs with a mistake that would hang on real GPUs: each ends by itself, soon, and says who did what.

These are the most telling kinds; jobs/make_mistake.py has all of them, tests/unit/test_simulator_mistakes.py says in
records what is said about each.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).parent / "jobs" / "make_mistake.py"
LIMIT_S = 600.0
"""The hook may have to be compiled first, on a busy machine. A hang would end an hour later."""
CALL = "all_reduce of 1,024 float32 (4,096 bytes), sum"
WORLD = "communicator default_pg:0 (ranks 0, 1)"


def said_of(kind: str, ranks: int) -> str:
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks))
    command = (sys.executable, "-m", "phantora_launcher", "run", "--cluster", "dgx-h100", "--", *torchrun)
    done = subprocess.run([*command, str(SCRIPT), kind], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode != 0, done.stderr
    return done.stderr


def test_one_of_three_calls_something_else() -> None:
    said = said_of("other_operation", 3)
    assert "ranks disagree on what they do together" in said
    assert (
        "collective 1 of communicator default_pg:0 (ranks 0-2):\n"
        "    rank 2 calls broadcast of 1,024 float32 (4,096 bytes), root rank 0\n"
        f"    ranks 0, 1 call {CALL}\n"
    ) in said
    assert "make_mistake.py" in said.partition("Stack (most recent call first)")[2]


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        (
            "message_size",
            [f"message 0 from rank 0 to rank 1 on {WORLD}:\n    rank 0 sends 8,192 bytes, rank 1 receives 4,096 bytes"],
        ),
        (
            "gone_early",
            [
                f"for collective 1 of {WORLD}, {CALL}: rank 1 has not come\n",
                "rank 1: has ended (exit code 0)\n",
                "so it is rank 1, which has ended, that the others wait for\n",
            ],
        ),
        (
            "crossed_communicators",
            ["of 2 members with rank", "for key '/default_pg/0//", "which is elsewhere, that the others wait for\n"],
        ),
        (
            "host_against_device",
            [
                f"for collective 1 of {WORLD}, {CALL}: rank 1 has not come\n",
                "for gloo barrier of 2 members with rank 1, round 0: rank 0 has not come\n",
                "so ranks 0, 1 wait for one another: they make their calls in different orders\n",
            ],
        ),
        ("aborted", [f"{CALL}: rank 1 has aborted the communicator\n"]),
    ],
)
def test_two_ranks(kind: str, facts: list[str]) -> None:
    said = said_of(kind, 2)
    for fact in facts:
        assert fact in said
