"""Damaged batches, fed to a core in the middle of a job: each is accepted, or refused with a message and no trace.

Two cores go through the same job. The first gets every damaged batch; the second only those that the first accepted.
If a refused batch left anything behind, be it in what was checked, in a lane's program or in a name, the two say
different things sooner or later: in their answers, in the messages of further refusals, and in all of the timeline at
the end of the job.

`python tests/property/test_core_fuzz.py INPUTS [SEED]` does more of it.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from typing import Any

from generate import HEADER_BYTES, INSTRUCTION_BYTES, generate
from job import Job
from mutation import Mutation
from numpy.typing import NDArray

from phantora_netsim import Simulation

CI_INPUTS = 80_000
INPUTS_PER_JOB = 150


@dataclass
class Count:
    inputs: int = 0
    accepted: int = 0
    refused: int = 0


class Twins:
    """The core that gets everything, and the one that is spared what was refused."""

    def __init__(self, job: Job) -> None:
        self.tried, self.spared = job.simulation(), job.simulation()
        self._ranks = len(job.ranks)

    def feed(self, rank: int, batch: bytes) -> bool:
        """Whether the batch was accepted."""
        reason = refusal(self.tried, rank, batch)
        if reason is not None:
            assert reason.startswith(f"rank {rank}: ")
            return False
        self.spared.feed(rank, batch)
        return True

    def go_on(self, *, guess: bool) -> None:
        assert answers(self.tried, guess=guess) == answers(self.spared, guess=guess)

    def feed_the_rest(self, rank: int, batch: bytes) -> None:
        """What is right in itself may be wrong after damaged batches; but for the same reason in both."""
        assert refusal(self.tried, rank, batch) == refusal(self.spared, rank, batch)

    def finish(self) -> None:
        assert facts(self.tried) == facts(self.spared)
        for rank in range(self._ranks):
            self.tried.close_rank(rank)
            self.spared.close_rank(rank)
        self.go_on(guess=False)
        assert facts(self.tried) == facts(self.spared)
        assert history(self.tried) == history(self.spared)


def refusal(simulation: Simulation, rank: int, batch: bytes) -> str | None:
    try:
        simulation.feed(rank, batch)
    except ValueError as error:
        return str(error)
    return None


def answers(simulation: Simulation, *, guess: bool) -> list[tuple[object, ...]]:
    replies = simulation.advance() + (simulation.speculate() if guess else [])
    said: list[tuple[object, ...]] = [(each.rank, each.request, each.value, each.speculated) for each in replies]
    return said + [(each.rank, each.request, each.value) for each in simulation.take_corrections()]


def history(simulation: Simulation) -> list[bytes]:
    nodes, marks = simulation.take_timeline(), simulation.take_marks()
    columns: list[NDArray[Any]] = [
        nodes.rank,
        nodes.stream,
        nodes.definition,
        nodes.issue_ns,
        nodes.start_ns,
        nodes.end_ns,
    ]
    columns += [marks.rank, marks.kind, marks.time_ns, marks.a, marks.b]
    return [column.tobytes() for column in columns]


def facts(simulation: Simulation) -> list[object]:
    """What a core says besides what happened."""
    waiting = [
        (
            wait.rank,
            wait.lane,
            wait.request,
            wait.since_ns,
            wait.obstacle.kind,
            wait.obstacle.name,
            wait.obstacle.absent,
        )
        for wait in simulation.waiting()
    ]
    disagreements = [(found.comm, found.sequence, found.sides) for found in simulation.disagreements()]
    return [simulation.committed_ns, simulation.corrected_replies, waiting, disagreements]


def fuzz_one_job(seed: int, inputs: int, count: Count) -> None:
    chance, mutation = random.Random(seed), Mutation(seed)
    job = generate(chance.randbytes(HEADER_BYTES + 40 * INSTRUCTION_BYTES))
    twins = Twins(job)
    rests = []
    for rank, part in enumerate(job.ranks):
        records = b"".join(record.encode() for record in part.records)
        middle = chance.randrange(len(part.records) + 1) * 32
        assert twins.feed(rank, records[:middle])
        rests.append(records[middle:])
    for _ in range(inputs):
        rank = chance.randrange(len(rests))
        start = chance.choice((0, 0, chance.randrange(len(rests[rank]) // 32 + 1))) * 32
        accepted = twins.feed(rank, mutation.records(rests[rank][start : start + 32 * chance.randrange(12)]))
        count.inputs += 1
        count.accepted += accepted
        count.refused += not accepted
        if accepted:
            twins.go_on(guess=chance.random() < 0.1)
    for rank, rest in enumerate(rests):
        twins.feed_the_rest(rank, rest)
    twins.finish()


def fuzz(inputs: int, first_seed: int = 0) -> Count:
    count = Count()
    seed = first_seed
    while count.inputs < inputs:
        fuzz_one_job(seed, INPUTS_PER_JOB, count)
        seed += 1
    return count


def test_damaged_batches_are_accepted_or_leave_no_trace() -> None:
    count = fuzz(CI_INPUTS)
    assert count.accepted > count.inputs // 20
    assert count.refused > count.inputs // 20


if __name__ == "__main__":
    started_s = time.monotonic()
    print(fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0), f"{time.monotonic() - started_s:.0f} s")
