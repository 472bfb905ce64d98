"""The run's private folder: socket, machine.conf, job.json and logs. Gone when the run is over."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from phantora_launcher.errors import LaunchError

SOCKET = "sim.sock"
MACHINE = "machine.conf"
JOB = "job.json"
SIMULATOR_LOG = "simulator.log"

_PREFIX = "phantora-"
_MAX_SOCKET_PATH_BYTES = 107
"""sockaddr_un holds 108 bytes with the final zero."""


class RunFolder:
    """A folder of mode 0700 that only this user can enter."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls) -> RunFolder:
        """Makes it in XDG_RUNTIME_DIR, or else in TMPDIR. Raises LaunchError where no folder will do."""
        tried = []
        for parent in _parents():
            try:
                path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            except OSError as error:
                tried.append(f"{parent}: {error.strerror}")
                continue
            if len(os.fsencode(path / SOCKET)) <= _MAX_SOCKET_PATH_BYTES:
                return cls(path)
            path.rmdir()
            tried.append(f"{parent}: its name is too long for a Unix socket")
        raise LaunchError(
            f"no place for the run's private folder ({'; '.join(tried)})",
            "set TMPDIR to a writable folder with a short name",
        )

    @property
    def socket(self) -> Path:
        return self.path / SOCKET

    @property
    def simulator_log(self) -> Path:
        return self.path / SIMULATOR_LOG

    def write_machine(self, lines: Mapping[str, object]) -> None:
        text = "".join(f"{key} = {value}\n" for key, value in lines.items())
        (self.path / MACHINE).write_text(text)

    def write_job(self, facts: Mapping[str, object]) -> None:
        (self.path / JOB).write_text(json.dumps(facts))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _parents() -> list[str]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folders = [runtime] if runtime and os.access(runtime, os.W_OK | os.X_OK) else []
    return [*folders, tempfile.gettempdir(), *(["/tmp"] if tempfile.gettempdir() != "/tmp" else [])]
