"""The compiled simulator core: event graph, flow network, horizon, commit and speculation.

It knows ranks, lanes, streams, recordings, activities on links; nothing of CUDA, NCCL or sockets. All times are integer
nanoseconds. The result is a pure function of the ranks' record streams and the definitions, whatever the order in which
`feed` was called for different ranks (docs/exactness.md). Safe to call from several threads; the GIL is released
meanwhile.
"""

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

RECORD_BYTES: Final = 32

class Network:
    """Links that activities share max-min fairly."""

    def add_link(self, capacity_bytes_per_s: float) -> int:
        """Adds a link, returns its id (dense from 0). Raises ValueError unless the capacity is finite and >= 1e-3.

        A Simulation is made of what its network is at that moment.
        """

    def change_capacity(self, time_ns: int, link: int, capacity_bytes_per_s: float) -> None:
        """The link's capacity from that time on. ValueError as add_link, or for a link that does not exist."""

    def add_background(
        self, links: list[tuple[int, float]], max_rate_bytes_per_s: float, start_ns: int, stop_ns: int
    ) -> None:
        """Traffic of others: takes its share of those (link, weight)s, at most the greatest rate, from start to stop.

        ValueError for no links, those that do not exist, and a stop that is not after the start.
        """

class Activity:
    """One transfer that advances at a single common rate over all its links.

    After `latency_ns` it moves `volume_bytes` at the max-min fair rate r (bytes/s); on each link it uses weight * r,
    and r never exceeds `max_rate_bytes_per_s`. Zero volume: ends after the latency. It lasts at least 1 ns.
    Immutable; definitions that share one object share its memory. ValueError for negative figures, weights outside
    1e-6 .. 1e6, and a volume with neither links nor a greatest rate.
    """

    def __init__(
        self,
        volume_bytes: int,
        latency_ns: int,
        links: list[tuple[int, float]],
        max_rate_bytes_per_s: float = ...,
    ) -> None: ...

class Reply:
    rank: int
    request: int
    value: int
    speculated: bool

class Correction:
    rank: int
    request: int
    value: int

class Obstacle:
    """What a rank waits for in the end, behind the streams and recordings on the way there."""

    kind: Literal["collective", "send", "receive", "transfers", "kernel", "host_group", "recording", "lane", "chain"]
    """"transfers" and "kernel" are under way; "recording": one that has not been made; "lane": another lane of the
    rank, which may act before; "chain": streams that wait for one another's recordings, without end."""
    name: int  # of the communicator, the host group, or the recording
    sequence: int  # of the collective, of the message of that direction, or of the round of the host group; from 0
    definition: int  # of the rank's own call
    member: int  # the rank is
    peer: int  # of a send or receive
    mismatched: bool  # members do not ask for the same: it never starts
    absent: list[int]  # members (of a host group: ranks) that have not come
    busy: list[int]  # members that have, but whose streams are not there yet
    gone: list[int]  # members that have aborted the communicator
    unheard: int  # members of a host group that nothing is known of

class Waiting:
    """A request without an answer, or a lane that cannot go on (request 0), for diagnoses."""

    rank: int
    lane: int
    request: int
    launches: bool  # the launch queue of a stream is full
    since_ns: int
    obstacle: Obstacle

class Disagreement:
    """Calls that should be the same but are not; such an operation never starts."""

    comm: int
    sequence: int
    is_message: bool  # a send (first side) and its receive, not a collective
    sides: list[list[tuple[int, int, int]]]
    """Those that agree, as (member, rank, definition)."""

class Timeline:
    """Committed nodes by end time, rank, and order within the rank, whenever they are taken; columns of equal length.

    `start_ns` of a collective is when that rank's stream came to it: it may have waited for other members since.
    """

    rank: NDArray[np.int32]
    device: NDArray[np.int32]
    stream: NDArray[np.uint32]
    kind: NDArray[np.uint8]  # wire record kind: 1 kernel, 4 collective
    definition: NDArray[np.uint32]  # signature or collective definition id of that rank
    later: NDArray[np.uint8]  # 1: a later launch of an op already counted
    issue_ns: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]

class Marks:
    """Committed MARK and MEMORY records by time, rank, and order within the rank."""

    rank: NDArray[np.int32]
    device: NDArray[np.int32]
    kind: NDArray[np.uint8]  # wire record kind: 10 mark, 13 memory
    time_ns: NDArray[np.int64]  # mark: completion on its stream; memory: issue time
    a: NDArray[np.uint64]
    b: NDArray[np.uint64]

class Simulation:
    def __init__(self, ranks: int, network: Network, launch_queue_depth: int = 1024) -> None: ...

    # Definitions; ValueError for unknown ids, sizes or a second, different definition.
    def define_device(self, rank: int, device: int, compute_slowdown: float, communication_slowdown: float) -> None:
        """Kernels and communication on the device slow each other (docs/exactness.md, "Overlap").

        While it carries communication (from the time at which all members are ready to the end), its kernels take
        `compute_slowdown` times as long; while a device that carries it runs a kernel, communication moves
        `communication_slowdown` times slower, by the slowest device. Collectives of one member and messages to oneself
        do not count, nor do kernels that were issued before the device's first communication. On devices that are not
        defined nothing slows anything. ValueError for factors below 1, or after the device's streams.
        """
    def define_stream(self, rank: int, stream: int, device: int) -> None: ...
    def define_kernel(self, rank: int, signature: int, duration_ns: int, later_ns: int, share: int = 0) -> None:
        """Kernels on several streams of a device that was defined share it: while they fill more than 1024 of it
        together, each is as much slower. `later_ns` is for launches after an op's first."""
    def define_comm(self, comm: int, size: int) -> None: ...
    def define_collective(
        self, rank: int, definition: int, comm: int, member: int, key: int, activity: Activity
    ) -> None:
        """`key` names op, sizes, type and root: members of one operation must agree on it. The activity of member 0
        counts."""
    def define_group(
        self,
        rank: int,
        definition: int,
        comm: int,
        member: int,
        sends: list[tuple[int, int, Activity]],
        receives: list[tuple[int, int]],
        eager: bool = False,
    ) -> None:
        """One launch of point-to-point transfers: sends of (peer, key, activity), receives of (peer, key). The k-th
        send i→j on a communicator meets the k-th receive on j from i; both must have the same key, say their size.
        Eager sends start without their receivers, meet no kernels, and the launch does not wait for their ends."""
    def define_abort(self, rank: int, definition: int, comm: int, member: int) -> None:
        """What an ABORT record names: at its time all that the rank has called on the communicator, but for
        eager launches, ends, if it has not; its later calls end as soon as its stream comes to them. The others wait
        for it, without end."""
    def define_host_group(self, rank: int, definition: int, group: int, size: int, cost_ns: int) -> None: ...
    def feed(self, rank: int, batch: bytes) -> None:
        """Appends records. ValueError (state unchanged) for a malformed batch."""
    def close_rank(self, rank: int) -> None:
        """The rank will issue nothing more (it ended)."""
    def advance(self) -> list[Reply]:
        """Commits up to the horizon and returns the answers that became certain."""
    def speculate(self) -> list[Reply]:
        """At quiescence: runs on from the committed state on a copy, as if no running lane issued anything more, until
        the earliest waiting request is answered (several if at the same time). Empty if nothing can ever move. Advances
        first: if that gives certain answers, they are returned instead."""
    def take_corrections(self) -> list[Correction]: ...
    def waiting(self) -> list[Waiting]: ...
    def held_up(self, rank: int) -> list[Obstacle]:
        """What the rank's streams stand at, by stream."""
    @property
    def disagrees(self) -> bool:
        """Some collective or message whose members have all come is not the same for all."""
    def disagreements(self) -> list[Disagreement]:
        """By communicator and sequence; those, too, whose members have not all come."""
    def take_timeline(self) -> Timeline: ...
    def take_marks(self) -> Marks: ...
    def clock_ns(self, rank: int) -> int:
        """Committed time of lane 0."""
    @property
    def committed_ns(self) -> int:
        """Everything before it is final. Once all ranks have ended: the time of the last thing."""
    @property
    def corrected_replies(self) -> int: ...
