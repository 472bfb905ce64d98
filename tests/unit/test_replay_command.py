"""`phantora replay` without a recording, or with one that does not fit."""

import json
from pathlib import Path

import pytest
from fake_rank import write_recording
from synthetic_job import SyntheticJob
from typer.testing import CliRunner

from phantora_launcher.cli import app
from phantora_launcher.errors import LaunchError
from phantora_py.cluster import load_cluster
from phantora_py.placement import Placement
from phantora_py.recording import Recorder


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """Two ranks on two nodes exchange 64 MiB."""
    job = SyntheticJob(2)
    job.collective((0, 1), "all_reduce", 64 << 20, stream=1)
    for rank in (0, 1):
        job.join(rank, 1, 0)
        job.step(rank)
        job.sync(rank)
    job.finish()
    placements = [Placement(rank, rank, 0, 0) for rank in (0, 1)]
    write_recording(Recorder(tmp_path / "recorded", load_cluster("dgx-h100:2")), placements, job.ranks)
    return str(tmp_path / "recorded")


def test_another_cluster_takes_another_time(recorded: str, tmp_path: Path) -> None:
    slow = tmp_path / "slow.toml"
    slow.write_text('name = "slow"\nnodes = 2\ngpu.model = "H100-SXM-80GB"\nnode.nics.bandwidth_Gbps = 40\n')
    full_ns = []
    for cluster in ([], ["--cluster", str(slow)]):
        report = tmp_path / "report.json"
        done = CliRunner().invoke(app, ["replay", recorded, *cluster, "--json", str(report)])
        assert done.exit_code == 0, done.output
        (link, *_) = json.loads(report.read_text())["links"]
        full_ns.append(link["full_ns"])
    assert full_ns[1] == pytest.approx(10 * full_ns[0], abs=10)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "No such file"),
        (["RECORDED", "--cluster", "dgx-h100"], "rank 1 was recorded on GPU 0 of node 1"),
        (["RECORDED", "--cluster", "none"], "no cluster is named 'none'"),
        (["RECORDED", "--json", "no/folder/report.json"], "No such file"),
    ],
)
def test_mistakes_have_hints(recorded: str, arguments: list[str], said: str) -> None:
    line = ["replay", *(recorded if argument == "RECORDED" else argument for argument in arguments)]
    error = CliRunner().invoke(app, line).exception
    assert isinstance(error, LaunchError)
    assert said in str(error)
    assert "hint:" in str(error)
