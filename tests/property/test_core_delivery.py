"""The order in which the ranks' records arrive, and how they are cut into batches, leaves no trace in the core."""

import itertools
import random
from collections.abc import Callable

import pytest
from generate import Dice, generate, programs
from hypothesis import given
from hypothesis import strategies as st
from job import Job, Outcome, Run, run_in_order
from training_jobs import fsdp_job, pipeline_job


def deliver(job: Job, dice: Dice) -> Run:
    """Feeds the ranks' records in an order and in batches that the dice choose, with all else done in between."""
    run = Run(job)
    left = {rank: list(part.records) for rank, part in enumerate(job.ranks)}
    while left:
        rank = dice.of(sorted(left))
        size = dice.of((1, 1, 2, 5, 50))
        run.feed(rank, left[rank][:size])
        del left[rank][:size]
        if not left[rank]:
            del left[rank]
            if dice.below(2):
                run.simulation.close_rank(rank)
        action = dice.below(8)
        if action < 3:
            run.advance()
        elif action < 5:
            while run.speculate() and dice.below(4):
                pass
        if action % 4 == 2:
            run.take()
    run.finish()
    return run


def committed(outcome: Outcome, expected: Outcome) -> Outcome:
    """Without the answers that were only ever speculated: those of requests that are never answered in a stuck job."""
    outcome.replies = {key: value for key, value in outcome.replies.items() if key in expected.replies}
    return outcome


@given(programs(), st.binary(min_size=50, max_size=600))
def test_chosen_deliveries_give_the_same(program: bytes, schedule: bytes) -> None:
    job = generate(program, rough=True)
    expected = run_in_order(job)
    assert committed(deliver(job, Dice(schedule)).outcome, expected) == expected


@given(programs(), st.integers(0, 2**32))
def test_random_deliveries_give_the_same(program: bytes, seed: int) -> None:
    job = generate(program, rough=True)
    expected = run_in_order(job)
    dice = Dice(random.Random(seed).randbytes(4000))
    assert committed(deliver(job, dice).outcome, expected) == expected


def test_ranks_that_end_with_their_first_batch() -> None:
    """The last one lets the horizon leave the instant at which all start, and its own flow is of that instant still."""
    ring_of_messages = b"\x1d" + bytes(31) + b"\xf3N\x01\x00b\x00\x00\x00"
    job = generate(ring_of_messages, rough=True)
    expected = run_in_order(job)
    for order in itertools.islice(itertools.permutations(range(len(job.ranks))), 0, None, 13):
        run = Run(job)
        for rank in order:
            run.feed(rank, job.ranks[rank].records)
            run.simulation.close_rank(rank)
            run.advance()
        assert run.finish() == expected


@pytest.mark.parametrize("make", [fsdp_job, pipeline_job])
def test_training_delivered_in_any_order(make: Callable[[], Job]) -> None:
    job = make()
    expected = run_in_order(job)
    assert len(expected.timeline) > 100 * len(job.ranks)
    runs = [deliver(job, Dice(random.Random(seed).randbytes(1_000_000))) for seed in range(20)]
    assert all(run.outcome == expected for run in runs)
    assert any(run.speculated for run in runs)
