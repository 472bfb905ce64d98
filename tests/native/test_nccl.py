"""The NCCL shim by itself: C++ programs, compiled here against the installed runtime."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cuda_programs import HERE, MACHINE, SHIMS
from fake_rank import join_as_launcher
from serving import serving

from phantora_native import INCLUDE_DIR, LIBRARY_DIR

LIBRARIES = LIBRARY_DIR / "cuda13"
RANKS = 4


def environment_of(run_dir: Path, rank: int, sink: str) -> dict[str, str]:
    return {
        "PHANTORA_RUN_DIR": str(run_dir),
        "PHANTORA_RANK": str(rank),
        "PHANTORA_NODE": "0",
        "PHANTORA_LOCAL_RANK": str(rank),
        "PHANTORA_SINK": sink,
    }


def compiled(folder: Path, name: str) -> Path:
    """A test program of this folder, with the shim's arithmetic, which its library does not export."""
    program = folder / name
    sources = [HERE / f"{name}.cpp", SHIMS / "nccl" / "reduction.cpp"]
    libraries = [f"-L{LIBRARIES}", f"-L{LIBRARY_DIR}", "-l:libnccl.so.2", "-lphantora_rt"]
    paths = [f"-Wl,-rpath,{LIBRARIES}:{LIBRARY_DIR}"]
    includes = ["-I", SHIMS, "-I", INCLUDE_DIR, "-I", HERE]
    subprocess.run(
        ["g++", "-std=c++20", "-O1", *includes, *sources, "-o", program, *libraries, *paths],
        check=True,
    )
    return program


def test_reductions(tmp_path: Path) -> None:
    subprocess.run([compiled(tmp_path, "nccl_reduction_test")], check=True, timeout=60)


def test_values_within_one_process(tmp_path: Path) -> None:
    program = compiled(tmp_path, "nccl_values_test")
    (tmp_path / "machine.conf").write_text(MACHINE)
    subprocess.run([program], check=True, timeout=120, env=environment_of(tmp_path, 0, "null"))


@pytest.fixture(scope="module")
def ranks_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("nccl"), "nccl_ranks_test")


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Path]:
    """The run folder of a simulator that serves one job of four ranks."""
    with serving(tmp_path, "dgx-h100"):
        launcher = join_as_launcher(tmp_path, RANKS)
        yield tmp_path
        launcher.close()


@pytest.mark.parametrize("case", ["collectives", "grouped", "ring", "order", "split", "non_blocking", "large", "abort"])
def test_values_between_processes(ranks_program: Path, simulator: Path, case: str) -> None:
    processes = [
        subprocess.Popen([ranks_program, case], env=environment_of(simulator, rank, "socket")) for rank in range(RANKS)
    ]
    try:
        codes = [process.wait(timeout=40) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert codes == [0] * RANKS


@pytest.mark.parametrize("end", ["destroyed", "aborted", "finalized"])
def test_a_graph_does_not_outlive_its_communicator(ranks_program: Path, tmp_path: Path, end: str) -> None:
    (tmp_path / "machine.conf").write_text(MACHINE)
    environment = environment_of(tmp_path, 0, "null")
    done = subprocess.run([ranks_program, f"launch_{end}"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 70
    assert f"captured calls on communicator without a name (member 0 of 1), which was {end}\n  hint: " in done.stderr


def test_layout_is_nvidias(tmp_path: Path) -> None:
    """Sizes, offsets and values of the interface against NVIDIA's nccl.h, where its wheel lies on this machine."""
    headers = [Path(path, "nvidia", "nccl", "include") for path in sys.path]
    found = next((path for path in headers if (path / "nccl.h").is_file()), None)
    if found is None:
        pytest.skip("NVIDIA's nccl.h is not installed")
    # All that nccl.h needs of CUDA's own headers, which need a whole toolkit.
    (tmp_path / "cuda_runtime.h").write_text("#include <cstddef>\ntypedef struct CUstream_st* cudaStream_t;\n")
    (tmp_path / "cuda_fp16.h").write_text("")
    source = HERE / "nccl_layout.cpp"
    includes = ["-I", str(SHIMS), "-I", str(tmp_path), "-isystem", str(found)]
    subprocess.run(["g++", "-std=c++20", "-fsyntax-only", *includes, str(source)], check=True)
