"""What a collective asks of the network: volume, latency, the load on every link, and the rate that NCCL itself
reaches.

NCCL's choice of algorithm and protocol, what they load and how long they take alone is the matter of
`phantora_py.nccl`. Here it becomes a transfer for the core: a volume that flows at a common rate, of which each link
carries its weight (the worst one: 1), after a latency. Alone it flows at the plan's largest rate; with others on the
same links it gets its share of their capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from phantora_netsim import Activity
from phantora_py.cluster import Device
from phantora_py.nccl.algorithm import Algorithm, passes
from phantora_py.nccl.group import Group
from phantora_py.nccl.layout import Layout, lay
from phantora_py.nccl.pairs import split
from phantora_py.nccl.release import release
from phantora_py.nccl.settings import Settings
from phantora_py.nccl.timing import FITTED, Duration, Figures, Peers, Timing
from phantora_py.nccl.tuner import Tuner
from phantora_py.topology import Load, Topology

RING_OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
ROOTED_OPS = ("gather", "scatter")
COLLECTIVE_OPS = (*RING_OPS, *ROOTED_OPS, "all_to_all")
_ALIKE = 4
"""ncclPrepareTasks in NCCL's src/enqueue.cc."""


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

    @property
    def alone_ns(self) -> int:
        """How long it takes with the links for itself."""
        return self.latency_ns + round(self.volume_bytes / self.max_rate_bytes_per_s * 1e9)


class Asked(NamedTuple):
    """One operation of a launch."""

    op: str
    bytes: int
    """The whole buffer, as nccl-tests counts size."""
    kind: tuple[str, str] = ("", "")
    """Data type and reduction."""
    root: int = 0

    def is_like(self, other: Asked) -> bool:
        """Whether they differ in size only."""
        return self._replace(bytes=0) == other._replace(bytes=0)


class _Communicator:
    """What is known of one set of members, made as it is asked for."""

    def __init__(self, members: tuple[Device, ...], topology: Topology, settings: Settings, figures: Figures) -> None:
        cluster = topology.cluster
        self.group = Group(members, topology, settings)
        self.timing = Timing(self.group, cluster.nccl.network, figures)
        self.tuner = Tuner(self.group, release(cluster.nccl.version))
        self._layouts: dict[tuple[Algorithm, str], Layout] = {}
        self.transfers: dict[tuple[Device, Device, int], Plan] = {}
        """By source, target and bytes."""

    def layout(self, algorithm: Algorithm, op: str) -> Layout:
        key = (algorithm, op)
        if key not in self._layouts:
            self._layouts[key] = lay(self.group, algorithm, op)
        return self._layouts[key]


class CollectivePlanner:
    """Plans by (members, op, bytes, root); every plan is made once."""

    def __init__(self, topology: Topology, figures: Figures = FITTED) -> None:
        self._topology = topology
        self._settings = Settings.read(topology.cluster.nccl.environment)
        self._figures = figures
        self._communicators: dict[tuple[Device, ...], _Communicator] = {}
        self._plans: dict[tuple[object, ...], Plan] = {}

    def collective(self, members: tuple[Device, ...], op: str, bytes_: int, root: int = 0) -> Plan:
        """Plan of one operation over `members` (in member order).

        `bytes_` is the whole buffer as nccl-tests counts size. Raises ValueError for an op not in COLLECTIVE_OPS.
        """
        key = (members, op, bytes_, root if op in ROOTED_OPS else 0)
        if key not in self._plans:
            self._plans[key] = self._plan(members, op, bytes_, root)
        return self._plans[key]

    def several(self, members: tuple[Device, ...], operations: Sequence[Asked]) -> Plan:
        """Plan of operations that NCCL launches as one kernel, which share its channels."""
        plans = [self.collective(members, one.op, one.bytes, one.root) for one in _aggregated(operations)]
        return plans[0] if len(plans) == 1 else _together(plans)

    def transfer(self, source: Device, target: Device, bytes_: int, members: tuple[Device, ...] = ()) -> Plan:
        """Plan of one send and its receive, in the communicator of `members`; without: of these two."""
        (plan,) = self.transfers(members or (source, target), source, [(target, bytes_)])
        return plan

    def transfers(
        self, members: tuple[Device, ...], source: Device, sends: Sequence[tuple[Device, int]]
    ) -> tuple[Plan, ...]:
        """Plans of one member's sends to (target, bytes), each with its receive."""
        comm = self._communicator(members)
        for target, bytes_ in sends:
            key = (source, target, bytes_)
            if key not in comm.transfers:
                comm.transfers[key] = self._transfer(comm, source, target, bytes_)
        return tuple(comm.transfers[source, target, bytes_] for target, bytes_ in sends)

    def store(self, source: Device, target: Device, bytes_: int) -> Plan:
        """Plan of what a kernel stores in memory of another GPU of its domain; of no bytes it is a signal, and as long
        to all of them."""
        comm = self._communicator((source, target) if bytes_ else (source,))
        timing, load = comm.timing, self._topology.path(source, target) if bytes_ else {}
        load = {link: weight / timing.inside.pair_efficiency for link, weight in load.items()}
        duration = Duration(timing.inside.hop_us[0] / 1e6, bytes_ / comm.group.rate(load))
        return self._timed(load, bytes_, duration, "store", "store")

    def _transfer(self, comm: _Communicator, source: Device, target: Device, bytes_: int) -> Plan:
        if source == target:  # A copy: two reads and writes of HBM bound it, a port never does.
            return Plan(bytes_, round(comm.timing.inside.pair_us * 1e3), (), self._local_rate, "copy", "Simple")
        far = self._topology.domain(source) != self._topology.domain(target)
        peers = Peers(int(not far), int(far), wires_ns=self._topology.extra_latency_ns(source, target))
        return self._direct(comm, self._topology.path(source, target), bytes_, peers, "p2p", bytes_)

    def _plan(self, members: tuple[Device, ...], op: str, bytes_: int, root: int) -> Plan:
        if op not in COLLECTIVE_OPS:
            raise ValueError(f"unknown collective {op!r}\n  hint: one of {', '.join(COLLECTIVE_OPS)}")
        if len(members) == 1:
            return Plan(bytes_, 0, (), self._local_rate, "copy", "Simple")
        if op in ROOTED_OPS:
            return self._rooted(members, op, bytes_, root)
        if op == "all_to_all":
            return self._all_to_all(members, bytes_)
        return self._chosen(members, op, bytes_)

    def _chosen(self, members: tuple[Device, ...], op: str, bytes_: int) -> Plan:
        """One that NCCL's tuner decides on."""
        comm = self._communicator(members)
        choice = comm.tuner.choose(op, bytes_)
        layout = comm.layout(choice.algorithm, op)
        duration = comm.timing.collective(op, bytes_, choice, layout)
        share = 1.0 if op in ("broadcast", "reduce") else (len(members) - 1) / len(members)
        each = passes(op) * share
        scale = choice.protocol.wire_overhead / each
        load = {link: weight * scale for link, weight in layout.load.items()}
        return self._timed(load, round(bytes_ * each), duration, choice.algorithm.label, choice.protocol.label)

    def _rooted(self, members: tuple[Device, ...], op: str, bytes_: int, root: int) -> Plan:
        """Gather and scatter: the root's links carry everything, each other member's 1/(n-1) of it."""
        comm, topology, hub = self._communicator(members), self._topology, members[root]
        others = [member for index, member in enumerate(members) if index != root]
        load: Load = {}
        for other in others:
            ends = (other, hub) if op == "gather" else (hub, other)
            _add(load, topology.path(*ends), 1.0)
        near = sum(topology.domain(other) == topology.domain(hub) for other in others)
        each = bytes_ // len(members)
        wires_ns = max(topology.extra_latency_ns(hub, other) for other in others)
        peers = Peers(near, len(others) - near, wires_ns=wires_ns)
        return self._direct(comm, load, each, peers, "direct", each * len(others))

    def _all_to_all(self, members: tuple[Device, ...], bytes_: int) -> Plan:
        """`bytes_` is one member's buffer; it keeps 1/n and sends the rest, in equal parts."""
        comm = self._communicator(members)
        near, each = comm.group.largest_domain - 1, bytes_ // len(members)
        wires_ns = comm.layout(Algorithm.RING, "all_gather").wires_ns
        peers = Peers(near, len(members) - 1 - near, copies=True, wires_ns=wires_ns)
        load = self._topology.all_pairs(members, 1.0)
        return self._direct(comm, load, each, peers, "pairwise", each * (len(members) - 1))

    def _direct(self, comm: _Communicator, load: Load, each: int, peers: Peers, name: str, volume: int) -> Plan:
        """Sends of `each` bytes at once; the load is for a byte of each send, of which there are volume / each."""
        inside, outside = self._parted(comm.group, load)
        duration = comm.timing.sends(each, peers, inside, outside)
        protocol = split(comm.group, each, between=bool(peers.far)).protocol
        count = peers.near + peers.far
        scaled = {link: weight * protocol.wire_overhead / count for link, weight in load.items()}
        return self._timed(scaled, volume, duration, name, protocol.label)

    def _parted(self, group: Group, load: Load) -> tuple[Load, Load]:
        """The links of nodes, and NICs and the fabric."""
        is_cable, scale = self._topology.is_cable, group.inside_scale
        inside = {link: weight * scale for link, weight in load.items() if not is_cable(link)}
        return inside, {link: weight for link, weight in load.items() if is_cable(link)}

    def _timed(self, load: Load, volume: int, duration: Duration, algorithm: str, protocol: str) -> Plan:
        """The load is for a byte of the volume. What flows in the plan is what its worst link carries, so that plans
        that meet on a link which is the worst of both have equal parts of it, whatever they carry elsewhere."""
        seconds = max(duration.transfer_s, volume / self._local_rate)
        capacity = self._topology.capacity
        used = sorted((link, weight * volume) for link, weight in load.items() if weight * volume > 0)
        _, worst_bytes = max(used, key=lambda use: use[1] / capacity(use[0]), default=(0, float(volume)))
        flowing = max(1, round(worst_bytes)) if volume else 0
        rate = flowing / seconds if volume else self._local_rate
        links = tuple((link, bytes_ / flowing) for link, bytes_ in used)
        return Plan(flowing, round(duration.latency_s * 1e9), links, rate, algorithm, protocol)

    def _communicator(self, members: tuple[Device, ...]) -> _Communicator:
        if members not in self._communicators:
            self._communicators[members] = _Communicator(members, self._topology, self._settings, self._figures)
        return self._communicators[members]

    @property
    def _local_rate(self) -> float:
        """A copy within a device reads and writes its memory."""
        return self._topology.cluster.gpu.hbm_bytes_per_s / 2


def _aggregated(operations: Sequence[Asked]) -> list[Asked]:
    """NCCL decides once for like operations whose sizes are less than four times that of the smallest."""
    found: list[Asked] = []
    limit_bytes = 0
    for one in sorted(operations, key=lambda one: (one.op, one.kind, one.root, one.bytes)):
        if found and one.is_like(found[-1]) and one.bytes < limit_bytes:
            found[-1] = one._replace(bytes=one.bytes + found[-1].bytes)
        else:
            found.append(one)
            limit_bytes = _ALIKE * one.bytes
    return found


def _together(plans: Sequence[Plan]) -> Plan:
    """The channels of one kernel are shared out by traffic, so that all end together: the start is paid once."""
    volume = sum(plan.volume_bytes for plan in plans)
    load: Load = {}
    for plan in plans:
        for link, weight in plan.links:
            load[link] = load.get(link, 0.0) + weight * plan.volume_bytes / max(volume, 1)
    seconds = sum(plan.volume_bytes / plan.max_rate_bytes_per_s for plan in plans)
    longest = max(plans, key=lambda plan: plan.alone_ns)
    return replace(
        longest,
        volume_bytes=volume,
        latency_ns=max(plan.latency_ns for plan in plans),
        links=tuple(sorted(load.items())),
        max_rate_bytes_per_s=volume / seconds if volume else longest.max_rate_bytes_per_s,
    )


def _add(load: Load, part: Load, scale: float) -> None:
    for link, weight in part.items():
        load[link] = load.get(link, 0.0) + weight * scale
