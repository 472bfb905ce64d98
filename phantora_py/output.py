"""What the user asked for beside the table, and what the job can do without."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar


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
