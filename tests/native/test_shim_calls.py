"""The math libraries by themselves, and what a call of an unsupported function does."""

import re
import subprocess
import sys
from pathlib import Path

from cuda_programs import HERE, MACHINE, run_as_rank

from phantora_native import INCLUDE_DIR, LIBRARY_DIR
from phantora_native.absent import build_stubs
from phantora_native.functions import Policy
from phantora_native.symbols import Symbol

SHIMS = LIBRARY_DIR / "cuda13"
CALL = "import ctypes, sys; getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])()"
UNSUPPORTED_CODE = 70


def test_native_programs(tmp_path: Path) -> None:
    program = tmp_path / "library_calls_test"
    libraries = ["-l:libcublas.so.13", "-l:libcublasLt.so.13", "-l:libcudnn.so.9", "-lphantora_rt"]
    command = ["g++", "-std=c++20", "-O1", "-Wall", "-I", INCLUDE_DIR, "-I", HERE, HERE / "library_calls_test.cpp"]
    command += ["-o", program, f"-L{SHIMS}", f"-L{LIBRARY_DIR}", *libraries, f"-Wl,-rpath,{SHIMS}:{LIBRARY_DIR}"]
    subprocess.run(command, check=True)
    result = run_as_rank(program, run_dir=tmp_path, sink="null")
    assert result.returncode == 0, result.stderr


def call(tmp_path: Path, library: Path, function: str) -> subprocess.CompletedProcess[str]:
    return run_as_rank(
        Path(sys.executable), "-c", CALL, str(library), function, run_dir=tmp_path, sink="null", machine=MACHINE
    )


def test_an_unsupported_function_ends_the_rank_and_names_itself(tmp_path: Path) -> None:
    result = call(tmp_path, SHIMS / "libcusparse.so.12", "cusparseSpGEMM_compute")
    assert result.returncode == UNSUPPORTED_CODE
    assert re.search(r"cusparseSpGEMM_compute of libcusparse\.so\.12 is not emulated\n +hint: ", result.stderr)


def test_a_function_that_no_list_holds_does_too(tmp_path: Path) -> None:
    symbols = [
        Symbol("libcublas.so.13", "cublasOfTomorrow", "libcublas.so.13", Policy.ABSENT),
        Symbol("libcublas.so.13", "cublasCreate_v2", "libcublas.so.13", Policy.EMULATED),
    ]
    stubs = build_stubs(symbols, tmp_path / "cache")
    assert stubs is not None
    assert build_stubs(symbols, tmp_path / "cache") == stubs
    result = call(tmp_path, stubs, "cublasOfTomorrow")
    assert result.returncode == UNSUPPORTED_CODE
    assert "cublasOfTomorrow of libcublas.so.13 is not emulated" in result.stderr


def test_nothing_absent_needs_no_stubs(tmp_path: Path) -> None:
    assert build_stubs([Symbol("libcuda.so.1", "cuInit", "", Policy.EMULATED)], tmp_path / "cache") is None


def test_libraries_export_the_list_and_nothing_else() -> None:
    for path in sorted(SHIMS.glob("*.so*")):
        names = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        exported = {line.split()[-1].split("@")[0] for line in names.splitlines() if line.split()[1] not in "Aa"}
        stray = {name for name in exported if not re.match(r"(__)?cu[A-Za-z]|p?nccl|nvml|nvrtc|nvshmem", name)}
        assert not stray, path
