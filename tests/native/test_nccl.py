"""The NCCL shim by itself: C++ programs, compiled here against the installed runtime."""

import subprocess
from pathlib import Path

import pytest
from phantora_native import INCLUDE_DIR, LIBRARY_DIR

HERE = Path(__file__).parent
SHIMS = HERE.parents[1] / "native" / "shims"
LIBRARIES = LIBRARY_DIR / "cuda13"

MACHINE = """
device.name = NVIDIA H100 80GB HBM3
device.count = 4
device.memory_bytes = 85000000000
device.context_bytes = 500000000
device.sm_count = 132
device.cc_major = 9
device.cc_minor = 0
device.nvlink_count = 18
"""


def compiled(tmp_path: Path, name: str, *options: str) -> Path:
    """A test program of this folder, with the shim's arithmetic, which its library does not export."""
    program = tmp_path / name
    command = ["g++", "-std=c++20", "-O1", "-I", str(SHIMS), "-I", str(INCLUDE_DIR), "-I", str(HERE)]
    command += [str(HERE / f"{name}.cpp"), str(SHIMS / "nccl" / "reduction.cpp"), "-o", str(program), *options]
    subprocess.run(command, check=True)
    return program


def test_reductions(tmp_path: Path) -> None:
    subprocess.run([compiled(tmp_path, "nccl_reduction_test")], check=True, timeout=60)


def test_values_within_one_process(tmp_path: Path) -> None:
    paths = f"-Wl,-rpath,{LIBRARIES}:{LIBRARY_DIR}"
    program = compiled(
        tmp_path, "nccl_values_test", f"-L{LIBRARIES}", f"-L{LIBRARY_DIR}", "-l:libnccl.so.2", "-lphantora_rt", paths
    )
    (tmp_path / "machine.conf").write_text(MACHINE)
    environment = {
        "PHANTORA_RUN_DIR": str(tmp_path),
        "PHANTORA_RANK": "0",
        "PHANTORA_NODE": "0",
        "PHANTORA_LOCAL_RANK": "0",
        "PHANTORA_SINK": "null",
    }
    subprocess.run([program], check=True, timeout=120, env=environment)


@pytest.mark.parametrize("name", ["nccl"])
def test_layout_is_nvidias(tmp_path: Path, name: str) -> None:
    """Sizes, offsets and values of the interface against NVIDIA's header, where a wheel or toolkit holds one."""
    nvidia = pytest.importorskip("nvidia")
    roots = [Path(path) for path in nvidia.__path__]
    includes = [root / part / "include" for root in roots for part in ("nccl", "cu13", "cuda_runtime")]
    headers = [path for path in includes if path.is_dir()]
    if not any((path / f"{name}.h").is_file() for path in headers):
        pytest.skip(f"no {name}.h on this machine")
    options = [argument for path in headers for argument in ("-isystem", str(path))]
    source = HERE / f"{name}_layout.cpp"
    subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I", str(SHIMS), *options, str(source)], check=True)
