r"""What a collective asks of the network: volume, latency and the load on every link.

A ring over n members moves S bytes (nccl-tests' size) in steps: each member sends, in all,

    V = S (n-1)/n      all-gather, reduce-scatter      n-1 steps
    V = 2 S (n-1)/n    all-reduce                      2(n-1) steps
    V = S              broadcast, reduce               n-1 steps, pipelined

Rings are laid by NCCL through all members of a node and then out by a NIC to the next; the channels start at different
GPUs, so that they use the NICs of all members in turn. With k members on a node that own c different NICs, the common
rate r therefore loads each member's port by r (k-1)/k (by r on a single node, where the ring closes inside) and each of
the c NICs by r/c, out and in.

The protocol (LL, LL128, Simple) is the one with the least time  latency + V / bandwidth  without contention, as NCCL's
tuner decides; its bandwidth then caps the rate. Latency and bandwidth constants: NCCL v2.30.7, src/graph/tuning.cc.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from math import inf

from phantora_netsim import Activity
from phantora_py.cluster import Device
from phantora_py.nccl import Architecture, Protocol, architecture
from phantora_py.topology import Load, Topology

RING_OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
ROOTED_OPS = ("gather", "scatter")
COLLECTIVE_OPS = (*RING_OPS, *ROOTED_OPS, "all_to_all")


@dataclass(frozen=True)
class Plan:
    """A transfer, ready for the core, and how NCCL would have named it."""

    volume_bytes: int
    latency_ns: int
    links: tuple[tuple[int, float], ...]
    max_rate_bytes_per_s: float
    algorithm: str
    protocol: str

    @cached_property
    def activity(self) -> Activity:
        return Activity(self.volume_bytes, self.latency_ns, list(self.links), self.max_rate_bytes_per_s)


@dataclass(frozen=True)
class _Ring:
    """Load of a ring at rate 1, and its shape."""

    load: Load
    members: int
    nodes: int


class CollectivePlanner:
    """Plans by (members, op, bytes, root); every plan is made once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._constants: Architecture = architecture(topology.cluster.gpu.compute_capability)
        self._has_nvlink = topology.cluster.node.nvlink.kind != "none"
        self._rings: dict[tuple[Device, ...], _Ring] = {}
        self._plans: dict[tuple[object, ...], Plan] = {}

    def collective(self, members: tuple[Device, ...], op: str, bytes_: int, root: int = 0) -> Plan:
        """Plan of one operation over `members` (in member order).

        `bytes_` is the whole buffer as nccl-tests counts size. Raises ValueError for an op not in COLLECTIVE_OPS.
        """
        key = (members, op, bytes_, root if op in ROOTED_OPS else 0)
        if key not in self._plans:
            self._plans[key] = self._plan(members, op, bytes_, root)
        return self._plans[key]

    def transfer(self, source: Device, target: Device, bytes_: int) -> Plan:
        """Plan of one send and its receive."""
        key = (source, target, bytes_)
        if key not in self._plans:
            load = self._topology.path(source, target)
            rate = self._rate(load)
            # Sends within a device are copies; two reads and writes of HBM bound them, a port never does.
            latency_ns = self._latency_ns(Protocol.SIMPLE, 1, int(source.node != target.node))
            self._plans[key] = Plan(bytes_, latency_ns, _sorted(load), min(rate, self._local_rate), "p2p", "Simple")
        return self._plans[key]

    def _plan(self, members: tuple[Device, ...], op: str, bytes_: int, root: int) -> Plan:
        if op not in COLLECTIVE_OPS:
            raise ValueError(f"unknown collective {op!r}\n  hint: one of {', '.join(COLLECTIVE_OPS)}")
        count = len(members)
        if count == 1:
            return Plan(bytes_, 0, (), self._local_rate, "copy", "Simple")
        if op in ROOTED_OPS:
            return self._rooted(members, op, bytes_, root)
        if op == "all_to_all":
            return self._all_to_all(members, bytes_)
        return self._ring(members, op, bytes_)

    def _ring(self, members: tuple[Device, ...], op: str, bytes_: int) -> Plan:
        ring = self._rings.setdefault(members, self._lay_ring(members))
        count, passes = ring.members, 2 if op == "all_reduce" else 1
        share = 1.0 if op in ("broadcast", "reduce") else (count - 1) / count
        volume = round(passes * bytes_ * share)
        steps, inter = passes * (count - 1), passes * (ring.nodes - 1)
        rate = self._rate(ring.load)

        def seconds(protocol: Protocol) -> float:
            latency = self._latency_ns(protocol, steps, inter, ring_all_reduce=passes == 2) / 1e9
            return latency + volume / self._protocol_rate(protocol, rate, ring.nodes)

        best = min(Protocol, key=seconds)
        cap = self._protocol_rate(best, rate, ring.nodes)
        overhead = best.wire_overhead
        return Plan(
            volume,
            self._latency_ns(best, steps, inter, ring_all_reduce=passes == 2),
            tuple((link, weight * overhead) for link, weight in _sorted(ring.load)),
            cap,
            "ring",
            best.label,
        )

    def _rooted(self, members: tuple[Device, ...], op: str, bytes_: int, root: int) -> Plan:
        """Gather and scatter: the root's links carry everything, each other member's 1/(n-1) of it."""
        others = [member for index, member in enumerate(members) if index != root]
        load: Load = defaultdict(float)
        for other in others:
            ends = (other, members[root]) if op == "gather" else (members[root], other)
            _add(load, self._topology.path(*ends), 1 / len(others))
        inter = int(any(other.node != members[root].node for other in others))
        volume = bytes_ * len(others) // len(members)
        return self._path_plan(load, volume, inter, "direct")

    def _all_to_all(self, members: tuple[Device, ...], bytes_: int) -> Plan:
        """`bytes_` is one member's buffer; it keeps 1/n and sends the rest, in equal parts."""
        load: Load = defaultdict(float)
        peers = len(members) - 1
        for source in members:
            for target in members:
                _add(load, self._topology.path(source, target), 1 / peers)
        inter = int(len({member.node for member in members}) > 1)
        return self._path_plan(load, bytes_ * peers // len(members), inter, "pairwise")

    def _path_plan(self, load: Load, volume: int, inter: int, algorithm: str) -> Plan:
        latency_ns = self._latency_ns(Protocol.SIMPLE, 1, inter)
        return Plan(volume, latency_ns, _sorted(load), min(self._rate(load), self._local_rate), algorithm, "Simple")

    def _lay_ring(self, members: tuple[Device, ...]) -> _Ring:
        topology = self._topology
        by_node: dict[int, list[Device]] = defaultdict(list)
        for member in sorted(set(members)):
            by_node[member.node].append(member)
        load: Load = defaultdict(float)
        for local in by_node.values():
            if topology.is_mesh and len(local) > 1:
                _add(load, self._mesh_ring(local), 1.0 if len(by_node) == 1 else (len(local) - 1) / len(local))
            elif len(local) > 1:
                share = 1.0 if len(by_node) == 1 else (len(local) - 1) / len(local)
                for device in local:
                    _add(load, {topology.port_out(device): share, topology.port_in(device): share}, 1.0)
            if len(by_node) > 1:
                nics = {topology.nic_out(device): topology.nic_in(device) for device in local}
                for out, into in nics.items():
                    _add(load, {out: 1 / len(nics), into: 1 / len(nics)}, 1.0)
        return _Ring(dict(load), len(members), len(by_node))

    def _mesh_ring(self, local: list[Device]) -> Load:
        """Rings in a mesh use every pair of members equally: 1/(k-1) of the rate on each pair link."""
        load: Load = defaultdict(float)
        for source in local:
            for target in local:
                if source != target:
                    _add(load, self._topology.hop(source, target), 1 / (len(local) - 1))
        return load

    def _rate(self, load: Load) -> float:
        """Bytes per second that the links alone allow."""
        return min((self._topology.capacity(link) / weight for link, weight in load.items()), default=inf)

    @property
    def _local_rate(self) -> float:
        """A copy within a device reads and writes its memory."""
        return self._topology.cluster.gpu.hbm_bytes_per_s / 2

    def _protocol_rate(self, protocol: Protocol, rate: float, nodes: int) -> float:
        return min(self._constants.bandwidth_bytes_per_s(protocol, rate, nodes), self._local_rate)

    def _latency_ns(self, protocol: Protocol, steps: int, inter: int, *, ring_all_reduce: bool = False) -> int:
        fabric_ns = round(self._topology.cluster.fabric.latency_us * 1000)
        latency = self._constants.ring_latency_ns(protocol, steps, inter, nvlink=self._has_nvlink)
        if ring_all_reduce and inter and protocol is Protocol.SIMPLE:
            latency = round(latency * self._constants.simple_all_reduce_factor)
        return latency + inter * fabric_ns


def _add(load: Load, part: Load, scale: float) -> None:
    for link, weight in part.items():
        load[link] = load.get(link, 0.0) + weight * scale


def _sorted(load: Load) -> tuple[tuple[int, float], ...]:
    return tuple(sorted((link, weight) for link, weight in load.items() if weight > 0))
