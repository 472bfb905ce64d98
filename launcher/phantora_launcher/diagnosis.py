"""What an installation has, what it lacks, and how to mend it: the findings of `phantora doctor`."""

from __future__ import annotations

import os
import platform
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import phantora_native
from phantora_launcher import aten_hook, environment
from phantora_launcher.aten_hook import Torch
from phantora_launcher.errors import LaunchError
from phantora_launcher.job_environment import CUDA_LIBRARY_DIR, PRELOAD_LIBRARY
from phantora_launcher.run_folder import RunFolder
from phantora_native.functions import Policy
from phantora_native.symbols import Symbol, TorchNotFound, imported_symbols
from phantora_py.cluster import preset_names

SCHEMA = "phantora.doctor/1"


class Verdict(StrEnum):
    GOOD = "good"
    NOTE = "note"
    """Works, but is worth knowing."""
    BAD = "bad"
    """Jobs cannot run until it is mended."""


@dataclass(frozen=True)
class Finding:
    what: str
    verdict: Verdict
    found: str
    hint: str = ""


@dataclass(frozen=True)
class Diagnosis:
    findings: list[Finding]
    symbols: list[Symbol] = field(default_factory=list)
    """Every CUDA function that torch imports."""

    @property
    def is_good(self) -> bool:
        return all(finding.verdict is not Verdict.BAD for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "good": self.is_good,
            "findings": [asdict(finding) for finding in self.findings],
            "symbols": [asdict(symbol) for symbol in self.symbols],
        }


def diagnose(python: str) -> Diagnosis:
    """Looks at this installation and at the torch that `python` imports. Changes nothing."""
    os.environ.setdefault(environment.NATIVE_DIR, str(phantora_native.LIBRARY_DIR.parent))
    torch = aten_hook.find_torch_of(python, os.environ)
    findings = [_system(), _libraries(), _compiler(), _torch(torch, python)]
    symbols: list[Symbol] = []
    if torch is not None and torch.cuda is not None:
        symbols, finding = _symbols(torch)
        findings += [finding, _hook(torch)]
    findings += [_run_folder(), _clusters()]
    return Diagnosis(findings, symbols)


def _system() -> Finding:
    found = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} CPUs"
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return Finding("system", Verdict.BAD, found, "phantora needs Linux on x86-64")
    return Finding("system", Verdict.GOOD, found)


def _libraries() -> Finding:
    folder = phantora_native.LIBRARY_DIR
    missing = [
        name
        for name in (PRELOAD_LIBRARY, "libphantora_rt.so", "phantora_pytime.abi3.so")
        if not (folder / name).exists()
    ]
    shims = sorted(path.name for path in (folder / CUDA_LIBRARY_DIR).glob("*.so*"))
    if missing or not shims:
        return Finding(
            "emulated libraries",
            Verdict.BAD,
            f"{', '.join(missing) or 'no CUDA library'} missing in {folder}",
            "install phantora_py again: pip install --force-reinstall .",
        )
    return Finding("emulated libraries", Verdict.GOOD, f"{len(shims)} for CUDA 13 in {folder}")


def _compiler() -> Finding:
    try:
        path = aten_hook.compiler()
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except LaunchError as error:
        return Finding("C++ compiler", Verdict.BAD, error.what, error.hint)
    except (OSError, subprocess.CalledProcessError, IndexError) as error:
        return Finding("C++ compiler", Verdict.BAD, str(error), "set CXX to a working compiler (g++ 10 or newer)")
    return Finding("C++ compiler", Verdict.GOOD, f"{version} ({path})")


def _torch(torch: Torch | None, python: str) -> Finding:
    if torch is None:
        return Finding(
            "torch", Verdict.BAD, f"{python} has none", "pip install torch, or activate the environment of your job"
        )
    found = f"{torch.version}, CUDA {torch.cuda or 'none'}, in {torch.root}"
    if torch.cuda is None:
        return Finding("torch", Verdict.BAD, found, "this is a CPU build; install the CUDA wheel (pip install torch)")
    if torch.cuda.split(".")[0] != "13":
        return Finding("torch", Verdict.BAD, found, "only CUDA 13 wheels are emulated yet: pip install torch==2.14.1")
    return Finding("torch", Verdict.GOOD, found)


def _symbols(torch: Torch) -> tuple[list[Symbol], Finding]:
    try:
        symbols = imported_symbols(Path(torch.root))
    except TorchNotFound as error:
        what, _, hint = str(error).partition("\n  hint: ")
        return [], Finding("CUDA functions", Verdict.BAD, what, hint)
    counts = Counter(symbol.policy for symbol in symbols)
    found = f"torch imports {len(symbols)}: " + ", ".join(f"{counts[policy]} {policy.value}" for policy in Policy)
    hint = "an unsupported function ends the rank that calls it, with its name; --symbols lists all"
    return symbols, Finding("CUDA functions", Verdict.NOTE if counts[Policy.ABSENT] else Verdict.GOOD, found, hint)


def _hook(torch: Torch) -> Finding:
    library = aten_hook.library_path(torch)
    if library.exists():
        return Finding("ATen hook", Verdict.GOOD, f"built: {library}")
    return Finding("ATen hook", Verdict.NOTE, "not built yet", "the first job builds it, in about half a minute")


def _run_folder() -> Finding:
    try:
        folder = RunFolder.create()
    except LaunchError as error:
        return Finding("run folder", Verdict.BAD, error.what, error.hint)
    folder.remove()
    return Finding("run folder", Verdict.GOOD, f"in {folder.path.parent}")


def _clusters() -> Finding:
    return Finding("clusters", Verdict.GOOD, ", ".join(preset_names()))
