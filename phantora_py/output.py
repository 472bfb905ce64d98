"""What the user asked for beside the table, and what the job can do without."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar


class Output:
    """Something that is written while the job runs. When a write fails, on a full disk say, the job goes on: what has
    been written stays as it is, and `failure` tells why there is no more."""

    failure: OSError | None = None


_Some = TypeVar("_Some", bound=Output)
_Arguments = ParamSpec("_Arguments")


def until_it_fails(
    write: Callable[Concatenate[_Some, _Arguments], None],
) -> Callable[Concatenate[_Some, _Arguments], None]:
    """For an Output's methods that write: after the first failure none of them does anything more."""

    @wraps(write)
    def guarded(output: _Some, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:
        if output.failure is not None:
            return
        try:
            write(output, *args, **kwargs)
        except OSError as failure:
            output.failure = failure

    return guarded


class ReportFile(Output):
    """The report as JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @until_it_fails
    def write(self, result: Mapping[str, Any]) -> None:
        """The file appears under its name once it is complete."""
        text = json.dumps(result, indent=1) + "\n"
        if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
            self._path.write_text(text)  # a device or a pipe stays what it is
            return
        fresh = self._path.with_name(f".{self._path.name}.new")
        try:
            fresh.write_text(text)
            os.replace(fresh, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise


def tell_what_is_lost(outputs: Iterable[tuple[str, Output | None]]) -> bool:
    """Prints which of the outputs, each with the option that asked for it, are not complete. Returns whether one is.

    On standard output, because a log may lie on the very disk that is full.
    """
    lost = [(option, output.failure) for option, output in outputs if output is not None and output.failure is not None]
    for option, failure in lost:
        print(f"phantora: {option} is not complete: {failure}", flush=True)
    return bool(lost)
