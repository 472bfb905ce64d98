"""What a job's times must be: a plain in-order simulation on SimPy that shares no code with the core.

Everything is known from the start, so there is no horizon, nothing is worked out ahead, rates of all flows come
from scratch as fractions, and every lane, stream and flow is a process or an event. Within one instant the order is:
whatever ends (streams go on at once), then lanes in the order in which they were begun, then the network's new rates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import simpy
from job import (
    DEVICE,
    LATER,
    RECORDING,
    STREAM,
    WITHIN_LAUNCH,
    Background,
    Collective,
    Group,
    Job,
    Kind,
    Outcome,
    Record,
    Transfer,
)
from simpy.events import EventPriority

NORMAL = 1  # priorities within an instant: SimPy's own for whatever happens by itself
LANES_TURN = 10
NETWORKS_TURN = 1_000_000

Process = Generator[simpy.Event, Any, None]
Key = tuple[Any, ...]


class Clock(simpy.Environment):
    """Whole nanoseconds."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)

    @property
    def now(self) -> int:
        return int(super().now)

    def at(self, time: int, priority: int = NORMAL) -> simpy.Event:
        """An event that happens then, among those of its instant by priority."""
        event = simpy.Event(self)
        event._ok, event._value = True, None
        self.schedule(event, EventPriority(priority), time - self.now)
        return event


Device = tuple[int, int]  # rank, device as the rank calls it


@dataclass(eq=False)
class Flow:
    """An activity, a kernel that meets communication on its device, or background traffic."""

    transfer: Transfer | None  # None: a kernel
    remaining: Fraction | None  # None: without end
    done: simpy.Event
    devices: tuple[Device, ...] = ()
    share: int = 0  # of 1024, of a kernel's device
    joined: bool = False
    speed: Fraction = Fraction(0)
    end: int | None = None
    cancelled: bool = False


class Network:
    def __init__(self, env: Clock, job: Job) -> None:
        self.env = env
        self.capacities = [Fraction(capacity) / 10**9 for capacity in job.capacities]
        self.slowdowns = {
            (rank, device): factors for rank, part in enumerate(job.ranks) for device, factors in part.slowdowns.items()
        }
        self.flows: list[Flow] = []
        self.moved_at = 0
        self.changing = False
        for change in job.capacity_changes:
            env.process(self._change_capacity(*change))
        for traffic in job.background:
            env.process(self._disturb(traffic))

    def move(self, transfer: Transfer, start: int, devices: list[Device]) -> Flow:
        overlapping = tuple(device for device in devices if device in self.slowdowns)
        flow = Flow(transfer, Fraction(transfer.volume_bytes), simpy.Event(self.env), overlapping)
        self.env.process(self._move(flow, transfer, start))
        return flow

    def cancel(self, flow: Flow) -> None:
        flow.cancelled = True
        if flow in self.flows:
            self.flows.remove(flow)
            self._change()

    def compute(self, duration: int, device: Device, share: int) -> simpy.Event:
        flow = Flow(None, Fraction(duration), simpy.Event(self.env), (device,), share, joined=True)
        self._enter(flow)
        return flow.done

    def _move(self, flow: Flow, transfer: Transfer, start: int) -> Process:
        yield self.env.at(start)
        self._enter(flow)
        if transfer.volume_bytes == 0:
            yield self.env.at(start + max(1, transfer.latency_ns))
            if not flow.cancelled:
                self._leave(flow)
            return
        yield self.env.at(start + transfer.latency_ns)
        if flow.cancelled:
            return
        flow.joined = True
        self._change()

    def _change_capacity(self, time: int, link: int, capacity: int) -> Process:
        yield self.env.at(time)
        self.capacities[link] = Fraction(capacity) / 10**9
        self._change()

    def _disturb(self, traffic: Background) -> Process:
        yield self.env.at(traffic.start_ns)
        transfer = Transfer(0, 0, traffic.links, traffic.max_rate)
        flow = Flow(transfer, None, simpy.Event(self.env), joined=True)
        self._enter(flow)
        yield self.env.at(traffic.stop_ns)
        self._leave(flow)

    def _enter(self, flow: Flow) -> None:
        self.flows.append(flow)
        self._change()

    def _leave(self, flow: Flow) -> None:
        self.flows.remove(flow)
        flow.done.succeed()
        self._change()

    def _change(self) -> None:
        if not self.changing:
            self.changing = True
            self.env.process(self._new_speeds())

    def _new_speeds(self) -> Process:
        yield self.env.at(self.env.now, NETWORKS_TURN)
        self.changing = False
        elapsed, self.moved_at = self.env.now - self.moved_at, self.env.now
        for flow in self.flows:
            if flow.remaining is not None:
                flow.remaining -= flow.speed * elapsed
        rates = fair_rates([flow for flow in self.flows if flow.joined and flow.transfer], self.capacities)
        for flow in self.flows:
            speed = rates.get(flow, Fraction(flow.joined)) / self._slowdown(flow)
            if speed != flow.speed:
                flow.speed = speed
                if flow.remaining is not None:
                    flow.end = self.env.now + max(1, math.ceil(flow.remaining / speed - Fraction(1, 1000)))
                    self.env.process(self._end(flow, flow.end))

    def _slowdown(self, flow: Flow) -> Fraction:
        """By what it meets on its devices: kernels meet communication and other kernels, communication kernels."""
        meets_kernels = flow.transfer is not None
        slowest = 1.0
        for device in flow.devices:
            if any(device in other.devices and (other.transfer is None) == meets_kernels for other in self.flows):
                slowest = max(slowest, self.slowdowns[device][meets_kernels])
        return Fraction(slowest) * (self._crowding(flow) if flow.share else 1)

    def _crowding(self, kernel: Flow) -> Fraction:
        shares = sum(other.share for other in self.flows if other.devices == kernel.devices)
        return max(Fraction(1), Fraction(shares, 1024))

    def _end(self, flow: Flow, end: int) -> Process:
        yield self.env.at(end)
        if flow.end == end and flow in self.flows:
            self._leave(flow)


def fair_rates(flows: list[Flow], capacities: list[Fraction]) -> dict[Flow, Fraction]:
    """Raises all rates together; whoever meets a full link or its own cap stays there."""
    transfers = {flow: flow.transfer for flow in flows if flow.transfer}
    rates: dict[Flow, Fraction] = {}
    while len(rates) < len(flows):
        growing = [flow for flow in flows if flow not in rates]
        stops: dict[Flow, Fraction] = {}
        for flow in growing:
            cap = transfers[flow].max_rate
            limits = [Fraction(cap) / 10**9] if math.isfinite(cap) else []
            for link, _ in transfers[flow].links:
                used = sum((rates[f] * weight_on(transfers[f], link) for f in rates), Fraction())
                limits.append((capacities[link] - used) / sum(weight_on(transfers[f], link) for f in growing))
            stops[flow] = min(limits)
        level = min(stops.values())
        rates |= {flow: level for flow in growing if stops[flow] == level}
    return rates


def weight_on(transfer: Transfer, link: int) -> Fraction:
    return sum((Fraction(weight) for at, weight in transfer.links if at == link), Fraction(0))


@dataclass(eq=False)
class Work:
    """Something issued to a stream."""

    run: Any  # function of nothing that gives a process
    done: simpy.Event
    launch: bool = False


@dataclass(eq=False)
class Stream:
    device: int
    work: simpy.Store
    issued: list[Work] = field(default_factory=list)

    def drained(self) -> list[simpy.Event]:
        return [self.issued[-1].done] if self.issued else []

    def unfinished_launches(self) -> list[Work]:
        return [work for work in self.issued if work.launch and not work.done.processed]


@dataclass(eq=False)
class Recording:
    done: simpy.Event
    made: bool = False
    awaited_early: bool = False


@dataclass(eq=False)
class Operation:
    """A collective or a message: starts when all its sides are ready."""

    sides: int
    done: simpy.Event
    ready: int = 0  # of them
    transfer: Transfer | None = None
    members: list[int] = field(default_factory=list)  # of the communicator, that take part
    devices: list[Device] = field(default_factory=list)  # that carry it
    keys: set[int] = field(default_factory=set)
    eager: bool = False  # starts with its first side
    flow: Flow | None = None  # once it has started
    abandoned: bool = False  # by a side that aborted its communicator


class Oracle:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.env = Clock()
        self.network = Network(self.env, job)
        self.outcome = Outcome()
        self.operations: dict[Key, Operation] = {}
        self.counts: defaultdict[Key, int] = defaultdict(int)
        self.rounds: dict[Key, list[tuple[int, int, simpy.Event]]] = {}
        self.clocks = [0] * len(job.ranks)
        self.aborts: defaultdict[Key, simpy.Event] = defaultdict(lambda: simpy.Event(self.env))  # by comm, member
        self.communicating: set[Device] = set()
        self.computing: defaultdict[Device, set[int]] = defaultdict(set)  # streams with kernels

    def run(self) -> Outcome:
        for rank in range(len(self.job.ranks)):
            RankOracle(self, rank)
        self.env.run()
        self.outcome.timeline.sort(key=lambda row: (row[8], row[0]))
        self.outcome.marks.sort(key=lambda row: (row[3], row[0]))
        self.outcome.clocks = self.clocks
        return self.outcome

    def count(self, *key: Any) -> int:
        self.counts[key] += 1
        return self.counts[key]

    def operation(self, key: Key, sides: int) -> Operation:
        return self.operations.setdefault(key, Operation(sides, simpy.Event(self.env)))

    def ready(self, operation: Operation) -> None:
        operation.ready += 1
        if operation.ready == operation.sides and len(operation.keys) <= 1 and not operation.abandoned:
            self.start(operation)

    def give_up(self, operation: Operation) -> None:
        operation.abandoned = True
        if operation.flow and not operation.eager and not operation.done.triggered:
            self.network.cancel(operation.flow)

    def start(self, operation: Operation) -> None:
        self.env.process(self._operate(operation, self.env.now))

    def _operate(self, operation: Operation, now: int) -> Process:
        assert operation.transfer is not None
        between_ranks = len(set(operation.members)) > 1
        devices = operation.devices if between_ranks and not operation.eager else []
        operation.flow = self.network.move(operation.transfer, now, devices)
        yield operation.flow.done
        operation.done.succeed()


class RankOracle:
    def __init__(self, oracle: Oracle, rank: int) -> None:
        self.oracle, self.env, self.rank = oracle, oracle.env, rank
        self.job = oracle.job.ranks[rank]
        self.streams = {number: Stream(device, simpy.Store(self.env)) for number, device in self.job.streams.items()}
        self.begun: dict[int, int] = {}  # lane that a LANE_BEGIN record begins
        self.recordings = {
            r.a: Recording(simpy.Event(self.env)) for r in self.job.records if r.kind == Kind.EVENT_RECORD
        }
        for stream in self.streams.values():
            self.env.process(self._run_stream(stream))
        self.lanes = self._split_into_lanes()
        self.env.process(self._run_lane(0))

    def _run_stream(self, stream: Stream) -> Process:
        while True:
            work = yield stream.work.get()
            yield from work.run()
            work.done.succeed()

    def _issue(self, stream: Stream, run: Any, launch: bool = False) -> None:
        work = Work(run, simpy.Event(self.env), launch)
        stream.issued.append(work)
        stream.work.put(work)

    # --- lanes

    def _split_into_lanes(self) -> list[list[Record]]:
        """The records of each lane, in the order of their LANE_BEGINs (numbers are used again): 0 is the main one."""
        lanes: list[list[Record]] = [[]]
        current = {0: 0}
        for record in self.job.records:
            lanes[current[record.lane]].append(record)
            if record.kind == Kind.LANE_BEGIN:
                self.begun[id(record)] = current[record.a] = len(lanes)
                lanes.append([])
        return lanes

    def _run_lane(self, lane: int) -> Process:
        base = self.env.now
        for record in self.lanes[lane]:
            turn = max(base + record.delta_ns, self.env.now)
            yield self.env.at(turn, LANES_TURN + lane)
            self._clock(lane)
            if record.kind in (Kind.KERNEL, Kind.COLLECTIVE):
                while (full := self._full(record)) is not None:
                    yield full
                    yield self.env.at(self.env.now, LANES_TURN + lane)
                base += self.env.now - turn
            self._clock(lane)
            if record.kind == Kind.SYNC:
                yield simpy.AllOf(self.env, self._target(record))
                base = self.env.now
                self._reply(record, base)
            elif record.kind == Kind.HOST_SYNC:
                yield self._arrive(record)
                base = self.env.now
                self._reply(record, base)
            else:
                self._execute(record)
            self._clock(lane)

    def _clock(self, lane: int) -> None:
        if lane == 0:
            self.oracle.clocks[self.rank] = self.env.now

    def _full(self, record: Record) -> simpy.Event | None:
        if record.flags & WITHIN_LAUNCH:
            return None
        unfinished = self.streams[record.stream].unfinished_launches()
        return unfinished[0].done if len(unfinished) >= self.oracle.job.launch_queue_depth else None

    def _reply(self, record: Record, value: int) -> None:
        self.oracle.outcome.replies[self.rank, record.b] = value

    def _execute(self, record: Record) -> None:
        match record.kind:
            case Kind.KERNEL:
                self._launch(record, self._kernel(record))
            case Kind.COLLECTIVE:
                call = self.job.calls[record.a]
                device = (self.rank, self.streams[record.stream].device)
                if self.oracle.job.comms[call.comm] > 1:
                    self.oracle.communicating.add(device)
                joined = self._join_collective(call) if isinstance(call, Collective) else self._join_group(call)
                sent = self._send_eagerly(call) if isinstance(call, Group) and call.eager else []
                for operation in joined:
                    operation.members.append(call.member)
                    operation.devices.append(device)
                self._launch(record, lambda: self._communicate(call, joined, sent))
            case Kind.EVENT_RECORD:
                self._record_event(record)
            case Kind.STREAM_WAIT:
                recording = self._look_at(record.a)
                self._issue(self.streams[record.stream], lambda: self._wait(recording.done))
            case Kind.QUERY:
                self._reply(record, int(all(event.processed for event in self._target(record))))
            case Kind.EVENT_TIME:
                self.env.process(self._event_time(record, self._look_at(record.a)))
            case Kind.MARK:
                self._issue(self.streams[record.stream], lambda: self._mark(record))
            case Kind.MEMORY:
                row = (
                    self.rank,
                    self.streams[record.stream].device,
                    int(Kind.MEMORY),
                    self.env.now,
                    record.a,
                    record.b,
                )
                self.oracle.outcome.marks.append(row)
            case Kind.ABORT:
                abort = self.job.aborts[record.a]
                event = self.oracle.aborts[abort.comm, abort.member]
                if not event.triggered:
                    event.succeed(self.env.now)
            case Kind.LANE_BEGIN:
                self.env.process(self._run_lane(self.begun[id(record)]))

    # --- streams

    def _launch(self, record: Record, run: Any) -> None:
        issue = self.env.now

        def timed() -> Process:
            start = self.env.now
            yield from run()
            stream = self.streams[record.stream]
            row = (
                self.rank,
                stream.device,
                record.stream,
                int(record.kind),
                record.a,
                record.flags & LATER,
                issue,
                start,
            )
            self.oracle.outcome.timeline.append((*row, self.env.now))

        self._issue(self.streams[record.stream], timed, launch=not record.flags & WITHIN_LAUNCH)

    def _kernel(self, record: Record) -> Any:
        """Communication slows it if the device has been used for communication when it is issued, other kernels if
        there have been some on two of the device's streams."""
        duration, share = self.job.kernels[record.a][record.flags & LATER], self.job.kernels[record.a][2]
        device = (self.rank, self.streams[record.stream].device)
        used = self.oracle.computing[device]
        if duration > 0 and share > 0:
            used.add(record.stream)
        slowdowns = self.oracle.network.slowdowns.get(device)
        meets_communication = device in self.oracle.communicating and slowdowns != (1.0, 1.0)
        meets_kernels = len(used) > 1 and share > 0
        if duration > 0 and slowdowns and (meets_communication or meets_kernels):
            return lambda: self._wait(self.oracle.network.compute(duration, device, share))
        return lambda: self._wait(self.env.timeout(duration))

    def _wait(self, event: simpy.Event) -> Process:
        yield event

    def _mark(self, record: Record) -> Process:
        device = self.streams[record.stream].device
        self.oracle.outcome.marks.append((self.rank, device, int(Kind.MARK), self.env.now, record.a, record.b))
        yield self.env.timeout(0)

    # --- recordings and requests

    def _look_at(self, number: int) -> Recording:
        recording = self.recordings[number]
        if not recording.made:
            recording.awaited_early = True
        return recording

    def _record_event(self, record: Record) -> None:
        recording = self.recordings[record.a]
        recording.made = True
        earliest = self.env.now + (1 if recording.awaited_early else 0)

        def complete() -> Process:
            self.env.process(self._complete(recording, earliest))
            yield self.env.timeout(0)

        self._issue(self.streams[record.stream], complete)

    def _complete(self, recording: Recording, earliest: int) -> Process:
        if earliest > self.env.now:
            yield self.env.at(earliest)
        recording.done.succeed(self.env.now)

    def _target(self, record: Record) -> list[simpy.Event]:
        """Events that must all have happened."""
        match record.flags:
            case x if x == STREAM:
                return self.streams[record.stream].drained()
            case x if x == RECORDING:
                return [self._look_at(record.a).done]
            case x if x == DEVICE:
                streams = [stream for stream in self.streams.values() if stream.device == record.stream]
                return [event for stream in streams for event in stream.drained()]
        raise AssertionError(record)

    def _event_time(self, record: Record, recording: Recording) -> Process:
        if not recording.done.processed:
            yield recording.done
        self._reply(record, int(recording.done.value or 0))

    # --- between ranks

    def _join_collective(self, call: Collective) -> list[Operation]:
        number = self.oracle.count("collective", call.comm, call.member)
        operation = self.oracle.operation(("collective", call.comm, number), self.oracle.job.comms[call.comm])
        operation.keys.add(call.key)
        if call.member == 0:
            operation.transfer = call.transfer
        return [operation]

    def _join_group(self, call: Group) -> list[Operation]:
        operations = [] if call.eager else self._sends(call)
        for peer in call.receives:
            number = self.oracle.count("receive", call.comm, peer, call.member)
            operations.append(self.oracle.operation(("message", call.comm, peer, call.member, number), 2))
        return operations

    def _send_eagerly(self, call: Group) -> list[Operation]:
        sent = self._sends(call)
        for operation in sent:
            operation.eager = True
        return sent

    def _sends(self, call: Group) -> list[Operation]:
        operations = []
        for peer, transfer in call.sends:
            number = self.oracle.count("send", call.comm, call.member, peer)
            operation = self.oracle.operation(("message", call.comm, call.member, peer, number), 2)
            operation.transfer = transfer
            operations.append(operation)
        return operations

    def _communicate(self, call: Collective | Group, operations: list[Operation], sent: list[Operation]) -> Process:
        eager = isinstance(call, Group) and call.eager
        abort = simpy.Event(self.env) if eager else self.oracle.aborts[call.comm, call.member]
        if not abort.triggered:
            for operation in sent:
                self.oracle.start(operation)
            for operation in operations:
                self.oracle.ready(operation)
            ended = simpy.AllOf(self.env, [operation.done for operation in operations])
            yield simpy.AnyOf(self.env, [ended, abort])
            if ended.triggered:
                return
            for operation in operations:
                self.oracle.give_up(operation)
        yield self.env.at(max(self.env.now, int(abort.value) + 1))

    def _arrive(self, record: Record) -> simpy.Event:
        group = self.job.host_groups[record.a]
        number = self.oracle.count("host", group.group, self.rank)
        arrivals = self.oracle.rounds.setdefault((group.group, number), [])
        event = simpy.Event(self.env)
        arrivals.append((self.env.now, group.cost_ns, event))
        if len(arrivals) == group.size:
            end = max(time for time, _, _ in arrivals) + max(1, *(cost for _, cost, _ in arrivals))
            for _, _, waiting in arrivals:
                self.env.process(self._meet(end, waiting))
        return event

    def _meet(self, end: int, waiting: simpy.Event) -> Process:
        yield self.env.at(end)
        waiting.succeed()


def run_oracle(job: Job) -> Outcome:
    return Oracle(job).run()
