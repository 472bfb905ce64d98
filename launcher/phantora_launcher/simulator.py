"""The simulator process as the supervisor sees it: started, ready, told that the job is over, gone."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phantora_launcher import environment, processes
from phantora_launcher.errors import LaunchError
from phantora_launcher.run_folder import RunFolder

_START_LIMIT_S = 120.0
_LOOK_INTERVAL_S = 0.01
_LOG_LINES_SHOWN = 20


@dataclass(frozen=True)
class ReportOptions:
    """What the simulator makes of the run beside the table that it prints."""

    json_file: Path | None = None
    trace_file: Path | None = None
    record_dir: Path | None = None
    all_ranks: bool = False


class SimulatorProcess:
    """`python -m phantora_py.simulator`. Its input ends when the job is over, or the supervisor was killed."""

    def __init__(self, folder: RunFolder, cluster: str, command: Sequence[str], report: ReportOptions) -> None:
        self._folder = folder
        read_end, self._pipe = os.pipe()
        log = os.open(folder.simulator_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        variables = {**os.environ, environment.RUN_DIR: str(folder.path)}
        self.pid = processes.spawn(
            _command_line(folder, cluster, command, report), variables, dies_with_us=False, stdin=read_end, stderr=log
        )
        os.close(read_end)
        os.close(log)
        self.exit_code: int | None = None

    def wait_until_ready(self) -> None:
        """Returns when ranks can connect. Raises LaunchError if the simulator ends or takes too long."""
        deadline = time.monotonic() + _START_LIMIT_S
        while not self._folder.socket.exists():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
                raise LaunchError(
                    f"the simulator ended at its start (code {self.exit_code})\n{self.log_tail()}",
                    "its last words above say why; `phantora doctor` checks the installation",
                )
            if time.monotonic() > deadline:
                raise LaunchError(
                    f"the simulator was not ready after {_START_LIMIT_S:.0f} s", "is this machine very busy? try again"
                )
            time.sleep(_LOOK_INTERVAL_S)

    def job_is_over(self) -> None:
        """Asks for the report; the process ends when it is written."""
        with contextlib.suppress(OSError):
            os.close(self._pipe)

    def log_tail(self) -> str:
        try:
            lines = self._folder.simulator_log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(f"  | {line}" for line in lines[-_LOG_LINES_SHOWN:])


def _command_line(folder: RunFolder, cluster: str, command: Sequence[str], report: ReportOptions) -> list[str]:
    # -P: the folder that the job is started in may hold modules of any name.
    line = [sys.executable, "-P", "-m", "phantora_py.simulator", "--run-dir", str(folder.path), "--cluster", cluster]
    if report.json_file is not None:
        line += ["--json", str(report.json_file)]
    if report.trace_file is not None:
        line += ["--trace", str(report.trace_file)]
    if report.record_dir is not None:
        line += ["--record", str(report.record_dir)]
    if report.all_ranks:
        line += ["--all-ranks"]
    return [*line, "--", *command]
