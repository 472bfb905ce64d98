"""Loads the ATen hook as soon as the script has imported torch."""

from __future__ import annotations

import os
import sys

from phantora_launcher import environment
from phantora_launcher.rank import module_watch

TYPE_CHECKING = False  # typing's own would import typing, at the start of every Python of the job
if TYPE_CHECKING:
    from types import ModuleType


def watch() -> None:
    module_watch.watch("torch", after=_load_hook, before=_become_rank)


def _become_rank() -> None:
    # What this process starts from now on inherits the number but is no rank.
    os.environ[environment.RANK_PID] = str(os.getpid())


def _load_hook(module: ModuleType) -> None:
    from phantora_launcher import aten_hook
    from phantora_launcher.errors import LaunchError

    torch = aten_hook.torch_in(os.path.dirname(str(module.__file__)))
    if torch.cuda is None:
        return
    try:
        aten_hook.load(torch)
    except LaunchError as error:
        # Without the hook every figure would be wrong: end the rank, whatever the script catches.
        print(f"phantora: rank {os.environ.get(environment.RANK, '?')}: {error}", file=sys.stderr, flush=True)
        os._exit(70)
