"""How long a collective takes alone, from fitted figures.

    time = launch + hops inside + hops between + fill + max(bytes inside / rate inside, bytes between / rate between)

A link's rate is its capacity times the efficiency of its class and protocol. `edge` and `fill` are explained at their
figures in `fitted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phantora_py.nccl.algorithm import Algorithm, Protocol, passes
from phantora_py.nccl.fitted import INSIDE, OUTSIDE, Inside, Outside
from phantora_py.nccl.group import Group
from phantora_py.nccl.layout import Layout
from phantora_py.nccl.pairs import Split, all_channels, split
from phantora_py.nccl.tuner import NVLS_CHANNELS, Choice
from phantora_py.topology import Load

_HALF_BYTES = 16 << 20
_HALF_OUTSIDE_BYTES = 48 << 20
"""Size at which half of the time to fill the pipeline has come up."""
_MOST_THREADS = 512
"""Of a channel, which it has unless NCCL_NTHREADS says otherwise."""


@dataclass(frozen=True)
class Figures:
    """The fitted figures of all classes; a fit passes others."""

    inside: Mapping[str, Inside]
    outside: Mapping[str, Outside]


FITTED = Figures(INSIDE, OUTSIDE)


@dataclass(frozen=True)
class Duration:
    """Of a collective that has the links for itself."""

    latency_s: float
    transfer_s: float


@dataclass(frozen=True)
class Peers:
    """How many others the busiest member sends to, in its domain and out of it."""

    near: int
    far: int
    copies: bool = False
    """It also sends to itself."""
    wires_ns: int = 0
    """Latency of the fabric to those out of its domain, over NCCL's own, at the most."""


class Timing:
    """Times what is chosen for one communicator."""

    def __init__(self, group: Group, network: str, figures: Figures = FITTED) -> None:
        self._group = group
        self.inside = figures.inside[group.generation.name if group.has_nvlink else "pcie"]
        self.outside = figures.outside[network]

    def collective(self, op: str, size_bytes: int, choice: Choice, layout: Layout) -> Duration:
        latency_us = self._latency_us(size_bytes, choice, layout)
        overhead = choice.protocol.wire_overhead
        inside_s = size_bytes * overhead * self._inside(op, choice, layout)
        outside_s = size_bytes * overhead * self._outside(choice, layout)
        return Duration(latency_us / 1e6, max(inside_s, outside_s))

    def _latency_us(self, size_bytes: int, choice: Choice, layout: Layout) -> float:
        inside, outside, place = self.inside, self.outside, choice.protocol.number
        grown = size_bytes / (size_bytes + _HALF_BYTES)
        hop_us = outside.hop_us[place]
        if choice.algorithm is Algorithm.PAT:
            hop_us /= 3.5  # as the tuner has it: its steps overlap
        if choice.algorithm in (Algorithm.TREE, Algorithm.NVLS_TREE):
            hop_us *= outside.tree_hop
        between = layout.outside_steps * (hop_us + layout.wires_ns / 1e3)
        if layout.outside_steps and choice.protocol is Protocol.SIMPLE:
            between += outside.fill_us * size_bytes / (size_bytes + _HALF_OUTSIDE_BYTES)
        if choice.algorithm.is_nvls:
            return inside.nvls_us + inside.nvls_fill_us * grown + between
        fill_us = inside.fill_us * grown if choice.protocol is Protocol.SIMPLE else 0.0
        return inside.launch_us + layout.inside_steps * inside.hop_us[place] + between + fill_us

    def _inside(self, op: str, choice: Choice, layout: Layout) -> float:
        """Seconds for a byte."""
        if not layout.inside:
            return 0.0
        group, inside = self._group, self.inside
        rate = group.rate(layout.inside)
        settings = group.settings
        if choice.algorithm.is_nvls:
            part = min(1.0, (settings.max_channels or NVLS_CHANNELS) / NVLS_CHANNELS)
            return 1 / (rate * inside.nvls_efficiency * part)
        seconds = 1 / (rate * inside.efficiency[choice.protocol.number])
        if choice.algorithm is Algorithm.RING:
            seconds *= 1 + inside.edge / (passes(op) * (group.size - 1))
        if settings.max_channels is not None or settings.threads is not None:
            rate = choice.channels * inside.channel_GBps * 1e9 * (settings.threads or _MOST_THREADS) / _MOST_THREADS
            seconds = max(seconds, self._busiest_port(layout.inside) / rate)
        return seconds

    def _busiest_port(self, load: Load) -> float:
        members = (member for domain in self._group.domains for member in domain.members)
        return max(load.get(self._group.topology.port_out(member), 0.0) for member in members)

    def _outside(self, choice: Choice, layout: Layout) -> float:
        if not layout.outside:
            return 0.0
        return 1 / (self._group.rate(layout.outside) * self.outside.efficiency[choice.protocol.number])

    def sends(self, size_bytes: int, peers: Peers, inside: Load, outside: Load) -> Duration:
        """Of a member's sends of `size_bytes` each to its peers, all at once; the loads are for a byte of each."""
        inner = split(self._group, size_bytes, between=False)
        outer = split(self._group, size_bytes, between=True)
        protocols = [way.protocol for way, count in ((inner, peers.near), (outer, peers.far)) if count]
        latency_us = self._sends_latency_us(size_bytes, peers, is_simple=Protocol.SIMPLE in protocols)
        near_s = self._near_s(size_bytes, inner, peers, inside) if peers.near else 0.0
        far_s = self._far_s(size_bytes, outer, peers, outside) if peers.far else 0.0
        return Duration(latency_us / 1e6, max(near_s, far_s))

    def _sends_latency_us(self, size_bytes: int, peers: Peers, *, is_simple: bool) -> float:
        figures, count = self.inside, peers.near + peers.far
        latency_us = figures.pair_us + figures.peer_us * (count - 1)
        if is_simple:
            latency_us += figures.pair_simple_us + (figures.copy_us if peers.copies else 0.0)
            if count + peers.copies > 1:
                latency_us += figures.pair_fill_us * size_bytes * count / (size_bytes * count + _HALF_BYTES)
        return latency_us + (self.outside.pair_us + peers.wires_ns / 1e3 if peers.far else 0.0)

    def _near_s(self, size_bytes: int, way: Split, peers: Peers, inside: Load) -> float:
        group, figures = self._group, self.inside
        channels = min(way.channels * peers.near, all_channels(group))
        each_rate = figures.channel_GBps if way.protocol is Protocol.SIMPLE else figures.channel_ll_GBps
        copy = figures.pair_copy / peers.near if peers.copies else 0.0
        wire_bytes = size_bytes * way.protocol.wire_overhead * (1 + copy)
        return max(
            size_bytes * peers.near / (channels * each_rate * 1e9),
            wire_bytes / (group.rate(inside) * figures.pair_efficiency),
        )

    def _far_s(self, size_bytes: int, way: Split, peers: Peers, outside: Load) -> float:
        group, figures = self._group, self.outside
        channels = min(way.channels * peers.far, all_channels(group))
        return max(
            size_bytes * peers.far / (channels * figures.channel_GBps * 1e9),
            size_bytes * way.protocol.wire_overhead / (group.rate(outside) * figures.pair_efficiency),
        )
