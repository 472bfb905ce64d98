"""NCCL's choice: the algorithm and protocol of which its own model of time believes that they are fastest.

The model is that of src/graph/tuning.cc and src/enqueue.cc (the formulas as of v2.30.7, the constants of the release
asked for). It may be wrong about the time, and then so is the choice, as in reality; `timing` says how long the
choice takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from phantora_py.nccl.algorithm import ALGORITHMS_OF, Algorithm, Protocol, passes
from phantora_py.nccl.group import Group
from phantora_py.nccl.layout import lay
from phantora_py.nccl.release import Release

_TREE_CORRECTION = (
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    (*(0.9,) * 7, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
)
"""Of a tree's bandwidth, by protocol and power of two of the size from 64 bytes on."""

_NETWORK_OVERHEAD_US = 1.0
"""Of the CPU for each network step (Intel); three times that for Simple. It also bounds a step inside a node."""
_UNORDERED = frozenset({"efa-1"})
"""Networks whose writes may arrive out of order, so that flags say nothing: NCCL's plugin takes Simple only."""
_THRESHOLDS = (8, 8, 64)
"""Bytes for each thread from which on a further channel is used."""
_THREADS = (512, 640, 512)
NVLS_CHANNELS = 16
"""At the most; they fill the ports together."""


@dataclass(frozen=True)
class Choice:
    algorithm: Algorithm
    protocol: Protocol
    channels: int


@dataclass(frozen=True)
class Estimate:
    """What NCCL believes of one algorithm and protocol."""

    latency_us: float
    bandwidth: float
    """GB/s of the collective's size."""

    def seconds(self, size_bytes: int) -> float:
        return self.latency_us / 1e6 + size_bytes / (self.bandwidth * 1e9)


class Tuner:
    """Decides for one communicator."""

    def __init__(self, group: Group, release: Release) -> None:
        self._group = group
        self._release = release
        ring = lay(group, Algorithm.RING, "broadcast")  # one byte of it is one byte of the ring's rate
        self._inside_rate = group.rate(ring.inside) / 1e9
        self._outside_rate = group.rate(ring.outside) / 1e9
        self._estimates: dict[str, dict[tuple[Algorithm, Protocol], Estimate]] = {}

    def choose(self, op: str, size_bytes: int) -> Choice:
        """Raises ValueError if what the environment allows leaves nothing, as NCCL does."""
        if op not in self._estimates:
            self._estimates[op] = self._estimate_all(op)
        estimates = self._estimates[op]
        if not estimates:
            raise ValueError(
                f"NCCL_ALGO and NCCL_PROTO leave no algorithm for {op} among {self._group.size} ranks\n"
                "  hint: NCCL ends such a job with invalid usage; allow Ring and Simple"
            )
        algorithm, protocol = min(estimates, key=lambda pair: self._seconds(op, pair, size_bytes))
        return Choice(algorithm, protocol, self._channels(algorithm, protocol, size_bytes))

    def _seconds(self, op: str, pair: tuple[Algorithm, Protocol], size_bytes: int) -> float:
        """NCCL's time, with its corrections for trees and for rings between nodes."""
        (algorithm, protocol), group = pair, self._group
        estimate = self._estimates[op][pair]
        latency_us, bandwidth = estimate.latency_us, estimate.bandwidth
        power = (size_bytes >> 6).bit_length() - 1
        if algorithm is Algorithm.TREE and 0 <= power < 23:
            bandwidth *= _TREE_CORRECTION[protocol.number][power]
        if algorithm is Algorithm.NVLS_TREE and group.generation.number >= 3 and 0 <= power < 24:
            bandwidth *= _TREE_CORRECTION[protocol.number][power]
        is_ring = algorithm is Algorithm.RING and protocol is Protocol.SIMPLE and op == "all_reduce"
        if is_ring and not group.is_single and size_bytes / (group.channels * group.size) >= 64:
            latency_us *= 1.4 if group.generation.number else 1.9
        return Estimate(latency_us, bandwidth).seconds(size_bytes)

    def _channels(self, algorithm: Algorithm, protocol: Protocol, size_bytes: int) -> int:
        channels = self._group.channels
        if algorithm.is_nvls:
            return min(channels, NVLS_CHANNELS)
        threads = _THREADS[protocol.number]
        if protocol is not Protocol.LL128 and self._group.settings.threads is not None:
            threads = self._group.settings.threads
        each = threads * _THRESHOLDS[protocol.number]
        if algorithm is Algorithm.RING and protocol is Protocol.LL:
            each *= self._group.size
        return max(1, min(channels, size_bytes // each))

    def _estimate_all(self, op: str) -> dict[tuple[Algorithm, Protocol], Estimate]:
        found = {}
        for algorithm in ALGORITHMS_OF[op]:
            for protocol in Protocol:
                if self._is_possible(op, algorithm, protocol):
                    estimate = Estimate(
                        self._latency_us(op, algorithm, protocol), self._bandwidth(op, algorithm, protocol)
                    )
                    if estimate.bandwidth > 0:
                        found[algorithm, protocol] = estimate
        return found

    def _is_possible(self, op: str, algorithm: Algorithm, protocol: Protocol) -> bool:
        group, settings = self._group, self._group.settings
        if not settings.may_use(op, algorithm, protocol):
            return False
        only_simple = algorithm.is_nvls or algorithm.is_collnet or algorithm is Algorithm.PAT
        if only_simple and protocol is not Protocol.SIMPLE:
            return False
        keeps_order = group.is_single or group.topology.cluster.nccl.network not in _UNORDERED
        if protocol is not Protocol.SIMPLE and not keeps_order and not settings.asks_for(op, protocol):
            return False
        if protocol is Protocol.LL128 and not group.has_nvlink and not settings.asks_for(op, protocol):
            return group.largest_domain == 1
        if algorithm is Algorithm.PAT:
            one_each = group.largest_domain == 1
            return self._release.has_pat and one_each and settings.pat is not False
        if algorithm is Algorithm.NVLS_TREE:
            return group.has_nvls and not group.is_single and group.largest_domain >= 2
        if algorithm is Algorithm.NVLS:
            return group.has_nvls and group.largest_domain >= 2 and (group.is_single or settings.collnet)
        if algorithm.is_collnet:
            return settings.collnet and not group.is_single
        return True

    def _bandwidth(self, op: str, algorithm: Algorithm, protocol: Protocol) -> float:
        """Bytes of the collective's size per nanosecond, as NCCL believes."""
        group, known = self._group, self._release
        row, column = group.generation.number, min(len(group.domains), 3) - 1
        search = group.search_channels
        inter = self._outside_rate
        if algorithm.is_nvls:
            return self._nvls_bandwidth(op, algorithm)
        bus = min(self._inside_rate, inter)
        ll_row = row if group.is_single else 0
        if algorithm is Algorithm.RING and protocol is Protocol.LL:
            bus = min(known.ll_GBps[ll_row][column], bus * known.ring_ll_share)
        if algorithm is Algorithm.RING and protocol is Protocol.LL128:
            share = known.lone_ll128_share if group.largest_domain == 1 else 0.92
            bus = min(bus * share, search * known.ring_ll128_GBps[row][column])
        if algorithm is Algorithm.TREE:
            if len(group.domains) == 2:  # Two trees over two nodes cross the network half as often as a ring.
                bus = min(self._inside_rate, 2 * inter)
            bus = min(bus * 0.92, search * known.tree_GBps[row][column])
            if protocol is Protocol.LL:
                bus = min(bus / 3.8, known.ll_GBps[ll_row][column])
            if protocol is Protocol.LL128:
                share = 7 / 9 if group.is_single else 120 / 128
                bus = min(bus * share, search * known.tree_ll128_GBps[row][column])
        if algorithm is Algorithm.PAT:
            return bus * 0.75
        if algorithm.is_collnet:
            bus = min(self._inside_rate, 2 * inter)
            bus *= 0.85 if algorithm is Algorithm.COLLNET_DIRECT and row >= 2 else 1.0
        if algorithm is Algorithm.RING:
            steps = passes(op) * (group.size - 1) if op not in ("broadcast", "reduce") else group.size
            return bus * group.size / steps
        return bus / 2 if op == "all_reduce" else bus

    def _nvls_bandwidth(self, op: str, algorithm: Algorithm) -> float:
        group, known = self._group, self._release
        row, column = group.generation.number, min(len(group.domains), 3) - 1
        heads = group.largest_domain
        port = group.topology.port_bytes_per_s / 1e9
        inside = group.generation.channel_speed(port, heads) * known.nvls_efficiency[row] * (heads - 1) / heads
        inside *= 2 if op == "all_reduce" else (heads - 1) / heads
        outside = self._outside_rate / heads * (2 if len(group.domains) == 2 else 1)
        channel = min(inside, outside)
        if algorithm is Algorithm.NVLS_TREE:
            channel = min(channel, known.nvls_tree_GBps[row][column])
        if op != "all_reduce":
            return channel * heads
        return channel * heads * group.size / (2 * (group.size - 1))

    def _latency_us(self, op: str, algorithm: Algorithm, protocol: Protocol) -> float:
        group, known, place = self._group, self._release, protocol.number
        nodes, per_node = len(group.domains), group.per_domain
        inside = (known.nvlink_us if group.has_nvlink else known.pci_us)[algorithm][place]
        outside = known.network_us[Algorithm.TREE if per_node == 1 else algorithm][place]
        base = known.base_us[algorithm][place]
        log = (nodes).bit_length() - 1
        if algorithm is Algorithm.RING:
            if op in ("broadcast", "reduce"):
                return base + (inside if group.is_single else known.network_us[algorithm][place])
            overhead = 0.0 if nodes == 1 else _NETWORK_OVERHEAD_US * (3 if protocol is Protocol.SIMPLE else 1)
            steps, between = passes(op) * (group.size - 1), passes(op) * (nodes - 1)
            return base + (steps - between) * max(inside, overhead) + between * (outside + overhead)
        if algorithm is Algorithm.TREE:
            return base + 2 * ((group.size // nodes - 1) * inside + log * outside)
        if algorithm is Algorithm.COLLNET_DIRECT:
            others = group.size // nodes - 1
            return base + 2 * (min(1, others) * inside + others * 0.4) + outside
        if algorithm is Algorithm.COLLNET_CHAIN:
            return base + 2 * (group.size // nodes - 1) * inside + outside
        if algorithm is Algorithm.NVLS:
            return base + inside + (0 if group.is_single else outside)
        if algorithm is Algorithm.NVLS_TREE:
            return base + inside + 2 * log * outside
        return base + log * outside / 3.5 + group.size * 2.8
