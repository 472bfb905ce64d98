"""Collects what a job's report needs while it runs, and makes the JSON of docs/report.md from it.

Everything is a function of simulated times and definitions: sums are sums of integers, lists are sorted. Only `wall_s`
and the counts of speculated answers depend on the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phantora_py.catalogue import Catalogue
from phantora_py.farewell import Farewell, unknown_reads
from phantora_py.history import Nodes, RankHistory, Segment
from phantora_py.iterations import Iteration, Share, find_iterations, share_of, steady_median, warm_up_count
from phantora_py.job import Job
from phantora_py.link_loads import busiest, carried
from phantora_py.op_times import listed, summed
from phantora_py.rank_list import named_ranks

if TYPE_CHECKING:
    from phantora_netsim._core import Marks, Timeline

SCHEMA = "phantora.report/1"
NETWORK_ENGINE = "network"
"""Stands in `cost_engines` for collectives, whose durations come from the network."""

_Parts = Sequence[tuple[int, Segment]]
"""Segments, each with its rank."""

_KERNEL, _MARK, _MEMORY = 1, 10, 13
_STEP_ENDED, _STEP_BEGAN = 1, 2


class Report:
    """Observer of one job."""

    def __init__(self, ranks: int, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._histories = [RankHistory() for _ in range(ranks)]
        self._device_ns: Counter[str] = Counter()
        self._peaks = np.zeros((ranks, 2), np.uint64)

    def observe(self, timeline: Timeline, marks: Marks) -> None:
        self._observe_nodes(timeline)
        self._observe_marks(marks)

    def result(
        self, job: Job, cluster_name: str, command: Sequence[str], exit_codes: Mapping[int, int], wall_s: float
    ) -> dict[str, Any]:
        """The report as docs/report.md describes it; call once, when the job is finished."""
        tails = [history.finish() for history in self._histories]
        iterations = find_iterations([history.segments for history in self._histories], self._catalogue.lookups)
        warm_up = warm_up_count(iterations)
        steady = iterations[warm_up:]
        whole = [*self._segments(), *enumerate(tails)]
        chosen = _segments_of(steady) if steady else whole
        reads = unknown_reads(job.farewells.values())
        iteration_ns = steady_median(iteration.duration_ns for iteration in steady) if steady else None
        return {
            "schema": SCHEMA,
            "cluster": cluster_name,
            "command": list(command),
            "world_size": job.world_size,
            "iteration_ns": iteration_ns,
            "iterations": [
                {
                    "index": index,
                    "duration_ns": iteration.duration_ns,
                    "warm_up": index < warm_up,
                    "slowest_rank": iteration.slowest_rank,
                }
                for index, iteration in enumerate(iterations)
            ],
            "breakdown": _breakdown(bool(steady), chosen),
            "ops": listed(summed(part.ops for _, part in chosen), self._catalogue.ops),
            "tokens": _tokens(steady, iteration_ns, job.world_size),
            "ranks": [self._rank(job, rank, exit_codes) for rank in range(job.world_size)],
            "cost_engines": _shares(self._device_ns),
            "links": self._links(job, whole, chosen, len(steady)),
            "unknown_reads": sum(read.count for read in reads),
            "unknown_read_sites": [asdict(read) for read in reads],
            "guessed": self._guessed(job.farewells),
            "speculated_answers": job.speculated_answers,
            "corrected_answers": job.corrected_answers,
            "wall_s": round(wall_s, 3),
        }

    def _observe_nodes(self, timeline: Timeline) -> None:
        if not len(timeline.rank):
            return
        is_kernel = timeline.kind == _KERNEL
        is_lookup = self._where(is_kernel & (timeline.later == 0), timeline, self._catalogue.is_lookup)
        nodes = Nodes(
            timeline.device,
            timeline.start_ns,
            timeline.end_ns,
            is_kernel,
            self._where(is_kernel, timeline, self._catalogue.is_forward),
            np.where(is_lookup, timeline.definition, 0).astype(np.int64),
            np.where(is_kernel, -1, timeline.definition.astype(np.int64)),
            self._catalogue.op_of(timeline.rank, timeline.definition, is_kernel),
            ~is_kernel | (timeline.later == 0),
        )
        for rank in np.unique(timeline.rank).tolist():
            self._histories[rank].add(nodes[timeline.rank == rank])
        self._add_device_time(timeline, is_kernel)

    @staticmethod
    def _where(chosen: NDArray[np.bool_], timeline: Timeline, column: Any) -> NDArray[np.bool_]:
        """Which of the chosen kernels have a property."""
        values = np.zeros(len(chosen), np.bool_)
        values[chosen] = column(timeline.rank[chosen], timeline.definition[chosen])
        return values

    def _add_device_time(self, timeline: Timeline, is_kernel: NDArray[np.bool_]) -> None:
        durations = timeline.end_ns - timeline.start_ns
        engines = self._catalogue.engine_of(timeline.rank[is_kernel], timeline.definition[is_kernel])
        for index in np.unique(engines).tolist():
            name = self._catalogue.engines[index]
            self._device_ns[name] += int(durations[is_kernel][engines == index].sum())
        if not is_kernel.all():
            self._device_ns[NETWORK_ENGINE] += int(durations[~is_kernel].sum())

    def _observe_marks(self, marks: Marks) -> None:
        memory = marks.kind == _MEMORY
        np.maximum.at(self._peaks[:, 0], marks.rank[memory], marks.a[memory])
        np.maximum.at(self._peaks[:, 1], marks.rank[memory], marks.b[memory])
        steps = marks.kind == _MARK
        columns = (marks.rank, marks.time_ns, marks.a, marks.b)
        for rank, time_ns, what, optimizer in zip(*(column[steps].tolist() for column in columns), strict=True):
            if what == _STEP_ENDED:
                self._histories[rank].step_ended(time_ns, optimizer)
            elif what == _STEP_BEGAN:
                self._histories[rank].step_began(time_ns)

    def _segments(self) -> _Parts:
        return [(rank, part) for rank, history in enumerate(self._histories) for part in history.segments]

    def _links(self, job: Job, whole: _Parts, chosen: _Parts, iterations: int) -> list[dict[str, Any]]:
        steady = carried(chosen, self._catalogue) if iterations else {}
        return busiest(job.topology, carried(whole, self._catalogue), steady, iterations)

    def _rank(self, job: Job, rank: int, exit_codes: Mapping[int, int]) -> dict[str, Any]:
        allocated, reserved = map(int, self._peaks[rank])
        farewell = job.farewells.get(rank, Farewell())
        place = job.placements[rank]
        return {
            "rank": rank,
            "node": place.node,
            "local_rank": place.local_rank,
            "peak_allocated_bytes": max(farewell.peak_allocated_bytes or 0, allocated) or None,
            "peak_reserved_bytes": max(farewell.peak_reserved_bytes or 0, reserved) or None,
            "clock_ns": job.clock_ns(rank),
            "exit_code": exit_codes.get(rank),
        }

    def _guessed(self, farewells: Mapping[int, Farewell]) -> list[str]:
        costs = {
            f"cost of {info.doubt or info.name}"
            for kernels in self._catalogue.kernels
            for info in kernels.values()
            if info.guessed
        }
        told = {text for farewell in farewells.values() for text in farewell.guessed}
        cut_short = [rank for rank, peaks in enumerate(self._peaks) if rank not in farewells and peaks.any()]
        memory = {f"peak memory of {named_ranks(cut_short)}: at least; ended before telling it"} if cut_short else set()
        return sorted(costs | told | memory)


def _segments_of(iterations: Sequence[Iteration]) -> _Parts:
    return [(rank, part) for each in iterations for rank, parts in each.segments.items() for part in parts]


def _breakdown(steady: bool, chosen: _Parts) -> dict[str, Any] | None:
    """Over the steady iterations; over the whole run where there are none."""
    share = sum((share_of(part) for _, part in chosen), Share())
    if not share.total_ns:
        return None
    return {
        "over": "steady_iterations" if steady else "run",
        "device_ns": share.total_ns,
        "compute": share.compute_ns / share.total_ns,
        "exposed_communication": share.exposed_ns / share.total_ns,
        "idle": share.idle_ns / share.total_ns,
    }


def _shares(device_ns: Mapping[str, int]) -> dict[str, float]:
    total = sum(device_ns.values())
    return {name: device_ns[name] / total for name in sorted(device_ns)} if total else {}


def _tokens(steady: Sequence[Iteration], iteration_ns: int | None, world_size: int) -> dict[str, Any] | None:
    """From embedding look-ups; None where there were none."""
    per_iteration = steady_median(iteration.tokens for iteration in steady) if steady else 0
    if not per_iteration or not iteration_ns:
        return None
    return {
        "per_iteration": per_iteration,
        "per_s": per_iteration * 1e9 / iteration_ns,
        "per_s_per_rank": per_iteration * 1e9 / iteration_ns / world_size,
    }
