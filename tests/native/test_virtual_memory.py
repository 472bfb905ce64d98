"""Virtual memory management of the driver API, and memory that processes of a node share, without a simulator."""

from pathlib import Path

import pytest
from cuda_programs import MACHINE, compiled, run_as_rank


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"), "virtual_memory_test", "-l:libcuda.so.1")


def test_mappings(program: Path, tmp_path: Path) -> None:
    done = run_as_rank(program, run_dir=tmp_path, sink="null")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("lacking", ["device.multicast = 1", "device.cc_major = 9"])
def test_multicast_needs_a_switch_and_hopper(program: Path, tmp_path: Path, lacking: str) -> None:
    machine = MACHINE.replace(lacking, lacking.replace("= 1", "= 0").replace("= 9", "= 8"))
    done = run_as_rank(program, "refuse", run_dir=tmp_path, sink="null", machine=machine)
    assert (done.returncode, done.stderr) == (0, "")


def test_two_processes(program: Path, tmp_path: Path) -> None:
    done = run_as_rank(program, "share", str(program), run_dir=tmp_path, sink="null")
    assert (done.returncode, done.stderr) == (0, "")
