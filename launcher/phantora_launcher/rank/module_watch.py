"""Calls back around the import of a module, whoever imports it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own would import typing, at the start of every Python of the job
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def watch(name: str, after: Callable[[ModuleType], None], before: Callable[[], None] | None = None) -> None:
    """`after` gets the module when its import is done: at once if that has been."""
    module = sys.modules.get(name)
    if module is not None:
        after(module)
    else:
        sys.meta_path.insert(0, _Finder(name, after, before))


class _Finder:
    """Finds the module as the other finders do, once."""

    def __init__(self, name: str, after: Callable[[ModuleType], None], before: Callable[[], None] | None) -> None:
        self._name = name
        self._after = after
        self._before = before

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
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
            spec.loader = _Loader(spec.loader, self._after, self._before)  # type: ignore[assignment]
        return spec


class _Loader:
    """The real loader, followed by our part. Everything else is the real loader's."""

    def __init__(self, real: Any, after: Callable[[ModuleType], None], before: Callable[[], None] | None) -> None:
        self._real = real
        self._after = after
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._real.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if self._before is not None:
            self._before()
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        self._after(module)
