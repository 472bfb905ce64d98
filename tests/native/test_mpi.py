"""Ranks that an MPI launcher starts, with an MPI library that only has their names."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cuda_programs import HERE
from serving import serving

from phantora_launcher.rank_conventions import RANK_CONVENTIONS, RANK_NAMES, RankConvention
from phantora_native import INCLUDE_DIR, LIBRARY_DIR
from phantora_py.host_groups import host_group_cost_ns
from phantora_py.server import Server

PRELOAD = LIBRARY_DIR / "libphantora_preload.so"
RANKS, PER_NODE = 4, 2


def told(convention: RankConvention, rank: int, run_dir: Path, sink: str) -> dict[str, str]:
    """The environment of a rank as its launcher would start it on this one machine."""
    return {
        "LD_PRELOAD": str(PRELOAD),
        "PHANTORA_RUN_DIR": str(run_dir),
        "PHANTORA_RANK": "0",
        "PHANTORA_HOSTNAME": "dgx-h100-0",
        "PHANTORA_RANKS_PER_NODE": str(PER_NODE),
        "PHANTORA_SINK": sink,
        convention.rank: str(rank),
        convention.size: str(RANKS),
        convention.local_rank: str(rank),
        "FAKE_MPI_SIZE": str(RANKS),
    }


def shown_by_python(names: list[str], environment: dict[str, str]) -> list[str]:
    """The host's name, and these variables."""
    code = f"import os, socket; print(socket.gethostname(), *(os.environ[name] for name in {names}))"
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("convention", RANK_CONVENTIONS, ids=lambda convention: convention.rank)
def test_a_launcher_s_ranks_fill_the_nodes(convention: RankConvention, tmp_path: Path) -> None:
    names = ["PHANTORA_RANK", "PHANTORA_NODE", "PHANTORA_LOCAL_RANK", convention.local_rank]
    assert shown_by_python(names, told(convention, 3, tmp_path, "null")) == ["dgx-h100-1", "3", "1", "1", "1"]


def test_ranks_that_torchrun_placed_stay_where_they_are(tmp_path: Path) -> None:
    environment = told(RANK_CONVENTIONS[0], 3, tmp_path, "null")
    del environment["PHANTORA_RANKS_PER_NODE"]
    assert shown_by_python(["PHANTORA_RANK"], environment) == ["dgx-h100-0", "0"]


def test_the_two_tables_of_conventions_are_one() -> None:
    source = (HERE.parents[1] / "native" / "preload" / "launched_rank.cpp").read_text()
    rows = re.findall(r'\{"(\w+)",\s*"(\w+)",\s*\{"(\w+)"', source)
    assert [RankConvention(*row) for row in rows] == list(RANK_CONVENTIONS)
    assert "SLURM_LOCALID" in RANK_NAMES


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Server]:
    """Serves one job, of which nobody has told it, on two nodes."""
    with serving(tmp_path, "dgx-h100:2") as server:
        yield server


def test_clocks_meet_where_hosts_do(simulator: Server, tmp_path: Path) -> None:
    library, program = tmp_path / "libmpi.so.40", tmp_path / "rank"
    options = ["-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run(["gcc", *options, HERE / "fake_mpi.c", "-o", library], check=True)
    links = [f"-L{LIBRARY_DIR}", "-lphantora_rt", library, f"-Wl,-rpath,{LIBRARY_DIR}:{tmp_path}"]
    subprocess.run(["gcc", "-I", INCLUDE_DIR, HERE / "mpi_rank_test.c", "-o", program, *links], check=True)
    ranks = [
        subprocess.Popen([program], env=told(RANK_CONVENTIONS[0], rank, tmp_path, "socket"), stdout=subprocess.PIPE)
        for rank in range(RANKS)
    ]
    shown = [rank.communicate(timeout=60)[0].decode().split() for rank in ranks]
    cost_ns, return_ns = host_group_cost_ns("MPI_Barrier", RANKS), 500  # host.sync_ns
    met_ns = 4 * (cost_ns + return_ns) + (RANKS - 1) * 1_000_000  # MPI_Init, barrier, broadcast, split
    places = [("dgx-h100-0", "0", "0"), ("dgx-h100-0", "0", "1"), ("dgx-h100-1", "1", "0"), ("dgx-h100-1", "1", "1")]
    assert shown == [[*place, str(met_ns), "1"] for place in places]
    assert simulator.job is not None
    assert [place[:3] for place in simulator.job.placements] == [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]
