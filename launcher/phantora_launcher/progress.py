"""What `phantora run` says now and then while a job runs."""

from __future__ import annotations

import time

from phantora_launcher.run_folder import RunFolder
from phantora_py.progress import PROGRESS_NAME

_INTERVAL_S = 20.0
_NOTHING = "nothing simulated yet: the ranks are starting, or compile"


class ProgressReader:
    """Reads what the simulator tells of the job, from the run's folder."""

    def __init__(self, folder: RunFolder) -> None:
        self._file = folder.path / PROGRESS_NAME
        self._started_s = time.monotonic()
        self._next_s = self._started_s + _INTERVAL_S
        self._told = ""

    def news(self) -> str | None:
        """A line for the user, when it is time for one."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return None
        self._next_s = now_s + _INTERVAL_S
        before, self._told = self._told, self._state()
        stands_still = self._told == before and self._told != _NOTHING
        why = ", as before: the ranks work on the host, or compile" if stands_still else ""
        return f"after {now_s - self._started_s:.0f} s: {self._told}{why}"

    def _state(self) -> str:
        try:
            steps, simulated_ns = (int(word) for word in self._file.read_text().split())
        except (OSError, ValueError):
            return _NOTHING
        return f"optimizer steps simulated: {steps}, simulated time: {simulated_ns / 1e9:.3f} s"
