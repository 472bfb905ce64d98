"""Many flows on few links, so that links fill up, run empty and hand on what they gain: the core against the oracle."""

import random

from hypothesis import given
from hypothesis import strategies as st
from job import Collective, Job, Kind, RankJob, Record, Transfer, run_in_order
from oracle import run_oracle

GB = 10**9


def crowd(seed: int) -> Job:
    """A rank whose transfers each have a stream of their own."""
    chance = random.Random(seed)
    links = chance.randrange(2, 8)
    flows = chance.randrange(3, 16)
    capacities = [chance.choice((GB, GB, 2 * GB, 3 * GB, GB // 2, 7 * GB)) for _ in range(links)]
    rank = RankJob(streams=dict.fromkeys(range(flows), 0))
    start_ns = 0
    for number in range(flows):
        used = chance.sample(range(links), chance.randrange(1, 1 + min(4, links)))
        on_links = tuple((link, chance.choice((1.0, 1.0, 1.0, 0.5, 2.0))) for link in used)
        cap = chance.choice((float("inf"), float("inf"), float("inf"), 4e8))
        transfer = Transfer(chance.choice((100, 1000, 2000, 4096, 10_000, 99_999)), 0, on_links, cap)
        rank.calls[number] = Collective(number, 0, 0, transfer)
        start_ns += chance.choice((0, 0, 10, 100, 777, 3000))
        rank.records.append(Record(Kind.COLLECTIVE, stream=number, delta_ns=start_ns, a=number))
    return Job(capacities=capacities, comms=dict.fromkeys(range(flows), 1), ranks=[rank])


@given(st.integers(0, 2**32))
def test_crowded_links_are_shared_as_the_oracle_shares_them(seed: int) -> None:
    job = crowd(seed)
    assert sorted(run_in_order(job).timeline) == sorted(run_oracle(job).timeline)
