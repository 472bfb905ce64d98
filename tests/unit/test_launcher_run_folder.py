"""The run's private folder."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest

from phantora_launcher.errors import LaunchError
from phantora_launcher.node_names import node_name
from phantora_launcher.run_folder import RunFolder


@pytest.fixture(autouse=True)
def own_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_private_and_goes(own_tmpdir: Path) -> None:
    folder = RunFolder.create()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert folder.path.parent == own_tmpdir
    folder.write_machine({"device.name": "NVIDIA H100", "device.count": 8})
    assert (folder.path / "machine.conf").read_text() == "device.name = NVIDIA H100\ndevice.count = 8\n"
    folder.remove()
    assert list(own_tmpdir.iterdir()) == []


def test_runtime_dir_comes_first(own_tmpdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_tmpdir / "run").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own_tmpdir / "run"))
    folder = RunFolder.create()
    assert folder.path.parent == own_tmpdir / "run"


def test_names_too_long_for_a_socket_are_passed_over(own_tmpdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = own_tmpdir / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    folder = RunFolder.create()
    assert folder.path.parent != long
    assert list(long.iterdir()) == []
    folder.remove()


def test_no_place_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phantora_launcher.run_folder._parents", lambda: ["/proc/no-such"])
    with pytest.raises(LaunchError, match="no place for the run's private folder"):
        RunFolder.create()


@pytest.mark.parametrize(
    ("cluster", "name"),
    [("dgx-h100", "dgx-h100-1"), ("My Cluster!", "my-cluster-1"), ("…", "node-1"), ("a" * 90, "a" * 50 + "-1")],
)
def test_node_names_are_host_names(cluster: str, name: str) -> None:
    assert node_name(cluster, 1) == name
