"""`phantora replay` without a recording, or with one that does not fit."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_rank import write_recording
from synthetic_job import SyntheticJob
from typer.testing import CliRunner

from phantora_launcher import exit_codes
from phantora_launcher.cli import app
from phantora_launcher.errors import LaunchError
from phantora_py.cluster import load_cluster
from phantora_py.frames import FrameType, frame
from phantora_py.placement import Placement
from phantora_py.recording import Recorder, read_frames


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
    write_recording(Recorder(tmp_path / "recorded", load_cluster("dgx-h100:2"), "dgx-h100:2"), placements, job.ranks)
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
        (["RECORDED", "--json", "no/folder/report.json"], "no file can be made in"),
        (["RECORDED", "--json", "one.json", "--trace", "one.json"], "--json and --trace both name one.json"),
        (["RECORDED", "--trace", "/"], "--trace /: is a folder"),
    ],
)
def test_mistakes_have_hints(recorded: str, arguments: list[str], said: str) -> None:
    line = ["replay", *(recorded if argument == "RECORDED" else argument for argument in arguments)]
    error = CliRunner().invoke(app, line).exception
    assert isinstance(error, LaunchError)
    assert said in str(error)
    assert "hint:" in str(error)


def test_the_table_is_printed_when_a_file_cannot_be_written(recorded: str) -> None:
    for option in ("--json", "--trace"):
        done = CliRunner().invoke(app, ["replay", recorded, option, "/dev/full"])
        assert done.exit_code == exit_codes.EMULATION
        assert f"{option} /dev/full is not complete: [Errno 28]" in done.stdout
        assert "iteration (steady median)" in done.stdout
        assert Path("/dev/full").is_char_device()


def test_the_heading_is_that_of_the_recorded_run(recorded: str) -> None:
    assert "2 ranks on dgx-h100:2\n" in CliRunner().invoke(app, ["replay", recorded]).stdout


def _change_job(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        table = json.loads((folder / "job.json").read_text()) | changes
        (folder / "job.json").write_text(json.dumps({key: table[key] for key in table if table[key] is not None}))

    return change


def _place(*places: tuple[int, int, int]) -> Callable[[Path], None]:
    return _change_job(ranks=[dict(zip(("rank", "node", "local_rank"), place, strict=True)) for place in places])


def _swap(folder: Path) -> None:
    shutil.move(folder / "rank-0.bin", folder / "rank-2.bin")
    shutil.move(folder / "rank-1.bin", folder / "rank-0.bin")
    shutil.move(folder / "rank-2.bin", folder / "rank-1.bin")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "rank-1.bin").unlink(), "rank-1.bin: is missing"),
        (lambda folder: (folder / "rank-1.bin").write_bytes(b""), "rank-1.bin: is empty"),
        (_swap, "rank-0.bin: is what rank 1 sent"),
        (lambda folder: (folder / "job.json").write_text("{"), "job.json: not valid JSON"),
        (lambda folder: (folder / "job.json").write_text("[]"), "schema None"),
        (_change_job(ranks=None), "names no ranks"),
        (_change_job(ranks=[]), "names no ranks"),
        (_change_job(ranks=[1]), "not a map"),
        (_change_job(silent_ranks=1), "job.json: 'silent_ranks' is 1, not a list"),
        (_change_job(cluster={"name": "x", "gpu": {"model": "Voodoo 2"}}), "job.json: gpu: no GPU model is named"),
        (_change_job(cluster=None), "job.json: Input should be"),
        (_place((0, 0, 0), (7, 1, 0)), "'rank' is 7"),
        (_place((0, 0, 0), (1, 1, -1)), "'local_rank' is -1"),
        (_place((0, 0, 0), (1, 0, 0)), "ranks 0 and 1 both as local rank 0 of node 0"),
        (_place((0, 0, 0), (1, 9, 0)), "'node' is 9"),
        (_place((0, 0, 0), (1, 1, 8)), "rank 1 was recorded on GPU 8"),
    ],
)
def test_what_is_no_whole_recording_is_refused(recorded: str, damage: Callable[[Path], None], said: str) -> None:
    damage(Path(recorded))
    error = CliRunner().invoke(app, ["replay", recorded]).exception
    assert isinstance(error, LaunchError), error
    assert said in str(error)
    assert "hint:" in str(error)


def test_a_rank_that_ends_early_is_named(recorded: str, tmp_path: Path) -> None:
    """Cut where a frame ends, as when the rank was killed."""
    file, report = Path(recorded) / "rank-1.bin", tmp_path / "report.json"
    *kept, (last, _payload) = read_frames(file)
    assert last == FrameType.BYE
    file.write_bytes(b"".join(frame(FrameType(kind), payload) for kind, payload in kept))
    done = CliRunner().invoke(app, ["replay", recorded, "--json", str(report)])
    assert done.exit_code == 0, done.output
    assert "the recording of rank 1 ends early" in done.stderr
    assert any("rank 1 ends early" in text for text in json.loads(report.read_text())["guessed"])
    assert "ends early" not in CliRunner().invoke(app, ["replay", str(RECORDING)]).output


RECORDING = Path(__file__).parent.parent / "property" / "recordings" / "ddp-4-ranks"


def test_damaged_frames_are_told_with_their_rank(recorded: str) -> None:
    file = Path(recorded) / "rank-1.bin"
    hello = next(read_frames(file))[1]
    for damage, said in (
        (frame(FrameType.BATCH, b"short"), "the recording of rank 1: BATCH"),
        (b"\xff" * 8, f"{file}: frame of 4294967295 bytes"),
    ):
        file.write_bytes(frame(FrameType.HELLO, hello) + damage)
        assert said in str(CliRunner().invoke(app, ["replay", recorded]).exception)


def test_a_job_that_could_not_go_on_cannot_in_a_replay(tmp_path: Path) -> None:
    job = SyntheticJob(2)
    job.collective((0, 1), "all_reduce", 1 << 20)
    for rank, op in enumerate(("all_reduce", "broadcast")):
        job.ranks[rank].collective(1, op, 4096, at=0)
    placements = [Placement(rank, 0, rank, 0) for rank in (0, 1)]
    write_recording(Recorder(tmp_path, load_cluster("dgx-h100")), placements, job.ranks)
    done = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert done.exit_code == exit_codes.EMULATION
    assert "ranks disagree" in done.stderr


def test_a_rank_that_uses_no_gpu_has_no_file(tmp_path: Path) -> None:
    job = SyntheticJob(2)
    job.kernel(0, 1000)
    job.finish()
    placements = [Placement(rank, 0, rank, 0) for rank in (0, 1)]
    write_recording(Recorder(tmp_path, load_cluster("dgx-h100")), placements, job.ranks[:1])
    done = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "ends early" not in done.stderr


def test_a_new_recording_takes_the_place_of_the_old_one_before_it_has_a_rank(recorded: str) -> None:
    folder = Path(recorded)
    (folder / "notes.txt").write_text("of the user")
    Recorder(folder, load_cluster("dgx-h100")).close()
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]
    done = CliRunner().invoke(app, ["replay", recorded])
    assert isinstance(done.exception, LaunchError)
    assert "job.json" in done.exception.what
