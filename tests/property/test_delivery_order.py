"""Delivery order does not matter: recorded streams, shuffled (order within a rank kept), give the same times to
the last bit; so do speculations in between."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_rank import FakeEngine, write_recording
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_job import SyntheticJob

from phantora_py.cluster import load_cluster
from phantora_py.engines import FusedEngine
from phantora_py.frames import FrameType
from phantora_py.job import Job
from phantora_py.outbox import NullOutbox
from phantora_py.placement import Placement
from phantora_py.recording import Recorder, Recording, in_turn, interleave
from phantora_py.replay import replay
from phantora_py.report import Report

RECORDINGS = Path(__file__).parent / "recordings"
CLUSTER = load_cluster("dgx-h100:2")
COLUMNS = ("rank", "device", "stream", "kind", "definition", "later", "issue_ns", "start_ns", "end_ns")
SIZES = st.sampled_from([0, 1, 4096, 1 << 20, 100_000_007])
TIMES_NS = st.integers(0, 500_000)


class Times:
    """Observer that keeps everything."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self.marks: list[tuple[Any, ...]] = []

    def observe(self, timeline: Any, marks: Any) -> None:
        self.nodes += zip(*(getattr(timeline, column).tolist() for column in COLUMNS), strict=True)
        self.marks += zip(marks.rank.tolist(), marks.kind.tolist(), marks.time_ns.tolist(), strict=True)


@st.composite
def jobs(draw: st.DrawFn) -> SyntheticJob:
    job = SyntheticJob(draw(st.integers(2, 5)))
    everyone = tuple(range(job.world_size))
    rank = st.sampled_from(everyone)
    some = st.lists(rank, min_size=2, max_size=job.world_size, unique=True).map(lambda ranks: tuple(sorted(ranks)))
    stream = st.integers(0, 2)
    for _ in range(draw(st.integers(3, 25))):
        match draw(st.sampled_from(["work", "kernel", "collective", "transfer", "join", "sync", "meet", "step"])):
            case "work":
                job.host_work(draw(rank), draw(TIMES_NS))
            case "kernel":
                job.kernel(draw(rank), draw(TIMES_NS), draw(stream))
            case "collective":
                op = draw(st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]))
                job.collective(draw(some), op, draw(SIZES), draw(stream))
            case "transfer":
                source, target = draw(st.permutations(everyone))[:2]
                job.transfer(source, target, draw(SIZES), draw(stream))
            case "join":
                job.join(draw(rank), draw(stream), draw(stream))
            case "sync":
                job.sync(draw(rank), draw(stream))
            case "meet":
                job.host_sync(draw(some))
            case "step":
                job.step(draw(rank))
    job.finish()
    return job


def recorded(job: SyntheticJob) -> Recording:
    placements = tuple(Placement(rank, rank // 8, rank % 8, 0) for rank in range(job.world_size))
    streams = tuple(((FrameType.HELLO, b""), *rank.frames) for rank in job.ranks)
    return Recording(CLUSTER, placements, streams)


def shuffled(recording: Recording, seed: int) -> list[int]:
    order = list(in_turn(recording))
    random.Random(seed).shuffle(order)
    return order


def outcome(job: Job, times: Times) -> tuple[Any, ...]:
    return times.nodes, times.marks, [job.clock_ns(rank) for rank in range(job.world_size)]


def simulate(recording: Recording, order: Sequence[int]) -> tuple[Any, ...]:
    times = Times()
    return outcome(replay(recording, FakeEngine(), [times], order), times)


def simulate_with_speculation(recording: Recording, order: Sequence[int], seed: int) -> tuple[Any, ...]:
    """As `replay`, but speculates now and then as if the job were quiescent, and pumps only sometimes."""
    chance, times = random.Random(seed), Times()
    job = Job(recording.cluster, recording.placements, FakeEngine(), NullOutbox())
    job.observers.append(times)
    for rank, kind, payload in interleave(recording, order):
        if kind != FrameType.HELLO:
            job.frame(rank, kind, payload)
        if chance.random() < 0.5:
            job.pump()
        if chance.random() < 0.3:
            job.speculate()
    job.finish()
    return outcome(job, times)


@given(jobs(), st.integers(), st.integers())
@settings(max_examples=150, deadline=None)
def test_times_do_not_depend_on_the_order_of_arrival(job: SyntheticJob, seed: int, other_seed: int) -> None:
    recording = recorded(job)
    in_order = simulate(recording, list(in_turn(recording)))
    assert simulate(recording, shuffled(recording, seed)) == in_order
    assert simulate(recording, []) == in_order  # one rank after the other
    assert simulate_with_speculation(recording, shuffled(recording, other_seed), seed) == in_order


def test_every_node_of_a_job_comes_to_its_end(tmp_path: Path) -> None:
    """And a recording that went through files is the same job."""
    job = training(4, 3)
    write_recording(Recorder(tmp_path, CLUSTER), recorded(job).placements, job.ranks)
    nodes, marks, clocks = simulate(Recording.read(tmp_path), [])
    assert (nodes, marks, clocks) == simulate(recorded(job), [])
    assert len(nodes) == 4 * 3 * 4
    assert len(marks) == 4 * 3 * 2
    assert np.all(np.diff([node[-1] for node in nodes]) >= 0)


def test_reports_are_equal_for_every_order() -> None:
    recording = recorded(training(4, 5))

    def result(seed: int) -> dict[str, Any]:
        job = Job(recording.cluster, recording.placements, FakeEngine(), NullOutbox())
        report = Report(4, job.catalogue)
        job.observers.append(report)
        for rank, kind, payload in interleave(recording, shuffled(recording, seed)):
            if kind != FrameType.HELLO:
                job.frame(rank, kind, payload)
            job.pump()
        job.finish()
        return report.result(job, "dgx-h100:2", [], {}, 0.0)

    assert result(1) == result(2) == result(3)


@pytest.mark.parametrize("seed", range(5))
def test_a_recorded_job_of_pytorch_gives_the_same_times_in_every_order(seed: int) -> None:
    recording = Recording.read(RECORDINGS / "ddp-4-ranks")
    engine = FusedEngine(recording.cluster.gpu)
    in_order, other = Times(), Times()
    first = outcome(replay(recording, engine, [in_order]), in_order)
    assert outcome(replay(recording, engine, [other], shuffled(recording, seed)), other) == first
    assert len(in_order.nodes) > 500
    assert {node[3] for node in in_order.nodes} == {1, 4}  # kernels and collectives


def training(world_size: int, iterations: int) -> SyntheticJob:
    job = SyntheticJob(world_size)
    everyone = tuple(range(world_size))
    for iteration in range(iterations):
        for rank in everyone:
            job.host_work(rank, 10_000 * (1 + (rank + iteration) % 3))
            job.kernel(rank, 400_000 + 1000 * rank)
            job.join(rank, 0, 1)
        job.collective(everyone, "all_reduce", 50 << 20, stream=1)
        for rank in everyone:
            job.kernel(rank, 200_000)
            job.join(rank, 1, 0)
            job.step(rank)
            job.sync(rank)
    job.finish()
    return job
