"""Loads the ATen hook as soon as the script has imported torch."""

from __future__ import annotations

import os
import sys

from phantora_launcher import environment

TYPE_CHECKING = False  # typing's own would import typing, at the start of every Python of the job
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def watch() -> None:
    sys.meta_path.insert(0, _TorchFinder())


class _TorchFinder:
    """Finds torch as the other finders do, once, and has us called after its import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        else:
            sys.meta_path.insert(0, self)  # not importable yet; the script may add to sys.path
            return None
        if spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """The real loader, followed by our part. Everything else is the real loader's."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._real.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # What this process starts from now on inherits the number but is no rank.
        os.environ[environment.RANK_PID] = str(os.getpid())
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        _load_hook(module)


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
