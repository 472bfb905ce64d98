"""Stubs for CUDA functions that the user's torch imports and no emulated library defines (another torch, another CUDA).

They are compiled at first use into one shared library, cached by their names; a rank that calls one ends, naming it.
"""

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from phantora_native import LIBRARY_DIR
from phantora_native.functions import Policy
from phantora_native.symbols import Symbol


class CompilerError(RuntimeError):
    """The stubs could not be compiled; the message holds the command and what the compiler said."""


def build_stubs(
    symbols: Iterable[Symbol], directory: Path, library_dir: Path = LIBRARY_DIR, compiler: str = "gcc"
) -> Path | None:
    """The library that defines the absent ones of `symbols`, compiled into `directory` unless it lies there already.

    None when nothing is absent. `library_dir` holds libphantora_rt.so; `compiler` is a C compiler with gcc's options.
    Safe when several processes do it at once. Raises CompilerError.
    """
    absent = [symbol for symbol in symbols if symbol.policy is Policy.ABSENT]
    if not absent:
        return None
    source = stub_source(absent)
    key = hashlib.sha256(f"{library_dir}\n{source}".encode()).hexdigest()[:16]
    target = directory / f"libphantora_absent-{key}.so"
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        _compile(compiler, source, target, library_dir)
    return target


def stub_source(absent: Iterable[Symbol]) -> str:
    """C source of one stub a function name."""
    sonames = {symbol.name: symbol.library for symbol in absent}
    lines = ["_Noreturn void phantora_unsupported(const char* library, const char* function);"]
    lines += [f'void {name}(void) {{ phantora_unsupported("{sonames[name]}", "{name}"); }}' for name in sorted(sonames)]
    return "\n".join(lines) + "\n"


def _compile(compiler: str, source: str, target: Path, library_dir: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".absent-") as folder:
        built = Path(folder) / target.name
        command = [compiler, "-x", "c", "-", "-shared", "-fPIC", "-O1", "-o", str(built)]
        command += [f"-L{library_dir}", "-lphantora_rt", f"-Wl,-rpath,{library_dir}"]
        try:
            result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise CompilerError(f"no C compiler: {compiler}\n  hint: install gcc") from error
        if result.returncode != 0:
            raise CompilerError(f"{' '.join(command)} failed:\n{result.stderr.strip()}")
        built.replace(target)
