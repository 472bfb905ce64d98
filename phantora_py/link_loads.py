"""What each link carried, and which were the busiest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from phantora_py.catalogue import Catalogue
from phantora_py.history import Calls, Segment
from phantora_py.topology import Topology

_SHOWN = 10

Carried = Mapping[int, float]
"""Link → bytes."""


def carried(segments: Iterable[tuple[int, Segment]], catalogue: Catalogue) -> Carried:
    """By all collectives and sends of the segments, each with its rank."""
    alike: Counter[tuple[int, Calls]] = Counter((rank, segment.calls) for rank, segment in segments)
    runs: Counter[tuple[int, int]] = Counter()
    for (rank, calls), times in alike.items():
        for definition, count in calls.counts.items():
            runs[rank, definition] += times * count
    total: defaultdict[int, float] = defaultdict(float)
    for (rank, definition), count in sorted(runs.items()):
        for plan in catalogue.collectives[rank][definition].carried:
            for link, weight in plan.links:
                total[link] += count * weight * plan.volume_bytes
    return total


def busiest(topology: Topology, run: Carried, steady: Carried, iterations: int) -> list[dict[str, Any]]:
    """Links by the time for which what they carry in a steady iteration (in the run, where there is none) would fill
    them, the longest first; those that are alike as one. The keys are those of docs/report.md."""
    ordered = steady if iterations else run
    longest = sorted(run, key=lambda link: (-ordered.get(link, 0.0) / topology.capacity(link), link))
    entries: dict[tuple[Any, ...], dict[str, Any]] = {}
    for link in longest:
        capacity = topology.capacity(link)
        entry = {
            "bytes": round(run[link]),
            "bytes_per_s": capacity,
            "full_ns": round(run[link] / capacity * 1e9),
            "iteration_bytes": round(steady.get(link, 0.0) / iterations) if iterations else None,
            "iteration_full_ns": round(steady.get(link, 0.0) / iterations / capacity * 1e9) if iterations else None,
        }
        first = entries.setdefault(tuple(entry.values()), {"link": topology.name(link), "alike": 0, **entry})
        first["alike"] += 1
    return list(entries.values())[:_SHOWN]
