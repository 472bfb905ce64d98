"""How processes of the job have ended, as their parents learned it: a file of the run's folder.

The preloaded library writes it (native/preload/endings.cpp), because a launcher of MPI programs tells nobody else; and
`phantora run` for the command itself. Only failures are in it.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

ENDINGS_NAME = "endings"


def note_ending(run_dir: Path, pid: int, code: int) -> None:
    """`code` as `subprocess` tells it, negative for a signal. A disk that is full costs the note only."""
    with contextlib.suppress(OSError), (run_dir / ENDINGS_NAME).open("a") as file:
        file.write(f"{pid} {code}\n")


def noted_endings(run_dir: Path) -> dict[int, int]:
    """Pid → code."""
    try:
        text = (run_dir / ENDINGS_NAME).read_text()
    except FileNotFoundError:
        return {}
    return {int(pid): int(code) for pid, code in re.findall(r"^(\d+) (-?\d+)$", text, re.MULTILINE)}
