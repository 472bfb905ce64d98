"""What a Python was started to run, read from its command line before it runs it.

Every Python of the job imports this at its start: nothing here imports typing, dataclasses or collections.
"""

from __future__ import annotations

import os

_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")

_TORCHRUN_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.elastic.run": "torchrun",
    "torch.distributed.launch": "launch",
}
_CHILD_MARKS = ("--multiprocessing-fork",)
_CHILD_CODE = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "multiprocessing.spawn")


class Program:
    """`kind` is "module", "script", "code" or "interactive"."""

    def __init__(self, kind: str, name: str, arguments: list[str]) -> None:
        self.kind = kind
        self.name = name
        self.arguments = arguments

    @property
    def torchrun(self) -> str | None:
        """ "torchrun" or "launch" if this is one of torch's launchers, else None."""
        if self.kind == "module":
            return _TORCHRUN_MODULES.get(self.name)
        if self.kind == "script" and os.path.basename(self.name) == "torchrun":
            return "torchrun"
        return None

    @property
    def is_child_of_multiprocessing(self) -> bool:
        if self.kind != "code":
            return False
        return any(mark in self.arguments for mark in _CHILD_MARKS) or any(text in self.name for text in _CHILD_CODE)


def program(command_line: list[str]) -> Program:
    """Reads `sys.orig_argv`, interpreter options first."""
    index = 1
    while index < len(command_line):
        item = command_line[index]
        if item in _OPTIONS_WITH_VALUE:
            index += 2
        elif item.startswith("--"):
            index += 1
        elif item == "-" or not item.startswith("-"):
            return Program("script", item, command_line[index + 1 :])
        else:
            found = _short_options(item, command_line, index)
            if found is not None:
                return found
            index += 1
    return Program("interactive", "", [])


def _short_options(item: str, command_line: list[str], index: int) -> Program | None:
    """A cluster such as -um or -c: -m and -c end the interpreter's options and take the rest, or the next item."""
    for position, letter in enumerate(item[1:], start=1):
        if letter in "mc":
            rest = item[position + 1 :]
            tail = command_line[index + 1 :]
            if not rest:
                rest, tail = (tail[0], tail[1:]) if tail else ("", [])
            return Program("module" if letter == "m" else "code", rest, tail)
        if letter in "WX":  # with its value in the same item
            return None
    return None
