"""Core, runtime and shims under AddressSanitizer and UBSan: the native test programs, random jobs, damaged input.

Both are built with PHANTORA_SANITIZE into a package of their own, which hides the installed one from the tests that run
here once more. A report of a sanitizer ends its process, and with it a test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pybind11
import pytest

REPOSITORY = Path(__file__).parents[2]
SANITIZERS = "address,undefined"
FLAGS = f"-fsanitize={SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer"
SHIMS = ("cudart", "cupti", "driver", "nccl")
LIMIT_S = 900


def library(name: str) -> str:
    """A run-time library of the compiler's."""
    done = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if not Path(library("libasan.so")).is_absolute() or not Path(library("libubsan.so")).is_absolute():
    pytest.skip("the compiler comes without sanitizers", allow_module_level=True)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tests below need, no more."""
    folder = tmp_path_factory.mktemp("sanitized")
    subprocess.run(
        [
            *("cmake", "-G", "Ninja", "-S", REPOSITORY, "-B", folder, f"-DPHANTORA_SANITIZE={SANITIZERS}"),
            *("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1", "-DCMAKE_C_FLAGS_DEBUG=-O0"),
            *(f"-Dpybind11_DIR={pybind11.get_cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"),
        ],
        check=True,
        capture_output=True,
    )
    targets = ("_core", "phantora_rt", *(f"shim_{shim}_cuda13" for shim in SHIMS))
    subprocess.run(["cmake", "--build", folder, "--target", *targets], check=True, capture_output=True)
    return folder


def python(arguments: list[str | Path], packages: Path, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(packages), **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def core(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with phantora_netsim."""
    packages = tmp_path_factory.mktemp("core")
    shutil.copytree(REPOSITORY / "netsim" / "phantora_netsim", packages / "phantora_netsim")
    (compiled,) = (build / "netsim").glob("_core*.so")
    shutil.copy(compiled, packages / "phantora_netsim")
    return packages


# Python itself is not built with sanitizers: they are preloaded, its own leaks are not looked for, and it leaves the
# memory that it hands to the core to malloc.
PRELOADED = {
    "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
    "ASAN_OPTIONS": "detect_leaks=0",
    "PYTHONMALLOC": "malloc",
}


def test_core_on_small_and_random_jobs(core: Path) -> None:
    tests = ["tests/unit/test_core.py", "tests/property/test_core_oracle.py", "tests/property/test_core_delivery.py"]
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=few", *tests]
    python([*arguments, "-k", "not training"], core, **PRELOADED)


def test_core_on_damaged_batches(core: Path) -> None:
    helpers = f"{core}{os.pathsep}{REPOSITORY / 'tests' / 'property'}{os.pathsep}{REPOSITORY / 'tests'}"
    python([REPOSITORY / "tests" / "property" / "test_core_fuzz.py", "10000"], Path(helpers), **PRELOADED)


@pytest.fixture(scope="module")
def runtime(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with phantora_native, of which there are the runtime and some shims, and a g++ that adds sanitizers."""
    packages = tmp_path_factory.mktemp("runtime")
    shutil.copytree(REPOSITORY / "native" / "phantora_native", packages / "phantora_native")
    libraries = packages / "phantora_native" / "lib"
    (libraries / "cuda13").mkdir(parents=True)
    (libraries / "libphantora_rt.so").symlink_to(build / "native" / "runtime" / "libphantora_rt.so")
    for shim in (build / "native" / "shims" / "cuda13").glob("*.so*"):
        (libraries / "cuda13" / shim.name).symlink_to(shim)
    (packages / "phantora_native" / "include").symlink_to(REPOSITORY / "native" / "runtime" / "include")
    compiler = packages / "bin" / "g++"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} {FLAGS} -g1 "$@"\n')
    compiler.chmod(0o755)
    return packages


def test_native_programs(runtime: Path) -> None:
    path = f"{runtime / 'bin'}{os.pathsep}{os.environ['PATH']}"
    tests = [
        "test_nccl.py",
        "test_value_store.py",
        "test_cuda_runtime.py",
        "test_virtual_memory.py",
        "test_profiler.py",
    ]
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/native/{test}" for test in tests)]
    python([*arguments, "-k", "not layout"], runtime, PATH=path)
