"""Random jobs. A string of bytes is read as instructions, so that Hypothesis can draw and shrink jobs cheaply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import strategies as st
from job import (
    DEVICE,
    RECORDING,
    STREAM,
    Abort,
    Background,
    Collective,
    Group,
    HostGroup,
    Job,
    Kind,
    RankJob,
    Record,
    Transfer,
)

T = TypeVar("T")

INSTRUCTION_BYTES = 8
HEADER_BYTES = 32


def programs(most_instructions: int = 50) -> st.SearchStrategy[bytes]:
    """Of all lengths alike: left to itself, Hypothesis seldom draws long strings."""
    sizes = st.integers(0, most_instructions).map(lambda n: HEADER_BYTES + n * INSTRUCTION_BYTES)
    return sizes.flatmap(lambda size: st.binary(min_size=size, max_size=size))


DELTAS = (0, 0, 0, 1, 2, 10, 37, 100, 1000, 5000)
DURATIONS = ((0, 0), (1, 1), (10, 3), (100, 100), (999, 1), (1000, 500), (7777, 5))
SHARES = (1024, 0, 512, 1024, 0, 1, 700)  # of the device, by kernel
CAPACITIES = (1_000_000_000, 2_000_000_000, 3_000_000_000, 500_000_000, 7_000_000_000)
VOLUMES = (0, 0, 1, 100, 1000, 1000, 4096, 99_999, 10**7, 10**9)  # so that doubles tell whole nanoseconds apart
MOMENTS = (0, 1, 37, 1000, 4096, 20_000)
SPANS = (1, 100, 5000, 10**6)
LATENCIES = (0, 0, 1, 5, 100, 1000)
WEIGHTS = (1.0, 1.0, 0.5, 1.75, 2.0, 3.0)
SLOWDOWNS = ((1.0, 1.0), (1.0, 1.0), (1.25, 1.0), (1.0, 1.5), (1.2, 1.1), (4.0, 3.0))  # kernels, communication
CAPS = (float("inf"), float("inf"), 1e9, 4e8)

# Sums of these weights depend on their order, and flows of this size last so long that the last bit of a rate shows.
# Only for comparing the core with itself.
ROUGH_VOLUMES = (*VOLUMES[:-2], 10**17, 10**17 + 12345)
ROUGH_WEIGHTS = (0.1, 0.7, 1.1, 0.3, 1 / 3, 1.9)


@dataclass
class Dice:
    """Chooses by the bytes of one instruction; zeros once they are used up."""

    data: bytes
    used: int = 0

    def below(self, n: int) -> int:
        value = self.data[self.used] if self.used < len(self.data) else 0
        self.used += 1
        return value % n

    def of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]


@dataclass
class Lane:
    delta_ns: int = 0


@dataclass
class Author:
    """Writes a rank's records."""

    job: RankJob
    lanes: dict[int, Lane] = field(default_factory=lambda: {0: Lane()})
    recordings: list[int] = field(default_factory=list)
    names: int = 0
    requests: int = 0

    def write(self, dice: Dice, kind: Kind, **fields: int) -> None:
        number = dice.of(sorted(self.lanes))
        lane = self.lanes[number]
        lane.delta_ns += dice.of(DELTAS)
        self.job.records.append(Record(kind, lane=number, delta_ns=lane.delta_ns, **fields))
        if kind in (Kind.SYNC, Kind.HOST_SYNC):
            lane.delta_ns = 0
        if kind == Kind.LANE_END:
            del self.lanes[number]

    def name(self) -> int:
        self.names += 1
        return self.names

    def request(self) -> int:
        self.requests += 1
        return self.requests

    def define(self, call: Collective | Group) -> int:
        for number, known in self.job.calls.items():
            if known == call:
                return number
        number = len(self.job.calls) + 1
        self.job.calls[number] = call
        return number


class Generator:
    def __init__(self, data: bytes, most_ranks: int, rough: bool) -> None:
        self.volumes, self.weights = (ROUGH_VOLUMES, ROUGH_WEIGHTS) if rough else (VOLUMES, WEIGHTS)
        dice = Dice(data[:HEADER_BYTES])
        self.size = 1 + dice.below(most_ranks)
        self.job = Job(
            capacities=[dice.of(CAPACITIES) for _ in range(1 + dice.below(4))],
            comms={},
            ranks=[RankJob() for _ in range(self.size)],
            launch_queue_depth=dice.of((1024, 1024, 3, 1)),
        )
        self._define_surroundings(dice)
        self.authors = [Author(rank) for rank in self.job.ranks]
        self.comms: list[list[int]] = []  # members' ranks
        self._define_comms()
        for rank in self.job.ranks:
            rank.streams = {0: 0, 1: 0, 2: 0, 3: 1}
            rank.slowdowns = {device: slowdown for device in (0, 1) if (slowdown := dice.of(SLOWDOWNS)) != (1.0, 1.0)}
            kernels = zip(DURATIONS, SHARES, strict=True)
            rank.kernels = {number + 1: (*durations, share) for number, (durations, share) in enumerate(kernels)}
        for author in self.authors:
            for lane in range(1, 1 + dice.below(3)):
                author.write(Dice(b""), Kind.LANE_BEGIN, a=lane)
                author.lanes[lane] = Lane()
        for start in range(HEADER_BYTES, len(data), INSTRUCTION_BYTES):
            self._instruct(Dice(data[start : start + INSTRUCTION_BYTES]))

    def _define_surroundings(self, dice: Dice) -> None:
        """What happens on the links whatever the ranks do."""
        links = len(self.job.capacities)
        for _ in range(dice.of((0, 0, 0, 1, 3))):
            self.job.capacity_changes.append((dice.of(MOMENTS), dice.below(links), dice.of(CAPACITIES)))
        self.job.capacity_changes.sort(key=lambda change: change[0])
        for _ in range(dice.of((0, 0, 0, 1, 2))):
            start = dice.of(MOMENTS)
            link = dice.below(links)
            others = ((0, dice.of(self.weights)),) if link else ()
            traffic = ((link, dice.of(self.weights)), *others)
            self.job.background.append(Background(traffic, dice.of((*CAPS, 2e8)), start, start + dice.of(SPANS)))

    def _define_comms(self) -> None:
        everyone = list(range(self.size))
        for members in (everyone, everyone[: self.size // 2 + 1], everyone[::-1], everyone[self.size // 2 :]):
            self.comms.append(members)
            self.job.comms[10 * len(self.comms)] = len(members)
            for index, rank in enumerate(members):
                group = HostGroup(len(self.comms), len(members), 5 * (len(self.comms) - 1))
                self.job.ranks[rank].host_groups[len(self.comms)] = group
                self.job.ranks[rank].aborts[len(self.comms)] = Abort(10 * len(self.comms), index)
                assert self.comms[-1][index] == rank

    def _instruct(self, dice: Dice) -> None:
        instructions = (
            self._kernel,
            self._kernel,
            self._kernel,
            self._collective,
            self._collective,
            self._group,
            self._group,
            self._request,
            self._request,
            self._event,
            self._event,
            self._wait,
            self._host_sync,
            self._other,
        )
        dice.of(instructions)(dice)

    def _transfer(self, dice: Dice, variant: int = 0) -> Transfer:
        volume, latency = dice.of(self.volumes), dice.of(LATENCIES)
        choice = (dice.below(16) + variant) % 16
        links = tuple(
            (link, self.weights[(choice + link) % len(self.weights)])
            for link in range(len(self.job.capacities))
            if choice >> link & 1 or link == choice % len(self.job.capacities)
        )
        return Transfer(volume, latency, links, CAPS[choice % len(CAPS)])

    def _kernel(self, dice: Dice) -> None:
        author = dice.of(self.authors)
        signature = 1 + dice.below(len(DURATIONS))
        author.write(dice, Kind.KERNEL, stream=dice.below(4), a=signature, flags=dice.below(4))

    def _collective(self, dice: Dice) -> None:
        choice = dice.below(len(self.comms))
        transfer = self._transfer(dice)
        spread, wrong = dice.below(4), dice.below(64)
        for member, rank in enumerate(self.comms[choice]):
            if wrong == 63 and member == 0:
                continue  # it never comes
            key = 2 if wrong == 62 and member == 0 else 1
            call = Collective(10 * (choice + 1), member, key, transfer)
            author = self.authors[rank]
            stream = (spread + member * (spread & 1)) % 4
            author.write(Dice(dice.data[6:]), Kind.COLLECTIVE, stream=stream, a=author.define(call), flags=spread & 2)

    def _group(self, dice: Dice) -> None:
        """A launch on every member: a ring, a pair, or everyone to everyone."""
        choice = dice.below(len(self.comms))
        members = self.comms[choice]
        pattern, wrong, way = dice.below(3), dice.below(64), dice.below(4)
        uniform, eager = way & 1, way > 1
        size = len(members)
        transfers = [self._transfer(Dice(dice.data[4:]), 0 if uniform else source) for source in range(size)]
        pairs = {
            0: [(0, size - 1)],
            1: [(member, (member + 1) % size) for member in range(size)],
            2: [(source, target) for source in range(size) for target in range(size)],
        }[pattern]
        for member, rank in enumerate(members):
            if wrong == 63 and member == 0:
                continue
            sends = tuple((target, transfers[source]) for source, target in pairs if source == member)
            receives = tuple(source for source, target in pairs if target == member)
            author = self.authors[rank]
            number = author.define(Group(10 * (choice + 1), member, sends, receives, eager))
            author.write(Dice(dice.data[6:]), Kind.COLLECTIVE, stream=dice.data[0] % 3, a=number)

    def _request(self, dice: Dice) -> None:
        author = dice.of(self.authors)
        kind = dice.of((Kind.SYNC, Kind.SYNC, Kind.QUERY, Kind.EVENT_TIME))
        target = dice.of((STREAM, RECORDING, DEVICE))
        if kind == Kind.EVENT_TIME or target == RECORDING:
            if not author.recordings:
                return
            flags = 0 if kind == Kind.EVENT_TIME else RECORDING
            author.write(dice, kind, flags=flags, a=dice.of(author.recordings), b=author.request())
        else:
            subject = dice.below(4 if target == STREAM else 2)
            author.write(dice, kind, flags=target, stream=subject, b=author.request())

    def _event(self, dice: Dice) -> None:
        author = dice.of(self.authors)
        name = author.name()
        author.write(dice, Kind.EVENT_RECORD, stream=dice.below(4), a=name)
        author.recordings.append(name)

    def _wait(self, dice: Dice) -> None:
        author = dice.of(self.authors)
        if author.recordings:
            author.write(dice, Kind.STREAM_WAIT, stream=dice.below(4), a=dice.of(author.recordings))

    def _host_sync(self, dice: Dice) -> None:
        choice, wrong = dice.below(len(self.comms)), dice.below(32)
        for index, rank in enumerate(self.comms[choice]):
            if wrong == 31 and index == 0:
                continue
            author = self.authors[rank]
            author.write(Dice(dice.data[3:]), Kind.HOST_SYNC, a=choice + 1, b=author.request())

    def _other(self, dice: Dice) -> None:
        author = dice.of(self.authors)
        match dice.below(8):
            case 0:
                author.write(dice, Kind.MARK, stream=dice.below(4), a=1, b=2)
            case 1:
                author.write(dice, Kind.MEMORY, stream=dice.below(4), a=dice.below(256), b=dice.below(256))
            case 2:
                author.write(dice, Kind.CLOCK)
            case 3 if len(author.lanes) > 1:
                author.write(Dice(bytes([len(author.lanes) - 1, dice.below(256)])), Kind.LANE_END)
            case 4 if author.recordings:
                name = dice.of(author.recordings)
                author.recordings.remove(name)
                author.write(dice, Kind.EVENT_FORGET, a=name)
            case 5:
                comm = dice.below(len(self.comms))
                for rank in self.comms[comm][: dice.of((1, 1, 2, self.size))]:
                    self.authors[rank].write(Dice(dice.data[3:]), Kind.ABORT, a=comm + 1)
            case _:
                free = [number for number in (3, 2, 1) if number not in author.lanes]
                if free:
                    author.write(dice, Kind.LANE_BEGIN, a=free[0])
                    author.lanes[free[0]] = Lane()


def generate(data: bytes, most_ranks: int = 6, rough: bool = False) -> Job:
    return Generator(data, most_ranks, rough).job
