r"""Routes through a fabric: shortest, by a hash for each flow (ECMP) or spread evenly (ideal spraying).

ECMP chooses at every switch among all links that lead nearer to the target, by a hash of (seed, source NIC, target NIC,
number of the flow, switch), as switches do with the five-tuple. Spraying halves, thirds, ... at every switch.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from phantora_py.fabric.cables import FabricError
from phantora_py.fabric.wiring import Indices, Wiring

Weights = NDArray[np.float64]

_AT_ONCE = 1 << 15
"""Flows that are routed together: bounds the memory that it takes."""


class Routes:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._switches = len(wiring.switch_names)
        inner = (wiring.sources < self._switches) & (wiring.targets < self._switches)
        self._inner = np.flatnonzero(inner)
        """Links between switches."""
        self._home = wiring.targets[wiring.access]
        """Of each NIC: its switch."""

    def switches(self, sources: Indices, targets: Indices) -> Indices:
        """On the way from one NIC to another, of each pair."""
        return 1 + self._distance[self._home[sources], self._home[targets]].astype(np.int64)

    def load(self, sources: Indices, targets: Indices, weights: Weights) -> Weights:
        """Of every link when NIC sources[i] sends weights[i] to NIC targets[i], all different from their sources.

        Raises FabricError if no route leads there.
        """
        wiring, links = self._wiring, len(self._wiring.sources)
        load: Weights = np.bincount(wiring.access[sources], weights, links).astype(np.float64)
        load += np.bincount(wiring.access[targets] ^ 1, weights, links)
        if self._switches == 1:
            return load
        self._check_reachable(sources, targets)
        if wiring.fabric.routing == "spray":
            return load + self._sprayed(self._home[sources], self._home[targets], weights)
        flows = wiring.fabric.flows_per_pair
        for start in range(0, len(sources), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            for flow in range(flows):
                load += self._hashed(sources[part], targets[part], weights[part] / flows, flow)
        return load

    def _check_reachable(self, sources: Indices, targets: Indices) -> None:
        lost = np.flatnonzero(self._distance[self._home[sources], self._home[targets]] < 0)
        if len(lost):
            source, target = (self._wiring.nic_names[int(nics[lost[0]])] for nics in (sources, targets))
            raise FabricError(
                f"no route leads from {source} to {target}\n"
                "  hint: rails without spines need NVLink in the nodes, or a job whose ranks stay on their rails"
            )

    @cached_property
    def _distance(self) -> NDArray[np.int32]:
        """Links between two switches; -1: no route."""
        if self._switches == 1:
            return np.zeros((1, 1), dtype=np.int32)
        ends = (self._wiring.sources[self._inner], self._wiring.targets[self._inner])
        graph = csr_array((np.ones(len(self._inner)), ends), shape=(self._switches, self._switches))
        far = shortest_path(graph, unweighted=True)
        return np.where(np.isinf(far), -1, far).astype(np.int32)

    @cached_property
    def _exits(self) -> Indices:
        """Links out of each switch, to others, in order; -1 where it has fewer than others."""
        sources = self._wiring.sources[self._inner]
        order = np.argsort(sources, kind="stable")
        counts = np.bincount(sources, minlength=self._switches)
        table = np.full((self._switches, int(counts.max())), -1, dtype=np.int64)
        place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        table[sources[order], place] = self._inner[order]
        return table

    def _hashed(self, sources: Indices, targets: Indices, weights: Weights, flow: int) -> Weights:
        wiring = self._wiring
        load = np.zeros(len(wiring.sources))
        at, goal = self._home[sources], self._home[targets]
        key = _mixed(wiring.fabric.seed, sources, targets, np.full_like(sources, flow))
        while True:
            going = at != goal
            if not going.any():
                return load
            at, goal, key, weights = at[going], goal[going], key[going], weights[going]
            exits = self._exits[at]
            nearer = (exits >= 0) & (
                self._distance[wiring.targets[exits], goal[:, None]] == self._distance[at, goal][:, None] - 1
            )
            choice = (_mixed(0, key.view(np.int64), at) % nearer.sum(axis=1).astype(np.uint64)).astype(np.int64)
            taken = np.argmax(nearer.cumsum(axis=1) > choice[:, None], axis=1)
            links = exits[np.arange(len(at)), taken]
            load += np.bincount(links, weights, len(load))
            at = wiring.targets[links]

    def _sprayed(self, sources: Indices, targets: Indices, weights: Weights) -> Weights:
        """All that goes to one switch is taken together, from the farthest switches on."""
        wiring = self._wiring
        load = np.zeros(len(wiring.sources))
        from_, to = wiring.sources[self._inner], wiring.targets[self._inner]
        for goal in np.unique(targets):
            mine = targets == goal
            held = np.bincount(sources[mine], weights[mine], self._switches)
            distance = self._distance[:, goal]
            for step in range(int(distance.max()), 0, -1):
                used = (distance[from_] == step) & (distance[to] == step - 1)
                exits = np.bincount(from_[used], minlength=self._switches)
                each = held[from_[used]] / exits[from_[used]]
                load[self._inner[used]] += each
                held += np.bincount(to[used], each, self._switches)
        return load


def _mixed(seed: int, *parts: Indices) -> NDArray[np.uint64]:
    """A hash of each row: splitmix64's finaliser after every part."""
    with np.errstate(over="ignore"):
        state = np.full(len(parts[0]), seed, dtype=np.uint64)
        for part in parts:
            state = (state ^ part.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return state
