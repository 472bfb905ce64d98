"""Finds the iterations of a job in its ranks' optimizer steps, and tells warm-up from steady state.

*Steps of several optimizers are one.* Two optimizer steps of a rank that follow one another with no forward or backward
work in between (no GEMM, attention, convolution or embedding kernel between the end of one and the beginning of the
next) belong to one iteration. In a job that never does such work between its steps (a toy), any kernel counts. With
such work in between, a step still belongs to the iteration if its optimizer has not yet stepped in it: a GAN's two, or
one for each parameter that steps within the backward pass.

*Duration.* From the end of the last optimizer step of an iteration to that of the next one, per rank; an iteration
lasts as long as it does on the slowest rank. The first begins at the job's start.

*Warm-up.* The first iteration always is (it holds the job's start, lazy initialisation and the optimizer's first
allocations), and so are those after it, up to the first that lies within 5 % of the median of the job's second half.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from phantora_py.history import Segment
from phantora_py.tokens import Lookups

STEADY_SHARE = 20
"""Within one part in so many of the later median counts as steady."""


@dataclass(frozen=True)
class Share:
    """Device time of one or more stretches, in ns: what is neither computing nor exposed communication is idle."""

    total_ns: int = 0
    compute_ns: int = 0
    exposed_ns: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(
            self.total_ns + other.total_ns, self.compute_ns + other.compute_ns, self.exposed_ns + other.exposed_ns
        )

    @property
    def idle_ns(self) -> int:
        return self.total_ns - self.compute_ns - self.exposed_ns


@dataclass(frozen=True)
class Iteration:
    duration_ns: int
    """On the slowest rank."""
    slowest_rank: int
    tokens: int
    """Over all ranks; 0: no embedding was seen."""
    segments: Mapping[int, Sequence[Segment]]
    """Those of each rank that takes part."""


def find_iterations(segments: Sequence[Sequence[Segment]], lookups: Sequence[Lookups]) -> list[Iteration]:
    """Iterations of a job from each rank's segments and look-ups. Ranks without optimizer steps do not take part."""
    has_forward = any(segment.forward_before for rank in segments for segment in rank)
    steps = {rank: _steps(parts, has_forward) for rank, parts in enumerate(segments) if parts}
    count = min((len(groups) for groups in steps.values()), default=0)
    return [_iteration({rank: groups[index] for rank, groups in steps.items()}, lookups) for index in range(count)]


def warm_up_count(iterations: Sequence[Iteration]) -> int:
    """How many of the first iterations are warm-up; a single one is all that there is, and none."""
    if len(iterations) < 2:
        return 0
    later = steady_median([iteration.duration_ns for iteration in iterations[len(iterations) // 2 :]])
    for index, iteration in enumerate(iterations):
        if index and abs(iteration.duration_ns - later) * STEADY_SHARE <= later:
            return index
    return 1


def steady_median(durations_ns: Iterable[int]) -> int:
    """The lower median: always one of the durations."""
    return median_low(list(durations_ns))


def _steps(segments: Sequence[Segment], has_forward: bool) -> list[list[Segment]]:
    """Segments that belong to one iteration, together."""
    groups: list[list[Segment]] = []
    for segment in segments:
        works = segment.forward_before if has_forward else segment.work_before
        if not groups or (works and segment.optimizer in {other.optimizer for other in groups[-1]}):
            groups.append([])
        groups[-1].append(segment)
    return groups


def _iteration(steps: dict[int, list[Segment]], lookups: Sequence[Lookups]) -> Iteration:
    durations = {rank: parts[-1].end_ns - parts[0].start_ns for rank, parts in steps.items()}
    slowest = max(durations, key=lambda rank: (durations[rank], -rank))
    tokens = sum(lookups[rank].tokens(part.lookups) for rank, parts in steps.items() for part in parts)
    return Iteration(durations[slowest], slowest, tokens, steps)


def share_of(segment: Segment) -> Share:
    return Share((segment.end_ns - segment.start_ns) * segment.devices, segment.compute_ns, segment.exposed_ns)
