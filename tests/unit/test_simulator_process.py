"""The simulator as a process: from its command line to its report, trace and recording."""

import gzip
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_rank import FakeRank, Peer, join_as_launcher

from phantora_py.dump import dump
from phantora_py.frames import FrameType
from phantora_py.recording import Recording

MEBIBYTE = 1 << 20


@dataclass
class Simulator:
    run_dir: Path
    options: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run_dir.mkdir(mode=0o700, exist_ok=True)
        command = [sys.executable, "-m", "phantora_py.simulator", "--run-dir", str(self.run_dir)]
        self.process = subprocess.Popen(
            [*command, "--cluster", "dgx-h100", *self.options, "--", "python", "train.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline_s = time.monotonic() + 60
        while not (self.run_dir / "sim.sock").exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline_s
            time.sleep(0.01)

    def finish(self) -> tuple[str, str]:
        """Ends the job as the launcher does, by closing the simulator's standard input."""
        out, error = self.process.communicate("", timeout=60)
        return out, error


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path / "run"


def train(run_dir: Path) -> None:
    """Two ranks, three iterations, a small model of kernels and collectives."""
    launcher = join_as_launcher(run_dir, 2)
    peers = []
    for number in range(2):
        rank, peer = FakeRank(number), Peer(run_dir)
        peer.send(rank.hello())
        comm = rank.comm(b"all", 2, number, number)
        tokens = [["in", "bfloat16", [32000, 2048], [2048, 1]], ["in", "int64", [1, 4096], [4096, 1]]]
        matrices = [["in", "bfloat16", [4096, 4096], [4096, 1]]] * 2
        for iteration in range(3):
            at = iteration * 10_000_000
            rank.kernel("embed", at=at, op="aten::embedding", tensors=tokens)
            rank.kernel("cublasGemmEx", at=at + 1000, op="aten::mm", tensors=matrices)
            rank.collective(comm, "all_reduce", 64 * MEBIBYTE, at=at + 2000, stream=1)
            rank.step(at=at + 3000)
        rank.sync(at=30_000_000, stream=1)
        rank.bye(peak_allocated_bytes=3 << 30, peak_reserved_bytes=4 << 30)
        peer.send_frames(rank.frames)
        peers.append(peer)
    for peer in peers:
        peer.reply()
        peer.close()
    launcher.close()


def test_a_job_gives_report_table_trace_and_recording(run_dir: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("report.json", "trace.json.gz", "recording")]
    simulator = Simulator(run_dir, ["--json", str(files[0]), "--trace", str(files[1]), "--record", str(files[2])])
    train(run_dir)
    out, error = simulator.finish()
    assert simulator.process.returncode == 0, error
    result = json.loads(files[0].read_text())
    assert result["schema"] == "phantora.report/1"
    assert result["command"] == ["python", "train.py"]
    assert result["world_size"] == 2
    assert result["iteration_ns"] == 10_000_000
    assert result["tokens"]["per_iteration"] == 2 * 4096
    assert "iteration (steady median)" in out
    assert "10.000 ms" in out
    assert "4.00 GiB (rank 0)" in out
    check_trace(json.loads(gzip.decompress(files[1].read_bytes())))
    check_recording(files[2])
    assert not (run_dir / "sim.sock").exists()


def test_a_full_disk_costs_no_more_than_what_was_to_be_written_there(run_dir: Path, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    recording.mkdir()
    for rank in range(2):
        (recording / f"rank-{rank}.bin").symlink_to("/dev/full")
    (tmp_path / "folder").mkdir()
    simulator = Simulator(
        run_dir, ["--json", str(tmp_path / "folder"), "--trace", "/dev/full", "--record", str(recording)]
    )
    train(run_dir)
    out, _error = simulator.finish()
    assert simulator.process.returncode == 1
    assert "iteration (steady median)" in out
    assert "--trace /dev/full is not complete: [Errno 28]" in out
    assert f"--record {recording} is not complete: [Errno 28]" in out
    assert f"--json {tmp_path / 'folder'} is not complete: [Errno 21]" in out


def check_trace(trace: dict[str, Any]) -> None:
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    gemms = [event for event in slices if event["name"] == "aten::mm"]
    assert len(gemms) == 6
    assert gemms[0]["args"]["shapes"] == "bfloat16[4096,4096] bfloat16[4096,4096]"
    assert gemms[0]["args"]["engine"]
    reduces = [event for event in slices if event["cat"] == "collective"]
    assert {(event["pid"], event["tid"]) for event in reduces} == {(0, 1), (1, 1)}
    assert reduces[0]["args"]["group"] == [0, 1]
    assert reduces[0]["args"]["bytes"] == 64 * MEBIBYTE
    assert reduces[0]["args"]["algorithm"] == "ring"
    names = {event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    assert names == {"rank 0 (node 0)", "rank 1 (node 0)"}
    assert sum(event["ph"] == "i" for event in events) == 12


def check_recording(folder: Path) -> None:
    recording = Recording.read(folder)
    assert len(recording.streams) == 2
    assert recording.cluster.name == "dgx-h100"
    assert [kind for kind, _payload in recording.streams[0]][:2] == [FrameType.HELLO, FrameType.DEFINE]
    lines = list(dump(folder / "rank-1.bin"))
    assert any("DEFINE" in line and "op='aten::mm'" in line for line in lines)
    assert any(line.strip().startswith("SYNC lane=0 stream=1 +30000000 a=0 b=1") for line in lines)


def test_two_runs_give_the_same_report(tmp_path: Path) -> None:
    results = []
    for name in ("one", "two"):
        simulator = Simulator(tmp_path / name, ["--json", str(tmp_path / f"{name}.json")])
        train(tmp_path / name)
        simulator.finish()
        result = json.loads((tmp_path / f"{name}.json").read_text())
        del result["wall_s"]
        results.append(result)
    assert results[0] == results[1]


def test_sigterm_ends_it_with_a_report(run_dir: Path) -> None:
    simulator = Simulator(run_dir)
    train(run_dir)
    simulator.process.terminate()
    assert simulator.process.wait(60) == 0
    assert json.loads((run_dir / "result.json").read_text())["world_size"] == 2


def test_it_ends_when_its_starter_is_killed(run_dir: Path) -> None:
    """The pipe on its standard input ends with the process that held it."""
    read_end, write_end = os.pipe()
    simulator = subprocess.Popen(
        [sys.executable, "-m", "phantora_py.simulator", "--run-dir", str(run_dir), "--cluster", "dgx-h100"],
        stdin=read_end,
    )
    os.close(read_end)
    run_dir.mkdir(mode=0o700, exist_ok=True)
    os.close(write_end)
    assert simulator.wait(60) == 0


def test_a_wrong_cluster_is_said_before_anything_starts(run_dir: Path) -> None:
    run_dir.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "phantora_py.simulator", "--run-dir", str(run_dir), "--cluster", "dgx-h999"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no cluster is named 'dgx-h999'" in done.stderr
    assert "hint:" in done.stderr


def test_no_torch_is_imported() -> None:
    script = "import sys, phantora_py.simulator; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
