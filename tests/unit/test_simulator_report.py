"""Iterations, shares, tokens and the JSON of a report, from streams whose times are known."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_rank import COLLECTIVE, MEMORY, STEP_BEGAN, STEP_ENDED, FakeEngine, FakeRank, record

from phantora_py.cluster import load_cluster
from phantora_py.frames import FrameType
from phantora_py.history import Calls, Segment, union_ns
from phantora_py.iterations import find_iterations, warm_up_count
from phantora_py.job import Job, JobError
from phantora_py.op_times import NO_OPS
from phantora_py.outbox import NullOutbox
from phantora_py.placement import Placement
from phantora_py.plain_console import plain_console
from phantora_py.report import Report
from phantora_py.report_table import print_report
from phantora_py.tokens import Lookups

CLUSTER = load_cluster("dgx-h100")
MARK = 10
LATER = 1


def run(world_size: int, program: Callable[[FakeRank], None], pumps: int = 1) -> dict[str, Any]:
    """The report of ranks that all run `program`; the job is pumped after every `pumps` frames."""
    ranks = [FakeRank(rank) for rank in range(world_size)]
    for rank in ranks:
        program(rank)
    job = Job(CLUSTER, [Placement(rank, 0, rank, 0) for rank in range(world_size)], FakeEngine(), NullOutbox())
    report = Report(world_size, job.catalogue)
    job.observers.append(report)
    frames = [(rank.rank, kind, payload) for rank in ranks for kind, payload in rank.frames]
    for position, (number, kind, payload) in enumerate(frames):
        job.frame(number, kind, payload)
        if position % pumps == 0:
            job.pump()
            job._drain()
    job.check_agreement()
    job.finish()
    return report.result(job, "dgx-h100", ["python", "train.py"], {0: 0}, 1.25)


def train(rank: FakeRank, iterations: int = 4, optimizers: int = 1, gemm_ns: int = 1000) -> None:
    for iteration in range(iterations):
        at = iteration * 100
        extra = 5000 if iteration == 0 else 0
        rank.kernel(f"gemm:{gemm_ns + extra}", at=at)
        rank.kernel("elementwise:90", at=at)
        for _ in range(optimizers):
            rank.step(at=at)
    rank.sync(at=iterations * 100)
    rank.bye(peak_allocated_bytes=7, peak_reserved_bytes=9)


def test_an_iteration_lasts_from_one_step_to_the_next() -> None:
    result = run(1, train)
    assert [(item["duration_ns"], item["warm_up"]) for item in result["iterations"]] == [
        (6100, True),
        (1100, False),
        (1100, False),
        (1100, False),
    ]
    assert result["iteration_ns"] == 1100
    assert result["breakdown"] == {
        "over": "steady_iterations",
        "device_ns": 3300,
        "compute": 1.0,
        "exposed_communication": 0,
        "idle": 0,
    }


def test_steps_of_several_optimizers_are_one() -> None:
    result = run(1, lambda rank: train(rank, optimizers=3))
    assert [item["duration_ns"] for item in result["iterations"]] == [6120, 1120, 1120, 1120]


def test_optimizers_that_step_in_turn_are_one_iteration() -> None:
    def gan(rank: FakeRank) -> None:
        for iteration in range(4):
            for optimizer in (1, 2):
                rank.kernel("gemm:1000", at=iteration)
                rank.step(at=iteration, optimizer=optimizer)

    assert [item["duration_ns"] for item in run(1, gan)["iterations"]] == [2020] * 4


def test_a_step_of_each_parameter_within_the_backward_pass() -> None:
    def step_in_backward(rank: FakeRank) -> None:
        for iteration in range(3):
            for parameter in range(1, 6):
                rank.kernel("gemm:100", at=iteration)
                rank.step(at=iteration, optimizer=parameter)

    assert [item["duration_ns"] for item in run(1, step_in_backward)["iterations"]] == [550] * 3


def test_an_optimizer_that_steps_again_begins_an_iteration() -> None:
    def critics(rank: FakeRank) -> None:
        for _ in range(2):
            for optimizer in (1, 1, 2):
                rank.kernel("gemm:100", at=0)
                rank.step(at=0, optimizer=optimizer)

    assert [item["duration_ns"] for item in run(1, critics)["iterations"]] == [110, 220] * 2


def test_work_inside_an_optimizer_is_not_forward_work() -> None:
    def muon(rank: FakeRank) -> None:
        for iteration in range(3):
            rank.kernel("gemm:1000", at=iteration)
            for _ in range(2):
                rank.batch(record(MARK, STEP_BEGAN, at=iteration))
                rank.kernel("gemm:50", at=iteration)
                rank.batch(record(MARK, STEP_ENDED, at=iteration))

    assert [item["duration_ns"] for item in run(1, muon)["iterations"]] == [1100, 1100, 1100]


def test_a_toy_without_forward_kernels_has_iterations_too() -> None:
    def toy(rank: FakeRank) -> None:
        for iteration in range(3):
            rank.kernel("elementwise:70", at=iteration)
            rank.step(at=iteration)

    assert [item["duration_ns"] for item in run(1, toy)["iterations"]] == [80, 80, 80]


def test_a_job_without_optimizer_has_no_iterations_but_a_breakdown() -> None:
    def infer(rank: FakeRank) -> None:
        rank.kernel("gemm:300", at=100)

    result = run(1, infer)
    assert result["iterations"] == []
    assert result["iteration_ns"] is None
    assert result["breakdown"]["over"] == "run"
    assert result["breakdown"]["compute"] == pytest.approx(0.75)


def test_communication_is_exposed_where_no_kernel_runs() -> None:
    def overlapping(rank: FakeRank) -> None:
        comm = rank.comm(b"all", 2, rank.rank, rank.rank)
        for iteration in range(3):
            at = iteration * 1_000_000
            rank.kernel("gemm:20000", at=at)
            rank.collective(comm, "all_reduce", 64 << 20, at=at, stream=1)
            rank.batch(record(2, 2 * iteration + 1, at=at, stream=1))
            rank.batch(record(3, 2 * iteration + 1, at=at, stream=0))
            rank.step(at=at)

    result = run(2, overlapping)
    breakdown, iteration_ns = result["breakdown"], result["iteration_ns"]
    slowed_ns = 20_000 * CLUSTER.overlap_slowdown.compute  # it meets the collective all the while
    assert breakdown["compute"] == pytest.approx((slowed_ns + 10) / iteration_ns, rel=1e-3)
    assert breakdown["exposed_communication"] > 0.1
    assert sum(breakdown[key] for key in ("compute", "exposed_communication", "idle")) == pytest.approx(1)
    assert set(result["cost_engines"]) == {"fake", "network"}
    assert sum(result["cost_engines"].values()) == pytest.approx(1)


def test_device_time_by_op_is_of_the_steady_iterations() -> None:
    def two_launches(rank: FakeRank) -> None:
        comm = rank.comm(b"all", 2, rank.rank, rank.rank)
        for iteration in range(4):
            at = iteration * 1_000_000
            rank.kernel("gemm:1000" if iteration else "gemm:9000", at=at, op="aten::mm")
            rank.kernel("elementwise:90", at=at, op="aten::sum")
            rank.kernel("elementwise:90", at=at, op="aten::sum", flags=LATER)
            rank.kernel("triton_poi:70", at=at)
            rank.collective(comm, "all_reduce", 64, at=at)
            rank.step(at=at)

    ops = {(op["category"], op["op"]): (op["calls"], op["device_ns"]) for op in run(2, two_launches)["ops"]}
    steady = 3 * 2
    assert ops["kernel", "aten::mm"] == (steady, steady * 1000)
    assert ops["kernel", "aten::sum"] == (steady, steady * (90 + FakeEngine.later_launch_ns))
    assert ops["kernel", "triton_poi:70"] == (steady, steady * 70)
    calls, device_ns = ops["collective", "all_reduce"]
    assert calls == steady
    assert device_ns > steady * 1000


def test_the_slowest_rank_gives_the_duration() -> None:
    result = run(2, lambda rank: train(rank, gemm_ns=1000 * (1 + rank.rank)))
    assert result["iteration_ns"] == 2100
    assert {item["slowest_rank"] for item in result["iterations"]} == {1}


def test_memory_comes_from_the_farewell_or_else_from_the_records() -> None:
    def remember(rank: FakeRank) -> None:
        rank.stream()
        for allocated in (5, 30, 20):
            rank.batch(record(MEMORY, allocated, allocated + 1, at=1))
        if rank.rank == 1:
            rank.bye(peak_allocated_bytes=100, peak_reserved_bytes=200)

    result = run(2, remember)
    ranks = result["ranks"]
    assert [(rank["peak_allocated_bytes"], rank["peak_reserved_bytes"]) for rank in ranks] == [(30, 31), (100, 200)]
    assert [rank["exit_code"] for rank in ranks] == [0, None]
    assert result["guessed"] == ["peak memory of rank 0: at least; ended before telling it"]


def test_the_table_says_that_a_job_failed_and_what_unknown_reads_mean() -> None:
    reads = [{"op": "aten::item", "site": "train.py:3", "count": 2, "bytes": 8}]
    result = run(2, lambda rank: rank.bye(unknown_reads=reads))
    result["ranks"][1]["exit_code"] = -9
    out = io.StringIO()
    print_report(result, console=plain_console(file=out, width=120, color_system=None))
    assert "the job did not end well (rank 1: ended by SIGKILL)" in out.getvalue()
    assert "a loss or norm that was printed may be such a value" in out.getvalue()


def test_names_in_the_table_are_shown_as_they_are() -> None:
    result = run(1, lambda rank: rank.bye(guessed=["[/red] :smile:"])) | {"cluster": "[x].toml"}
    result["links"] = [{"link": "[/] > [red]", "alike": 1, "full_ns": 1, "iteration_full_ns": 1}]
    out = io.StringIO()
    print_report(result, console=plain_console(file=out, width=120, color_system=None))
    for name in ("ranks on [x].toml\n", "[/] > [red]: filled", "guessed: [/red] :smile:\n"):
        assert name in out.getvalue()


def test_unknown_reads_and_guesses_are_summed_over_ranks() -> None:
    def guess(rank: FakeRank) -> None:
        rank.kernel("strange:10", at=0, op="mylib::weird")
        rank.kernel("doubted:10", at=0, op="mylib::known")
        reads = [{"op": "aten::item", "site": "train.py:7", "count": 2, "bytes": 8}]
        rank.bye(unknown_reads=reads, guessed=["cuda graphs"])

    result = run(2, guess)
    assert result["unknown_reads"] == 4
    assert result["unknown_read_sites"] == [{"op": "aten::item", "site": "train.py:7", "count": 4, "bytes": 16}]
    assert result["guessed"] == ["cost of mylib::weird", "cost of why", "cuda graphs"]


@pytest.mark.parametrize("pumps", [1, 3, 7, 10_000])
def test_the_report_does_not_depend_on_how_history_is_cut(pumps: int) -> None:
    def program(rank: FakeRank) -> None:
        comm = rank.comm(b"all", 3, rank.rank, rank.rank)
        for iteration in range(6):
            at = iteration * 300_000
            rank.kernel(f"gemm:{1000 * (1 + rank.rank)}", at=at)
            rank.collective(comm, "all_reduce", 8 << 20, at=at, stream=1)
            rank.step(at=at + 10)

    assert run(3, program, pumps) == run(3, program)


def test_a_disagreement_is_found_in_a_replay() -> None:
    def disagree(rank: FakeRank) -> None:
        comm = rank.comm(b"all", 2, rank.rank, rank.rank)
        rank.collective(comm, "all_reduce", 4 << rank.rank, at=0)

    with pytest.raises(JobError, match="disagree"):
        run(2, disagree)


def test_warm_up_reaches_to_the_first_steady_iteration() -> None:
    def count(*durations_ns: int) -> int:
        ends = np.cumsum(durations_ns).tolist()
        starts = [0, *ends[:-1]]
        segments = [
            Segment(start, end, 1, True, True, 1, 0, 0, {}, Calls({}), NO_OPS)
            for start, end in zip(starts, ends, strict=True)
        ]
        return warm_up_count(find_iterations([segments], [Lookups()]))

    assert count(100) == 0
    assert count(100, 100) == 1
    assert count(900, 300, 104, 100, 100, 100) == 2
    assert count(100, 100, 100, 100) == 1
    assert count(900, 500, 300, 100) == 3


def test_union_of_intervals() -> None:
    starts, ends = np.array([5, 0, 2, 20, 30]), np.array([8, 4, 6, 21, 25])
    assert union_ns(starts, ends) == 9
    assert union_ns(starts[:0], ends[:0]) == 0


def test_the_fake_records_are_the_protocols() -> None:
    assert (COLLECTIVE, MARK, MEMORY, FrameType.BATCH) == (4, 10, 13, 3)
