"""The report, table and text dump of a small made-up job, held against files.

`python tests/golden/test_simulator_report_golden.py` writes the files anew after a wanted change.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

from fake_rank import FakeEngine, write_recording  # noqa: E402
from synthetic_job import SyntheticJob  # noqa: E402

from phantora_py.cluster import load_cluster  # noqa: E402
from phantora_py.dump import dump  # noqa: E402
from phantora_py.frames import FrameType  # noqa: E402
from phantora_py.job import Job  # noqa: E402
from phantora_py.outbox import NullOutbox  # noqa: E402
from phantora_py.placement import Placement  # noqa: E402
from phantora_py.plain_console import plain_console  # noqa: E402
from phantora_py.recording import Recorder  # noqa: E402
from phantora_py.report import Report  # noqa: E402
from phantora_py.report_table import print_report  # noqa: E402

CLUSTER = load_cluster("dgx-h100:2")
PLACEMENTS = [Placement(rank, rank // 2, rank % 2, 0) for rank in range(4)]


def made_up_job() -> SyntheticJob:
    """Four ranks as two pipeline stages of two data-parallel ranks; rank 3 is slow; the first iteration is longer."""
    job = SyntheticJob(4)
    for iteration in range(5):
        for stage in (0, 2):
            for rank in (stage, stage + 1):
                job.host_work(rank, 20_000)
                job.kernel(rank, 300_000 + 2_000_000 * (iteration == 0) + 40_000 * (rank == 3))
            if stage == 0:
                job.transfer(0, 2, 8 << 20)
                job.transfer(1, 3, 8 << 20)
            job.collective((stage, stage + 1), "all_reduce", 32 << 20, stream=1)
            for rank in (stage, stage + 1):
                job.join(rank, 1, 0)
                job.step(rank)
                job.sync(rank)
    job.finish()
    return job


def result() -> dict[str, Any]:
    job = Job(CLUSTER, PLACEMENTS, FakeEngine(), NullOutbox())
    report = Report(4, job.catalogue)
    job.observers.append(report)
    for rank in made_up_job().ranks:
        for kind, payload in rank.frames:
            job.frame(rank.rank, kind, payload)
    job.finish()
    return report.result(job, "dgx-h100:2", ["torchrun", "train.py"], dict.fromkeys(range(4), 0), 1.5)


def report_text() -> str:
    return json.dumps(result(), indent=1) + "\n"


def table_text() -> str:
    out = io.StringIO()
    print_report(result(), all_ranks=True, console=plain_console(file=out, width=100, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def dump_text(folder: Path) -> str:
    write_recording(Recorder(folder, CLUSTER), PLACEMENTS, made_up_job().ranks[:1])
    return "\n".join(dump(folder / "rank-0.bin")) + "\n"


def test_the_report_is_the_golden_one() -> None:
    assert report_text() == (HERE / "simulator_report.json").read_text()


def test_the_table_is_the_golden_one() -> None:
    assert table_text() == (HERE / "simulator_table.txt").read_text()


def test_the_dump_is_the_golden_one(tmp_path: Path) -> None:
    assert dump_text(tmp_path) == (HERE / "simulator_dump.txt").read_text()


def test_a_hello_is_dumped_with_its_fields(tmp_path: Path) -> None:
    write_recording(Recorder(tmp_path, CLUSTER), PLACEMENTS, made_up_job().ranks[:1])
    first = next(dump(tmp_path / "rank-0.bin"))
    assert first.startswith(f"0 {FrameType.HELLO.name} ")
    assert "role='rank'" in first


if __name__ == "__main__":
    import tempfile

    (HERE / "simulator_report.json").write_text(report_text())
    (HERE / "simulator_table.txt").write_text(table_text())
    with tempfile.TemporaryDirectory() as folder:
        (HERE / "simulator_dump.txt").write_text(dump_text(Path(folder)))
