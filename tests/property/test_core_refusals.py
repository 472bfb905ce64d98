"""Batches that are malformed anywhere are refused as a whole; random bytes do no harm."""

import random
from contextlib import suppress

import pytest
from generate import generate, programs
from hypothesis import given
from hypothesis import strategies as st
from job import Job, Kind, Record, Run, run_in_order

BAD_RECORDS = (
    Record(Kind.CLOCK, lane=99),
    Record(Kind.CLOCK, delta_ns=2**62),
    Record(Kind.KERNEL, a=10**6, delta_ns=2**61),
    Record(Kind.LANE_BEGIN, a=0, delta_ns=2**61),
    Record(Kind.EVENT_TIME, a=10**9, delta_ns=2**61),
)


def encode(records: list[Record]) -> bytes:
    return b"".join(record.encode() for record in records)


@given(programs(), st.integers(0, 2**32))
def test_a_refused_batch_leaves_no_trace(program: bytes, seed: int) -> None:
    """Every batch comes first with a bad record at its end, or cut short: what it would have made is not made."""
    job, chance = generate(program), random.Random(seed)
    run = Run(job)
    for rank, part in enumerate(job.ranks):
        middle = chance.randint(0, len(part.records))
        for batch in (part.records[:middle], part.records[middle:]):
            spoilt = encode(batch) + chance.choice([record.encode() for record in BAD_RECORDS])
            for malformed in (spoilt, spoilt[: -chance.randint(1, 31)]):
                with pytest.raises(ValueError, match=f"rank {rank}: "):
                    run.simulation.feed(rank, malformed)
            run.feed(rank, batch)
            run.advance()
    assert run.finish() == run_in_order(job)


@given(programs(), st.integers(0, 2**32))
def test_flipped_bits_are_refused_or_simulated(program: bytes, seed: int) -> None:
    job, chance = generate(program), random.Random(seed)
    run = Run(job)
    for rank in sorted(range(len(job.ranks)), key=lambda _: chance.random()):
        _feed_damaged(run, job, rank, chance)
        run.simulation.advance()
        run.simulation.speculate()
        run.simulation.waiting()
        run.simulation.disagreements()
    for rank in range(len(job.ranks)):
        run.simulation.close_rank(rank)
    run.simulation.advance()
    run.take()


def _feed_damaged(run: Run, job: Job, rank: int, chance: random.Random) -> None:
    batch = bytearray(encode(job.ranks[rank].records))
    for _ in range(chance.randint(0, 4) if batch else 0):
        batch[chance.randrange(len(batch))] ^= 1 << chance.randrange(8)
    with suppress(ValueError):
        run.simulation.feed(rank, bytes(batch))
