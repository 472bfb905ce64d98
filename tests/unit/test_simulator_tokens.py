"""Tokens of a job: which look-ups count, and which ranks look up the same ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from fake_rank import FakeEngine, FakeRank

from phantora_py.cluster import load_cluster
from phantora_py.job import Job
from phantora_py.outbox import NullOutbox
from phantora_py.placement import Placement
from phantora_py.report import Report

CLUSTER = load_cluster("dgx-h100")
WIDTH = 64
BATCH = (2, 512)
TOKENS = 1024
ACTIVATION_BYTES = TOKENS * WIDTH * 4
ITERATIONS = 3


def tokens(world_size: int, program: Callable[[FakeRank], None]) -> dict[str, Any] | None:
    """Of a job in which every rank runs `program` before each optimizer step."""
    ranks = [FakeRank(rank) for rank in range(world_size)]
    for rank in ranks:
        for _ in range(ITERATIONS):
            rank.kernel("gemm:500", at=0)
            program(rank)
            rank.step(at=0)
    job = Job(CLUSTER, [Placement(rank, 0, rank, 0) for rank in range(world_size)], FakeEngine(), NullOutbox())
    report = Report(world_size, job.catalogue)
    job.observers.append(report)
    for rank in ranks:
        for kind, payload in rank.frames:
            job.frame(rank.rank, kind, payload)
    job.pump()
    job.check_agreement()
    job.finish()
    result: dict[str, Any] | None = report.result(job, "dgx-h100", ["python"], {}, 0.0)["tokens"]
    return result


def per_iteration(world_size: int, program: Callable[[FakeRank], None]) -> int:
    result = tokens(world_size, program)
    assert result is not None
    count: int = result["per_iteration"]
    return count


def contiguous(dtype: str, *shape: int) -> list[Any]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return ["in", dtype, list(shape), strides]


def look_up(rank: FakeRank, rows: int = 32000, batch: tuple[int, ...] = BATCH, op: str = "aten::embedding") -> None:
    operands = [contiguous("float32", rows, WIDTH), contiguous("int64", *batch)]
    name = f"embedding:{rows + math.prod(batch)}"
    rank.kernel(name, at=0, op=op, tensors=operands)
    rank.kernel(name, at=0, op=op, tensors=operands, flags=1)  # a later launch of the same op


def backward(rank: FakeRank) -> None:
    rank.kernel("elementwise:30", at=0, op="aten::nll_loss_backward")


class Groups:
    """Communicators of a rank, made when they are first used."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, tuple[int, ...]], int] = {}

    def sum(self, rank: FakeRank, members: tuple[int, ...], size_bytes: int, op: str = "all_reduce") -> None:
        key = rank.rank, members
        if key not in self._made:
            self._made[key] = rank.comm(bytes(members), len(members), members.index(rank.rank), rank.rank)
        rank.collective(self._made[key], op, size_bytes, at=0)


def test_every_rank_has_tokens_of_its_own() -> None:
    result = tokens(2, look_up)
    assert result is not None
    assert result["per_iteration"] == 2 * TOKENS
    assert result["per_s"] == pytest.approx(2 * result["per_s_per_rank"])


def test_the_largest_table_is_the_vocabulary() -> None:
    def language_model(rank: FakeRank) -> None:
        look_up(rank, rows=512, batch=(512,))
        look_up(rank, rows=32000)

    assert per_iteration(1, language_model) == TOKENS


def test_micro_batches_add_up_whatever_their_lengths() -> None:
    def accumulate(rank: FakeRank) -> None:
        for length in (100, 100, 7):
            look_up(rank, batch=(2, length))
            backward(rank)

    assert per_iteration(1, accumulate) == 2 * (100 + 100 + 7)


@pytest.mark.parametrize("op", ["", "aten::convolution", "aten::gather.out", "aten::index_select", "aten::mm"])
def test_what_is_no_embedding_has_no_tokens(op: str) -> None:
    assert tokens(1, lambda rank: look_up(rank, op=op)) is None


@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter"])
def test_a_vocabulary_parallel_table_counts_once(op: str) -> None:
    groups = Groups()

    def tensor_parallel(rank: FakeRank) -> None:
        look_up(rank, rows=16000)
        groups.sum(rank, (0, 1), ACTIVATION_BYTES, op)
        backward(rank)

    assert per_iteration(2, tensor_parallel) == TOKENS


def test_tensor_pipeline_and_data_parallel_ranks() -> None:
    """Ranks 0 to 3 are the first stage, of two replicas of two ranks."""
    groups = Groups()

    def train(rank: FakeRank) -> None:
        pair = rank.rank // 2 * 2
        for _ in range(4):
            if rank.rank < 4:
                look_up(rank, rows=16000)
            groups.sum(rank, (pair, pair + 1), ACTIVATION_BYTES)
            backward(rank)
        replica = rank.rank ^ 2
        groups.sum(rank, (min(rank.rank, replica), max(rank.rank, replica)), 1 << 20)

    assert per_iteration(8, train) == 2 * 4 * TOKENS


def test_a_replicated_table_under_tensor_parallel_layers_counts_once() -> None:
    groups = Groups()

    def train(rank: FakeRank) -> None:
        look_up(rank)
        rank.kernel("gemm:400", at=0)
        groups.sum(rank, (0, 1), 4)  # some statistic
        groups.sum(rank, (0, 1), ACTIVATION_BYTES)
        backward(rank)

    assert per_iteration(2, train) == TOKENS


@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter"])
def test_a_gradient_as_large_as_the_activations_means_nothing(op: str) -> None:
    groups = Groups()

    def data_parallel(rank: FakeRank) -> None:
        look_up(rank)
        backward(rank)
        groups.sum(rank, (0, 1), ACTIVATION_BYTES, op)

    assert per_iteration(2, data_parallel) == 2 * TOKENS


@pytest.mark.parametrize(
    ("op", "size_bytes"), [("all_gather", ACTIVATION_BYTES), ("all_reduce", ACTIVATION_BYTES // 2)]
)
def test_other_communication_in_the_forward_pass_means_nothing(op: str, size_bytes: int) -> None:
    groups = Groups()

    def train(rank: FakeRank) -> None:
        look_up(rank)
        groups.sum(rank, (0, 1), size_bytes, op)
        backward(rank)

    assert per_iteration(2, train) == 2 * TOKENS
