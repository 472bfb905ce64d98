"""What there is to know of a fabric at a glance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from phantora_py.fabric.routes import Routes
from phantora_py.fabric.wiring import Indices, Wiring

_UNITS = 10**9
"""Into which all of a fabric's ports together are divided: maximum_flow counts in 32 bits."""


@dataclass(frozen=True)
class Summary:
    switches: int
    cables: dict[tuple[str, float], int]
    """Number by (what they join: "NICs" or "switches", bytes per second a direction)."""
    switches_on_the_way: dict[int, int]
    """Pairs of nodes by the number of switches between their first NICs."""
    bisection_bytes_per_s: float
    """What the first half of the nodes can send to the second, over the best routes; 0 for one node."""
    halves_bytes_per_s: float
    """What the NICs of the smaller half send: a fabric that does not block has a bisection of as much."""

    @classmethod
    def of(cls, wiring: Wiring) -> Summary:
        switches = len(wiring.switch_names)
        inner = (wiring.sources < switches) & (wiring.targets < switches)
        cables = Counter(
            ("switches" if inside else "NICs", cable.bytes_per_s)
            for cable, inside in zip(wiring.cables, inner[::2], strict=True)
        )
        half = wiring.ports.nodes // 2
        return cls(
            switches,
            dict(sorted(cables.items())),
            _ways(wiring),
            _bisection(wiring, half) if half else 0.0,
            half * wiring.ports.node_bytes_per_s,
        )


def _ways(wiring: Wiring) -> dict[int, int]:
    a, b = np.triu_indices(wiring.ports.nodes, 1)
    switches, pairs = np.unique(
        Routes(wiring).switches(a * wiring.ports.nics, b * wiring.ports.nics), return_counts=True
    )
    return dict(zip(switches.tolist(), pairs.tolist(), strict=True))


def _bisection(wiring: Wiring, half: int) -> float:
    """Maximum flow from the NICs of the first `half` nodes to all others."""
    switches, nics = len(wiring.switch_names), len(wiring.nic_names)
    unit = nics * wiring.ports.bytes_per_s / _UNITS
    source, sink = switches + nics, switches + nics + 1
    ends = switches + np.arange(nics)
    senders, receivers = np.split(ends, [half * wiring.ports.nics])
    froms = _joined(wiring.sources, np.full_like(senders, source), receivers)
    tos = _joined(wiring.targets, senders, np.full_like(receivers, sink))
    capacities = [*wiring.capacities, *[wiring.ports.bytes_per_s] * nics]
    units = np.minimum(np.array(capacities) / unit, _UNITS).round().astype(np.int32)
    graph = csr_array((units, (froms, tos)), shape=(switches + nics + 2,) * 2)
    return float(maximum_flow(graph.tocsr(), source, sink).flow_value * unit)


def _joined(*parts: Indices) -> Indices:
    return np.concatenate(parts)
