"""The core's times are those of a plain in-order simulation."""

from generate import generate, programs
from hypothesis import given
from job import run_in_order
from oracle import run_oracle


@given(programs())
def test_times_equal_the_oracles(data: bytes) -> None:
    job = generate(data)
    expected, outcome = run_oracle(job), run_in_order(job)
    assert sorted(outcome.timeline) == sorted(expected.timeline)
    assert sorted(outcome.marks) == sorted(expected.marks)
    assert outcome.replies == expected.replies
    assert outcome.clocks == expected.clocks


@given(programs())
def test_timeline_is_in_order_of_ends(data: bytes) -> None:
    outcome = run_in_order(generate(data))
    keys = [(row[-1], row[0]) for row in outcome.timeline]
    assert keys == sorted(keys)
