"""How far a job has come: written by the simulator, read by the launcher."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phantora_launcher import progress as reading
from phantora_launcher.run_folder import RunFolder
from phantora_py import progress as writing


def columns(**named: list[int]) -> Any:
    return SimpleNamespace(**{name: np.array(values, np.int64) for name, values in named.items()})


def test_steps_of_the_slowest_rank_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_INTERVAL_S", 0.0)
    monkeypatch.setattr(writing, "_INTERVAL_S", 0.0)
    reader = reading.ProgressReader(RunFolder(tmp_path))
    assert "nothing simulated yet" in (reader.news() or "")
    progress = writing.Progress(tmp_path, ranks=2)
    progress.observe(
        columns(end_ns=[5, 2_500_000_000]), columns(rank=[0, 0, 1, 1], kind=[10, 10, 10, 13], a=[1, 1, 1, 1])
    )
    assert (reader.news() or "").endswith("optimizer steps simulated: 1, simulated time: 2.500 s")
    progress.observe(columns(end_ns=[]), columns(rank=[1, 1], kind=[10, 10], a=[1, 2]))
    assert (reader.news() or "").endswith("optimizer steps simulated: 2, simulated time: 2.500 s")
    assert (reader.news() or "").endswith("2.500 s, as before: the ranks work on the host, or compile")


def test_nothing_is_said_before_its_time(tmp_path: Path) -> None:
    assert reading.ProgressReader(RunFolder(tmp_path)).news() is None
