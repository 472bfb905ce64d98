"""Building the ATen hook: once, whoever asks first; kept by what it depends on; failures with a hint."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from phantora_launcher import aten_hook, environment
from phantora_launcher.aten_hook import Torch
from phantora_launcher.errors import LaunchError

COMPILER = """#!/bin/bash
echo run >> {log}
sleep 0.3
while [ "$1" != -o ]; do shift; done
echo library > "$2"
"""
ASK = """
import sys
from phantora_launcher import aten_hook
print(aten_hook.ensure_built(aten_hook.Torch("2.0", "abc", "13.0", sys.argv[1], "include", "cp")))
"""


@pytest.fixture
def torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Torch:
    native = tmp_path / "native"
    (native / "aten").mkdir(parents=True)
    (native / "include").mkdir()
    (native / "aten" / "hook.cpp").write_text("int x;\n")
    compiler = tmp_path / "fake-g++"
    compiler.write_text(COMPILER.format(log=tmp_path / "log"))
    compiler.chmod(0o755)
    monkeypatch.setenv(environment.NATIVE_DIR, str(native))
    monkeypatch.setenv(environment.CACHE_DIR, str(tmp_path / "cache"))
    monkeypatch.setenv(environment.CXX, str(compiler))
    return Torch("2.0", "abc", "13.0", str(tmp_path), "include", "cp")


def test_many_at_once_build_it_once(torch: Torch, tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, torch.root], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    answers = [rank.communicate(timeout=120) for rank in ranks]
    assert {stdout.strip() for stdout, _ in answers} == {str(aten_hook.library_path(torch))}
    assert (tmp_path / "log").read_text() == "run\n"
    assert sum("compiling the ATen hook for torch 2.0" in stderr for _, stderr in answers) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.name.startswith(".")] == []


def test_what_it_depends_on_makes_another_one(torch: Torch) -> None:
    first = aten_hook.ensure_built(torch)
    others = [replace(torch, version="2.1"), replace(torch, git_version="def"), replace(torch, python_abi="cp312")]
    assert len({first, *(aten_hook.library_path(other) for other in others)}) == 4
    (aten_hook._native_dir() / "aten" / "hook.cpp").write_text("int y;\n")
    assert aten_hook.library_path(torch) != first


def test_failing_compiler_is_shown(torch: Torch, tmp_path: Path) -> None:
    (tmp_path / "fake-g++").write_text("#!/bin/bash\necho 'error: no such header' >&2\nexit 1\n")
    with pytest.raises(LaunchError, match=r"(?s)error: no such header.*hint: is the compiler at least"):
        aten_hook.ensure_built(torch)
    assert not aten_hook.library_path(torch).exists()


def test_no_compiler(torch: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.CXX, "no-such-compiler")
    with pytest.raises(LaunchError, match=r"no C\+\+ compiler \(no-such-compiler"):
        aten_hook.ensure_built(torch)


def test_cache_that_cannot_be_written(torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(environment.CACHE_DIR, str(tmp_path / "file" / "cache"))
    with pytest.raises(LaunchError, match="cannot write to the cache folder"):
        aten_hook.ensure_built(torch)


def test_cache_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.CACHE_DIR, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert aten_hook._cache_dir() == Path("/x/phantora")
