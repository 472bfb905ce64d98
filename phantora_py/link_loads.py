"""What each link carried, and which were the busiest."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from phantora_py.catalogue import Catalogue
from phantora_py.topology import Topology

if TYPE_CHECKING:
    from phantora_netsim._core import Timeline

_KERNEL = 1
_SHOWN = 10


class LinkLoads:
    """Observer: counts how often each collective and group of sends was run."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._runs: Counter[tuple[int, int]] = Counter()

    def observe(self, timeline: Timeline) -> None:
        calls = timeline.kind != _KERNEL
        if not calls.any():
            return
        names = timeline.rank[calls].astype(np.int64) << 32 | timeline.definition[calls].astype(np.int64)
        for name, count in zip(*(column.tolist() for column in np.unique(names, return_counts=True)), strict=True):
            self._runs[name >> 32, name & 0xFFFF_FFFF] += count

    def busiest(self, topology: Topology) -> list[dict[str, Any]]:
        """Links by the time for which what they carried would fill them, the longest first: docs/report.md."""
        carried: dict[int, float] = defaultdict(float)
        for (rank, definition), count in sorted(self._runs.items()):
            for plan in self._catalogue.collectives[rank][definition].carried:
                for link, weight in plan.links:
                    carried[link] += count * weight * plan.volume_bytes
        full_s = {link: bytes_ / topology.capacity(link) for link, bytes_ in carried.items()}
        longest = sorted(full_s, key=lambda link: (-full_s[link], link))[:_SHOWN]
        return [
            {
                "link": topology.name(link),
                "bytes": round(carried[link]),
                "bytes_per_s": topology.capacity(link),
                "full_ns": round(full_s[link] * 1e9),
            }
            for link in longest
        ]
