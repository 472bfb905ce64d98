"""What is told of ranks that failed, in torchrun's form."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from phantora_launcher.torchrun.plan import RankPlan

_NO_TRACEBACK = "the rank's own output above shows it, unless it went to a log file"
_MAX_WIDTH = 60


@dataclass(frozen=True)
class Failure:
    rank: RankPlan
    pid: int
    code: int
    """Exit code; negative for a signal."""
    error_file: Path | None
    when: datetime

    @property
    def signal_name(self) -> str | None:
        if self.code >= 0:
            return None
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return f"signal {-self.code}"

    @property
    def sentence(self) -> str:
        """One line that names the rank, said at once."""
        how = f"was killed by {self.signal_name}" if self.code < 0 else f"failed with exit code {self.code}"
        place = f"local rank {self.rank.local_rank} on {self.rank.hostname}, pid {self.pid}"
        return f"rank {self.rank.rank} ({place}) {how}"

    @property
    def traceback(self) -> str:
        recorded = _recorded_traceback(self.error_file)
        if recorded:
            return recorded
        return f"{self.signal_name} received by pid {self.pid}" if self.code < 0 else _NO_TRACEBACK


def summary(entry_point: str, failures: Sequence[Failure]) -> str:
    """The block that torchrun prints at the end; the first failure to happen is the root cause."""
    root, *others = failures
    title = f"{entry_point} FAILED"
    blocks = [_describe(index, failure) for index, failure in enumerate(failures)]
    width = min(_MAX_WIDTH, max(len(line) for line in [title, *"\n".join(blocks).splitlines()]))
    return "\n".join(
        [
            "=" * width,
            title,
            "-" * width,
            "Failures:",
            "\n".join(_describe(index, failure) for index, failure in enumerate(others, start=1))
            or "  <NO_OTHER_FAILURES>",
            "-" * width,
            "Root Cause (first observed failure):",
            _describe(0, root),
            "=" * width,
        ]
    )


def _describe(index: int, failure: Failure) -> str:
    signal_text = f" ({failure.signal_name})" if failure.signal_name else ""
    error_file = failure.error_file if failure.error_file and failure.error_file.exists() else "<N/A>"
    lines = [
        f"[{index}]:",
        f"  time      : {failure.when.strftime('%Y-%m-%d_%H:%M:%S')}",
        f"  host      : {failure.rank.hostname}",
        f"  rank      : {failure.rank.rank} (local_rank: {failure.rank.local_rank})",
        f"  exitcode  : {failure.code} (pid: {failure.pid}){signal_text}",
        f"  error_file: {error_file}",
        "  traceback : " + failure.traceback.rstrip().replace("\n", "\n  "),
    ]
    return "\n".join(lines)


def _recorded_traceback(error_file: Path | None) -> str:
    if error_file is None:
        return ""
    try:
        message = json.loads(error_file.read_text())["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    if isinstance(message, str):
        return message
    details = message.get("extraInfo", {})
    return str(details.get("py_callstack") or message.get("message", ""))
