"""A small process that cleans up after a supervisor that was killed before it could do so itself."""

from __future__ import annotations

import contextlib
import os
import signal

from phantora_launcher import environment, processes
from phantora_launcher.run_folder import RunFolder

_ALL_IS_CLEAN = b"."
_NAME = "phantora-clean"


class Janitor:
    """Waits on a pipe whose other end only the supervisor holds: its end without a word means that it was killed."""

    def __init__(self, folder: RunFolder) -> None:
        read_end, self._pipe = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._pipe)
            try:
                _watch(folder, read_end)
            finally:
                os._exit(0)
        os.close(read_end)

    def dismiss(self) -> None:
        """The supervisor has cleaned up; the janitor, if it has not been killed itself, ends and is reaped."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, _ALL_IS_CLEAN)
        os.close(self._pipe)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _watch(folder: RunFolder, pipe: int) -> None:
    os.setsid()
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_IGN)
    processes.set_name(_NAME)
    if os.read(pipe, 1) == _ALL_IS_CLEAN:
        return
    marker = f"{environment.RUN_DIR}={folder.path}"
    processes.end(lambda: processes.with_environment(marker), grace_s=0)
    folder.remove()
