"""The list of every CUDA function that an emulated library exports, with what becomes of a call (native/spec/*.toml).

One file a library, one line a function:

    cublasCreate_v2 = "emulated"    a source in native/shims/<library>/ defines it; the link fails if none does
    cublasXerbla = "unsupported"    a generated stub ends the rank, naming function and library
    cuptiFinalize = { ... }         a constant: a generated function returns what the line states, and does no more

Read by the generator (native/codegen), by `phantora doctor` and by the tests.
"""

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_INSTALLED = Path(__file__).parent / "spec"
_CHECKOUT = Path(__file__).parents[1] / "spec"
SPEC_DIR = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


class SpecError(ValueError):
    """A spec file says something that it may not; the message names file and line's key."""


class Policy(StrEnum):
    """What becomes of a call."""

    EMULATED = "emulated"
    CONSTANT = "constant"
    UNSUPPORTED = "unsupported"
    ABSENT = "absent"
    """Not in the list at all: torch imports it, but no emulated library of ours defines it."""


@dataclass(frozen=True)
class Constant:
    """A function whose whole effect is a stated result: it stores `out` through its arguments and returns `returns`."""

    type: str
    """C type of the result."""
    arguments: str
    """C parameter list."""
    returns: str
    """C expression; empty for void."""
    out: tuple[tuple[str, str], ...]
    """(pointer argument, C expression) to store."""
    reason: str


@dataclass(frozen=True)
class Function:
    name: str
    policy: Policy
    constant: Constant | None = None


@dataclass(frozen=True)
class Build:
    """A library as one CUDA major version ships it."""

    cuda: int
    soname: str
    version: str
    """Version tag of its symbols; empty when they carry none."""


@dataclass(frozen=True)
class Library:
    """All functions of one library, sorted by name, and the builds it exists in by CUDA major version."""

    name: str
    title: str
    builds: Mapping[int, Build]
    functions: tuple[Function, ...]

    def with_policy(self, policy: Policy) -> tuple[Function, ...]:
        return tuple(function for function in self.functions if function.policy is policy)


def load(path: Path) -> Library:
    """Reads one spec file.

    Raises SpecError when a key is missing, a policy unknown, a constant without reason, or the names are not sorted.
    """
    try:
        document = tomllib.loads(path.read_text())
        builds = {int(major): Build(int(major), **fields) for major, fields in document["cuda"].items()}
        table = document["functions"]
        title = str(document["title"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise SpecError(f"{path}: {type(error).__name__}: {error}") from error
    functions = tuple(_function(path, name, value) for name, value in table.items())
    names = [function.name for function in functions]
    for before, after in itertools.pairwise(names):
        if before > after:
            raise SpecError(
                f"{path}: {after} stands after {before}\n  hint: keep the functions sorted by name (LC_ALL=C sort)"
            )
    return Library(path.stem, title, builds, functions)


def load_all(directory: Path = SPEC_DIR) -> list[Library]:
    """Reads every spec file of a directory, sorted by library name."""
    libraries = [load(path) for path in sorted(directory.glob("*.toml"))]
    if not libraries:
        raise SpecError(f"{directory} holds no *.toml\n  hint: install phantora_py with pip, or run from its checkout")
    return libraries


def _function(path: Path, name: str, value: object) -> Function:
    if isinstance(value, dict):
        return Function(name, Policy.CONSTANT, _constant(path, name, value))
    if value not in (Policy.EMULATED, Policy.UNSUPPORTED):
        raise SpecError(f'{path}: {name} = {value!r}\n  hint: write "emulated", "unsupported" or a constant\'s table')
    return Function(name, Policy(str(value)))


def _constant(path: Path, name: str, fields: dict[str, object]) -> Constant:
    unknown = set(fields) - {"type", "arguments", "returns", "out", "reason"}
    if unknown or not fields.get("reason"):
        raise SpecError(
            f"{path}: {name}: unknown keys {sorted(unknown)} or no reason\n  hint: every constant states why"
        )
    out = fields.get("out", {})
    if not isinstance(out, dict):
        raise SpecError(f"{path}: {name}: out = {out!r}\n  hint: out = {{ argument = expression }}")
    return Constant(
        type=str(fields.get("type", "int")),
        arguments=str(fields.get("arguments", "void")),
        returns=str(fields.get("returns", "0")),
        out=tuple((str(argument), str(expression)) for argument, expression in out.items()),
        reason=str(fields["reason"]),
    )
