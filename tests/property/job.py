"""A job as plain data: what the ranks define and issue. Read by the oracle and fed to the core."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

from phantora_netsim import Activity, Network, Simulation
from phantora_netsim._core import Reply


class Kind(IntEnum):
    KERNEL = 1
    EVENT_RECORD = 2
    STREAM_WAIT = 3
    COLLECTIVE = 4
    SYNC = 5
    QUERY = 6
    EVENT_TIME = 7
    HOST_SYNC = 8
    CLOCK = 9
    MARK = 10
    LANE_BEGIN = 11
    LANE_END = 12
    MEMORY = 13
    EVENT_FORGET = 14
    ABORT = 15


STREAM, RECORDING, DEVICE = 0, 1, 2  # targets of SYNC and QUERY
LATER, WITHIN_LAUNCH = 1, 2  # flags of KERNEL, the second of COLLECTIVE too


@dataclass(frozen=True)
class Record:
    kind: Kind
    lane: int = 0
    stream: int = 0
    delta_ns: int = 0
    a: int = 0
    b: int = 0
    flags: int = 0

    def encode(self) -> bytes:
        return struct.pack("<BBHIQQQ", self.kind, self.flags, self.lane, self.stream, self.delta_ns, self.a, self.b)


@dataclass(frozen=True)
class Transfer:
    """What an activity is made of."""

    volume_bytes: int
    latency_ns: int
    links: tuple[tuple[int, float], ...]
    max_rate: float = float("inf")  # bytes/s

    def activity(self) -> Activity:
        return Activity(self.volume_bytes, self.latency_ns, list(self.links), self.max_rate)


@dataclass(frozen=True)
class Collective:
    comm: int
    member: int
    key: int
    transfer: Transfer


@dataclass(frozen=True)
class Group:
    comm: int
    member: int
    sends: tuple[tuple[int, Transfer], ...]
    receives: tuple[int, ...]
    eager: bool = False  # the sends wait for no receiver


@dataclass(frozen=True)
class Abort:
    comm: int
    member: int


@dataclass(frozen=True)
class HostGroup:
    group: int
    size: int
    cost_ns: int


@dataclass(frozen=True)
class Background:
    """Traffic of others on the links."""

    links: tuple[tuple[int, float], ...]
    max_rate: float  # bytes/s
    start_ns: int
    stop_ns: int


@dataclass
class RankJob:
    streams: dict[int, int] = field(default_factory=dict)  # device of each
    slowdowns: dict[int, tuple[float, float]] = field(default_factory=dict)  # of kernels, of communication; by device
    kernels: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # duration, that of later launches, share
    calls: dict[int, Collective | Group] = field(default_factory=dict)
    aborts: dict[int, Abort] = field(default_factory=dict)
    host_groups: dict[int, HostGroup] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)


@dataclass
class Job:
    capacities: list[int]  # of the links, bytes/s
    comms: dict[int, int]  # size of each
    ranks: list[RankJob]
    launch_queue_depth: int = 1024
    capacity_changes: list[tuple[int, int, int]] = field(default_factory=list)  # (time, link, capacity), by time
    background: list[Background] = field(default_factory=list)

    def simulation(self) -> Simulation:
        """With everything defined and nothing fed."""
        network = Network()
        for capacity in self.capacities:
            network.add_link(capacity)
        for time, link, capacity in self.capacity_changes:
            network.change_capacity(time, link, capacity)
        for traffic in self.background:
            network.add_background(list(traffic.links), traffic.max_rate, traffic.start_ns, traffic.stop_ns)
        simulation = Simulation(len(self.ranks), network, self.launch_queue_depth)
        for comm, size in self.comms.items():
            simulation.define_comm(comm, size)
        for rank, job in enumerate(self.ranks):
            _define(simulation, rank, job)
        return simulation


def _define(simulation: Simulation, rank: int, job: RankJob) -> None:
    for device, slowdown in job.slowdowns.items():
        simulation.define_device(rank, device, *slowdown)
    for stream, device in job.streams.items():
        simulation.define_stream(rank, stream, device)
    for signature, (duration_ns, later_ns, share) in job.kernels.items():
        simulation.define_kernel(rank, signature, duration_ns, later_ns, share)
    for number, call in job.calls.items():
        if isinstance(call, Collective):
            simulation.define_collective(rank, number, call.comm, call.member, call.key, call.transfer.activity())
        else:
            sends = [(peer, 0, transfer.activity()) for peer, transfer in call.sends]
            receives = [(peer, 0) for peer in call.receives]
            simulation.define_group(rank, number, call.comm, call.member, sends, receives, call.eager)
    for number, abort in job.aborts.items():
        simulation.define_abort(rank, number, abort.comm, abort.member)
    for number, group in job.host_groups.items():
        simulation.define_host_group(rank, number, group.group, group.size, group.cost_ns)


@dataclass
class Outcome:
    """Everything that a run says, in the order in which it says it; replies as they finally are."""

    timeline: list[tuple[int, ...]] = field(default_factory=list)
    marks: list[tuple[int, ...]] = field(default_factory=list)
    replies: dict[tuple[int, int], int] = field(default_factory=dict)  # (rank, request): value
    clocks: list[int] = field(default_factory=list)


class Run:
    """Feeds a simulation and gathers what it says."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.simulation = job.simulation()
        self.outcome = Outcome()
        self.speculated = 0

    def feed(self, rank: int, records: list[Record]) -> None:
        self.simulation.feed(rank, b"".join(record.encode() for record in records))

    def advance(self) -> None:
        self._replies(self.simulation.advance())
        self._corrections()

    def speculate(self) -> int:
        """How many answers it gave."""
        replies = self.simulation.speculate()
        self._replies(replies)
        self._corrections()
        return len(replies)

    def take(self) -> None:
        t = self.simulation.take_timeline()
        columns = (t.rank, t.device, t.stream, t.kind, t.definition, t.later, t.issue_ns, t.start_ns, t.end_ns)
        self.outcome.timeline += zip(*(column.tolist() for column in columns), strict=True)
        m = self.simulation.take_marks()
        rows = (m.rank, m.device, m.kind, m.time_ns, m.a, m.b)
        self.outcome.marks += zip(*(column.tolist() for column in rows), strict=True)

    def finish(self) -> Outcome:
        """Ends all ranks: nothing more will come."""
        for rank in range(len(self.job.ranks)):
            self.simulation.close_rank(rank)
        self.advance()
        self.take()
        self.outcome.clocks = [self.simulation.clock_ns(rank) for rank in range(len(self.job.ranks))]
        return self.outcome

    def _replies(self, replies: list[Reply]) -> None:
        for reply in replies:
            key = (reply.rank, reply.request)
            assert key not in self.outcome.replies, "answered twice"
            self.outcome.replies[key] = reply.value
            self.speculated += reply.speculated

    def _corrections(self) -> None:
        for correction in self.simulation.take_corrections():
            assert self.outcome.replies[correction.rank, correction.request] != correction.value
            self.outcome.replies[correction.rank, correction.request] = correction.value


def run_in_order(job: Job) -> Outcome:
    """Every rank's records at once."""
    run = Run(job)
    for rank, part in enumerate(job.ranks):
        run.feed(rank, part.records)
    return run.finish()
