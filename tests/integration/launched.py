"""Runs `phantora run` for tests, in a Python that has no torch, and looks at what is left afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WAIT_S = 60.0
"""Machines that run tests may be slow."""


@dataclass(frozen=True)
class Finished:
    code: int
    stdout: str
    stderr: str


class Workplace:
    """A folder with scripts, an own TMPDIR for run folders, and a Python without torch first on PATH."""

    def __init__(self, folder: Path, python_dir: Path) -> None:
        self.folder = folder
        self.run_parent = folder / "t"
        self.run_parent.mkdir()
        self.variables = {
            **{name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"},
            "PATH": f"{python_dir}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": str(self.run_parent),
            "COLUMNS": "120",
        }

    def script(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def phantora_command(self, *command: str, cluster: str = "dgx-h100:2", options: tuple[str, ...] = ()) -> list[str]:
        return [sys.executable, "-m", "phantora_launcher", "run", "--cluster", cluster, *options, "--", *command]

    def run(
        self, *command: str, cluster: str = "dgx-h100:2", options: tuple[str, ...] = (), limit_s: float = 2 * WAIT_S
    ) -> Finished:
        line = self.phantora_command(*command, cluster=cluster, options=options)
        done = subprocess.run(
            line, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=limit_s, check=False
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(
        self, *command: str, cluster: str = "dgx-h100:2", options: tuple[str, ...] = ()
    ) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            self.phantora_command(*command, cluster=cluster, options=options),
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def processes(self) -> list[int]:
        """Processes of the jobs that were started here, by their environment or arguments; ourselves excepted."""
        marks = [f"TMPDIR={self.run_parent}".encode()]
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if state != b"Z" and any(mark in variables for mark in marks):
                found.append(int(entry.name))
        return found

    def assert_nothing_is_left(self) -> None:
        wait_until(lambda: not self.processes(), f"processes are left: {self._named()}")
        wait_until(lambda: not list(self.run_parent.iterdir()), f"files are left: {list(self.run_parent.iterdir())}")

    def _named(self) -> list[tuple[int, str]]:
        return [(pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")) for pid in self.processes()]


def wait_until(condition: Callable[[], bool], failure: str, limit_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, failure
        time.sleep(0.05)


def wait_for_files(folder: Path, names: list[str], limit_s: float = WAIT_S) -> None:
    wait_until(lambda: all((folder / name).exists() for name in names), f"not all of {names} came", limit_s)


def pid_in(file: Path) -> int:
    """What a process that may still be writing it says."""
    wait_until(lambda: bool(file.read_text()), f"{file} holds no pid")
    return int(file.read_text())
