"""Decides what this Python is: torchrun, a rank, or a bystander; and prepares it."""

from __future__ import annotations

import os
import sys

from phantora_launcher import environment
from phantora_launcher.rank.interpreter import program


def begin() -> None:
    running = program(sys.orig_argv)
    _come_back_with_preload()
    launcher = running.torchrun
    if launcher is not None:
        _become_front(launcher, running.arguments)
    if running.is_child_of_multiprocessing or not _is_rank():
        return
    from phantora_launcher.rank import clock, torch_import

    clock.start()
    torch_import.watch()


def _come_back_with_preload() -> None:
    """Starts this Python once more if a run script has set LD_PRELOAD anew: without our library nothing is emulated."""
    library = os.path.join(os.environ[environment.NATIVE_DIR], "lib", "libphantora_preload.so")
    others = os.environ.get("LD_PRELOAD", "")
    if library not in others.replace(":", " ").split():
        os.environ["LD_PRELOAD"] = f"{library}:{others}" if others else library
        os.execv(sys.executable, sys.orig_argv)


def _is_rank() -> bool:
    """A rank is known by its number, unless the process that became the rank is another one: our parent, say."""
    if environment.RANK not in os.environ:
        return False
    return os.environ.get(environment.RANK_PID, str(os.getpid())) == str(os.getpid())


def _become_front(launcher: str, arguments: list[str]) -> None:
    """Executes our torchrun in the place of this process, in phantora's own Python."""
    python = os.environ[environment.PYTHON]
    command = [python, "-I", "-m", "phantora_launcher.torchrun", sys.executable, launcher, *arguments]
    sys.stdout.flush()
    os.execve(python, command, os.environ)
