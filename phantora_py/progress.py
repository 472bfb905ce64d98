"""How far a running job has come, for the launcher: one line in a file of the run's folder."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from phantora_netsim._core import Marks, Timeline

PROGRESS_NAME = "progress"
_MARK, _STEP_ENDED = 10, 1
_INTERVAL_S = 1.0


class Progress:
    """Observer of one job. The file holds the optimizer steps that every rank has ended and the simulated ns so far."""

    def __init__(self, run_dir: Path, ranks: int) -> None:
        self._file = run_dir / PROGRESS_NAME
        self._steps = np.zeros(ranks, np.int64)
        self._latest_ns = 0
        self._next_s = 0.0

    def observe(self, timeline: Timeline, marks: Marks) -> None:
        ended = (marks.kind == _MARK) & (marks.a == _STEP_ENDED)
        np.add.at(self._steps, marks.rank[ended], 1)
        if len(timeline.end_ns):
            self._latest_ns = max(self._latest_ns, int(timeline.end_ns.max()))
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _INTERVAL_S
            with contextlib.suppress(OSError):  # a full disk: nobody is told, and the job goes on
                self._write()

    def _write(self) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{self._steps.min()} {self._latest_ns}\n")
        os.replace(fresh, self._file)
