"""`phantora topology`: figures by hand, pictures, and mistakes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from phantora_launcher.cli import app
from phantora_launcher.errors import LaunchError
from phantora_py.cluster import load_cluster
from phantora_py.fabric.summary import Summary

TREE = """
name = "tree"
nodes = 16
gpu.model = "H100-SXM-80GB"
[fabric]
kind = "fat-tree"
nodes_per_leaf = 2
leaves_per_pod = 2
oversubscription = 2
[[fabric.link]]
between = ["pod0.leaf0", "pod0.spine1"]
failed = true
"""


@pytest.fixture
def tree(tmp_path: Path) -> str:
    (tmp_path / "tree.toml").write_text(TREE)
    return str(tmp_path / "tree.toml")


def test_summary_of_a_fat_tree(tree: str) -> None:
    """16 nodes, 2 to a leaf, 2 leaves to a pod; 4 spines a pod, 4 cores for each."""
    summary = Summary.of(load_cluster(tree).wiring)
    assert summary.switches == 8 + 4 * 4 + 16
    assert summary.switches_on_the_way == {1: 8, 3: 16, 5: 96}
    # A leaf has 2 * 8 NICs of 48 GB/s below it and half of that above, on 4 cables; one of 32 has failed. Its pod's
    # spines hand on to 16 core cables what they would get from two leaves.
    assert summary.cables == {("NICs", 48e9): 128, ("switches", 96e9): 31, ("switches", 48e9): 64}
    # Half of the nodes are 4 leaves, which send 384 GB/s each, and one of them a quarter less.
    assert summary.bisection_bytes_per_s == pytest.approx(3.75 * 384e9, rel=1e-6)
    assert summary.halves_bytes_per_s == 8 * 8 * 48e9


@pytest.mark.parametrize("cluster", ["dgx-h100", "gb200-nvl72:36", "aws-p5:2", "a100-slingshot-4:256"])
def test_presets_are_shown(cluster: str) -> None:
    shown = CliRunner().invoke(app, ["topology", cluster])
    assert shown.exit_code == 0, shown.output
    assert cluster.partition(":")[0] in shown.output
    assert ("bisection" in shown.output) == (cluster != "dgx-h100")


def test_a_picture_is_drawn_of_levels_and_of_routers(tree: str, tmp_path: Path) -> None:
    torus = tmp_path / "torus.toml"
    torus.write_text(
        'name = "t"\nnodes = 9\ngpu.model = "H100-SXM-80GB"\nfabric = {kind = "torus", dimensions = [3, 3]}'
    )
    for cluster in (tree, str(torus)):
        picture = tmp_path / "picture.svg"
        shown = CliRunner().invoke(app, ["topology", cluster, "--plot", str(picture)])
        assert shown.exit_code == 0, shown.output
        assert "<svg" in picture.read_text()
        picture.unlink()


ODD = "[/] [red] :smile: $x_{y$"
"""Markup to rich, an emoji, and what matplotlib takes for mathematics."""


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    odd = tmp_path / "[x].toml"
    cables = "".join(f"['node{node}', '{ODD}', 400], " for node in range(2))
    fabric = f"fabric = {{kind = 'graph', cables = [{cables}]}}"
    odd.write_text(f"name = '{ODD}'\nnodes = 2\ngpu.model = 'H100-SXM-80GB'\n{fabric}")
    picture = tmp_path / "picture.svg"
    shown = CliRunner().invoke(app, ["topology", str(odd), "--plot", str(picture)])
    assert shown.exit_code == 0, shown.exception
    assert ODD in shown.output
    assert f"<!-- {ODD} -->" in picture.read_text()


def test_mistakes_have_hints(tmp_path: Path) -> None:
    for arguments, said in (
        (["nowhere"], "no cluster is named 'nowhere'"),
        (["dgx-h100", "--plot", str(tmp_path / "x.gif")], "cannot draw"),
        (["dgx-h100", "--plot", str(tmp_path / "no" / "x.svg")], "cannot write"),
    ):
        error = CliRunner().invoke(app, ["topology", *arguments]).exception
        assert isinstance(error, LaunchError)
        assert said in str(error)
        assert "hint:" in str(error)
