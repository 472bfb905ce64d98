"""Turns the ranks' DEFINE maps into calls of the core: costs, communicators, plans of collectives, host groups.

Definitions may come in any order of ranks. A collective can only be planned once every member of its communicator is
known; until then it stays here, and its rank's records must be held back (`is_incomplete`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from phantora_netsim import Simulation
from phantora_py import occupancy
from phantora_py.catalogue import Catalogue, CollectiveInfo, KernelInfo
from phantora_py.cluster import Cluster, Device
from phantora_py.collectives import COLLECTIVE_OPS, Asked, CollectivePlanner
from phantora_py.fields import Fields
from phantora_py.frames import ProtocolError
from phantora_py.host_groups import host_group_cost_ns
from phantora_py.placement import MAX_RANKS, Placement
from phantora_py.rank_list import named_ranks
from phantora_py.signature import Signature, SignatureError
from phantora_py.tokens import Lookup

MAX_DEFINITIONS = 1 << 22
"""Of one kind and rank: ids are dense, so a larger one is nonsense."""
MAX_BYTES = 1 << 60
_WITH_ROOT = frozenset({"broadcast", "reduce", "gather", "scatter"})
_POINT_TO_POINT = ("group", "stores")


class Cost(Protocol):
    """What a cost engine answers."""

    @property
    def duration_ns(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def guessed(self) -> bool: ...
    @property
    def busy_ns(self) -> int: ...
    @property
    def doubt(self) -> str: ...


class CostEngine(Protocol):
    """The part of phantora_py.engines that the simulator needs."""

    @property
    def later_launch_ns(self) -> int: ...
    def cost(self, signature: Signature) -> Cost: ...


@dataclass(frozen=True)
class _Operation:
    """A collective definition, checked."""

    rank: int
    number: int
    index: int
    op: str
    count: int
    bytes: int
    dtype: str
    redop: str
    root: int
    peers: tuple[tuple[str, int, int], ...]
    """Of a group or stores: ("send" | "recv", member index, bytes)."""
    eager: bool = False
    """Stores that wait for no receiver."""
    parts: tuple[_Operation, ...] = ()
    """Of several collectives in one launch."""

    @property
    def agreed(self) -> tuple[Any, ...]:
        """What all members must say alike."""
        return self.op, self.bytes, self.dtype, self.redop, self.root, *(part.agreed for part in self.parts)

    @property
    def is_signals(self) -> bool:
        """Nothing but signals, whose times do not depend on who gets them."""
        return self.op == "stores" and not any(size for _direction, _peer, size in self.peers)

    @property
    def asked(self) -> Asked:
        """Of the planner."""
        return Asked(self.op, self.bytes, (self.dtype, self.redop), self.root)

    def call(self, ranks: Sequence[int]) -> str:
        """In words; `ranks` are those of the communicator."""
        if self.parts:
            calls = Counter(part.call(ranks) for part in self.parts)
            return "a group of " + ", ".join(f"{count} times {call}" for call, count in calls.items())
        redop = f", {self.redop}" if self.redop else ""
        root = f", root rank {ranks[self.root]}" if self.op in _WITH_ROOT else ""
        return f"{self.op} of {self.count:,} {self.dtype} ({self.bytes:,} bytes){redop}{root}"

    @classmethod
    def read(cls, rank: int, number: int, index: int, size: int, fields: Fields) -> _Operation:
        op = fields.text("op")
        if op == "several":
            parts = tuple(cls.read(rank, number, index, size, part) for part in fields.maps("parts"))
            return cls._of_parts(parts)
        if op not in (*_POINT_TO_POINT, *COLLECTIVE_OPS):
            known = (*COLLECTIVE_OPS, *_POINT_TO_POINT, "several")
            raise ProtocolError(f"collective {op!r}, not one of {', '.join(known)}")
        return cls(
            rank,
            number,
            index,
            op,
            fields.integer("count", 0, MAX_BYTES, 0),
            fields.integer("bytes", 0, MAX_BYTES, 0 if op in _POINT_TO_POINT else None),
            fields.text("dtype", ""),
            fields.text("redop", ""),
            fields.integer("root", 0, size - 1, 0),
            tuple(_peer(item, size) for item in fields.items("peers")) if op in _POINT_TO_POINT else (),
            op == "stores" and fields.integer("eager", 0, 1) == 1,
        )

    @classmethod
    def _of_parts(cls, parts: tuple[_Operation, ...]) -> _Operation:
        """Parts of one kind look like one operation of that kind to reports."""
        if not parts or any(part.op not in COLLECTIVE_OPS for part in parts):
            raise ProtocolError(f"several collectives with the parts {[part.op for part in parts]}")
        first = parts[0]
        is_alike = all((part.op, part.dtype, part.redop) == (first.op, first.dtype, first.redop) for part in parts)
        op, dtype = (first.op, first.dtype) if is_alike else ("several", "")
        count, size_bytes = sum(part.count for part in parts), sum(part.bytes for part in parts)
        return cls(first.rank, first.number, first.index, op, count, size_bytes, dtype, first.redop, 0, (), parts=parts)


@dataclass
class Communicator:
    """Members that have said so, by index."""

    number: int
    size: int
    data: int
    name: str
    """As the framework calls it, if it does."""
    told: tuple[int, ...] = ()
    """Global ranks in member order, if its first member could tell."""
    members: dict[int, tuple[int, Device]] = field(default_factory=dict)
    """Index → (global rank, device)."""
    waiting: list[_Operation] = field(default_factory=list)
    """Operations that came before all members had."""

    @property
    def is_complete(self) -> bool:
        return len(self.members) == self.size

    @property
    def ranks(self) -> tuple[int, ...]:
        """Global ranks in member order, of a complete one, or one whose members know one another."""
        return self.told or tuple(self.members[index][0] for index in range(self.size))

    @property
    def absent(self) -> list[int]:
        """Members, by index, that have not said so."""
        return [index for index in range(self.size) if index not in self.members]

    @property
    def sharing(self) -> list[list[int]]:
        """Global ranks that use one GPU, a list for each GPU that several use."""
        users: defaultdict[Device, list[int]] = defaultdict(list)
        for rank, device in self.members.values():
            users[device].append(rank)
        return [sorted(ranks) for ranks in users.values() if len(ranks) > 1]

    @property
    def text(self) -> str:
        """For people."""
        return f"communicator {self.where}"

    @property
    def where(self) -> str:
        ranks = self.told or [self.members[index][0] for index in range(self.size) if index in self.members]
        return f"{self.name or self.number} ({named_ranks(ranks)})"

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(self.members[index][1] for index in range(self.size))


@dataclass
class HostGroup:
    """Hosts that meet, by index."""

    number: int
    size: int
    what: str
    ranks: list[int]
    """All global ranks, by index; empty if they are not known."""
    members: dict[int, int] = field(default_factory=dict)
    """Index → global rank, of those that have said so."""

    @property
    def absent(self) -> list[int]:
        """Members, by index, that have not said so."""
        return [index for index in range(self.size) if index not in self.members]

    @property
    def text(self) -> str:
        """For people."""
        return "the set-up of an NCCL communicator" if self.what == "comm_init" else self.what.replace(":", " ")


class Definitions:
    """All definitions of one job."""

    def __init__(
        self,
        cluster: Cluster,
        placements: Sequence[Placement],
        engine: CostEngine,
        planner: CollectivePlanner,
        simulation: Simulation,
        catalogue: Catalogue,
    ) -> None:
        self._cluster = cluster
        self._placements = placements
        self._engine = engine
        self._simulation = simulation
        self._catalogue = catalogue
        self._planner = planner
        self._kernels: dict[tuple[Signature, float], KernelInfo] = {}
        self._slowdowns = [cluster.slowdown(Device(place.node, place.local_rank)) for place in placements]
        """Per rank: of a straggler's kernels, else 1."""
        self.communicators: dict[int, Communicator] = {}
        self.refused: list[str] = []
        """What NCCL would not have let the ranks do."""
        """By the core's number."""
        self.host_groups: dict[int, HostGroup] = {}
        """By the core's number."""
        self._comms: dict[bytes, Communicator] = {}
        self._comms_by_data: dict[int, Communicator] = {}
        self._member_of: list[dict[int, tuple[Communicator, int]]] = [{} for _ in placements]
        self._host_groups: dict[bytes, HostGroup] = {}
        self._keys: dict[tuple[Any, ...], int] = {}
        self._incomplete: defaultdict[int, int] = defaultdict(int)
        self.streams: list[dict[int, int]] = [{} for _ in placements]
        """Per rank: stream → device."""
        self._define: dict[str, Callable[[int, Fields], None]] = {
            "kernel": self._define_kernel,
            "collective": self._define_collective,
            "comm": self._define_comm,
            "comm_abort": self._abort_comm,
            "stream": self._define_stream,
            "host_group": self._define_host_group,
            "lane": lambda rank, fields: None,
        }

    def define(self, rank: int, payload: bytes) -> None:
        """Takes one DEFINE payload. Raises ProtocolError."""
        fields = Fields.decode(payload, "DEFINE")
        kind = fields.text("t")
        if kind not in self._define:
            raise ProtocolError(f"DEFINE of kind {kind!r}, not one of {', '.join(sorted(self._define))}")
        try:
            self._define[kind](rank, fields)
        except (ValueError, OverflowError) as error:  # from the core, a planner or an engine
            if isinstance(error, ProtocolError):
                raise
            raise ProtocolError(f"DEFINE of a {kind}: {error}") from error

    def is_incomplete(self, rank: int) -> bool:
        """Whether a collective of the rank still waits for members of its communicator."""
        return self._incomplete[rank] > 0

    def communicator(self, data: int) -> Communicator | None:
        """The communicator whose DATA frames carry `data`."""
        return self._comms_by_data.get(data)

    @property
    def world_size(self) -> int:
        return len(self._placements)

    def incomplete_communicators(self, rank: int) -> list[Communicator]:
        """Those that the rank has called a collective on before all members had come."""
        return [comm for comm in self._comms.values() if any(op.rank == rank for op in comm.waiting)]

    def _define_stream(self, rank: int, fields: Fields) -> None:
        stream, device = fields.integer("id"), self._device(rank, fields)
        if device.local not in self.streams[rank].values():
            self._simulation.define_device(rank, device.local, *self._cluster.overlap_slowdown)
        self._simulation.define_stream(rank, stream, device.local)
        self.streams[rank][stream] = device.local

    def _define_kernel(self, rank: int, fields: Fields) -> None:
        number = self._new_id(fields, self._catalogue.kernels[rank])
        try:
            signature = Signature.from_definition(fields.table)
        except SignatureError as error:
            raise ProtocolError(str(error)) from error
        slowdown = self._slowdowns[rank]
        info = self._kernels.get((signature, slowdown))
        if info is None:
            info = self._kernels[signature, slowdown] = self._kernel_info(signature, slowdown)
        later_ns = min(self._engine.later_launch_ns, info.duration_ns)
        self._simulation.define_kernel(rank, number, info.duration_ns, later_ns, info.share)
        self._catalogue.add_kernel(rank, number, info)

    def _kernel_info(self, signature: Signature, slowdown: float) -> KernelInfo:
        cost = self._engine.cost(signature)
        return KernelInfo(
            op=signature.op,
            kernel=signature.kernel,
            shapes=" ".join(f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]" for tensor in signature.tensors),
            engine=cost.engine,
            kind=cost.kind,
            guessed=cost.guessed,
            duration_ns=round(cost.duration_ns * slowdown),
            share=occupancy.share(signature, cost.busy_ns, cost.duration_ns, self._cluster.gpu.sm_count),
            lookup=Lookup.of(signature),
            fused=signature.fused,
            doubt=cost.doubt,
        )

    def _define_comm(self, rank: int, fields: Fields) -> None:
        number = self._new_id(fields, self._member_of[rank])
        uid, size = fields.blob("uid"), fields.integer("size", 1, MAX_RANKS)
        data = fields.integer("data", -(2**63), 2**64 - 1) % 2**64  # packed as a signed number of the same bits, too
        index, name = fields.integer("index", 0, size - 1), fields.text("name", "")
        device, told = self._device(rank, fields), self._told(rank, index, size, fields)
        comm = self._comms.get(uid)
        if comm is None:
            if data in self._comms_by_data:
                raise ProtocolError(f"two communicators have the DATA number {data}")
            comm = Communicator(len(self._comms) + 1, size, data, name, told)
            self._simulation.define_comm(comm.number, size)
            self._comms[uid] = self._comms_by_data[data] = self.communicators[comm.number] = comm
        if (comm.size, comm.data, comm.told) != (size, data, told):
            raise ProtocolError(
                f"communicator of {size} members with DATA number {data} and ranks {list(told)}, "
                f"but its other members say {comm.size}, {comm.data} and {list(comm.told)}"
            )
        if index in comm.members:
            raise ProtocolError(f"rank {comm.members[index][0]} is already member {index} of the communicator")
        comm.members[index] = (rank, device)
        self._member_of[rank][number] = (comm, index)
        if comm.is_complete:
            self.refused += [f"{named_ranks(ranks)} use one GPU in {comm.text}" for ranks in comm.sharing]
            self._resolve(comm)

    def _told(self, rank: int, index: int, size: int, fields: Fields) -> tuple[int, ...]:
        ranks = fields.items("ranks", [])
        known = all(type(member) is int and 0 <= member < self.world_size for member in ranks)
        if ranks and not (known and len(ranks) == size and ranks[index] == rank):
            raise ProtocolError(f"communicator with ranks {ranks!r:.80}, not {size} with rank {rank} at {index}")
        return tuple(ranks)

    def _abort_comm(self, rank: int, fields: Fields) -> None:
        number = fields.integer("id", 1, MAX_DEFINITIONS)
        if number not in self._member_of[rank]:
            raise ProtocolError(f"abort of communicator {number}, which was not defined")
        comm, index = self._member_of[rank][number]
        self._simulation.define_abort(rank, number, comm.number, index)

    def _define_collective(self, rank: int, fields: Fields) -> None:
        local = fields.integer("comm")
        if local not in self._member_of[rank]:
            raise ProtocolError(f"collective on communicator {local}, which was not defined")
        comm, index = self._member_of[rank][local]
        number = self._new_id(fields, self._catalogue.collectives[rank])
        operation = _Operation.read(rank, number, index, comm.size, fields)
        for part in operation.parts or (operation,):
            self._catalogue.lookups[rank].collective(part.op, part.bytes, part.dtype, index)
        if comm.is_complete or (comm.told and operation.is_signals):
            self._plan(comm, operation)
        else:
            self._incomplete[rank] += 1
            comm.waiting.append(operation)

    def _resolve(self, comm: Communicator) -> None:
        waiting, comm.waiting = comm.waiting, []
        for operation in waiting:
            self._incomplete[operation.rank] -= 1
            self._plan(comm, operation)

    def _plan(self, comm: Communicator, operation: _Operation) -> None:
        plan = {"group": self._plan_group, "stores": self._plan_stores}.get(operation.op, self._plan_operation)
        info = plan(comm, operation)
        self._catalogue.add_collective(operation.rank, operation.number, info)

    def _plan_operation(self, comm: Communicator, operation: _Operation) -> CollectiveInfo:
        plan = self._planner.several(comm.devices, [part.asked for part in operation.parts or (operation,)])
        key = self._keys.setdefault(operation.agreed, len(self._keys))
        self._simulation.define_collective(
            operation.rank, operation.number, comm.number, operation.index, key, plan.activity
        )
        return CollectiveInfo(
            operation.op,
            operation.bytes,
            operation.dtype,
            comm.ranks,
            plan.algorithm,
            plan.protocol,
            operation.call(comm.ranks),
            (plan,) if operation.index == 0 else (),
        )

    def _plan_group(self, comm: Communicator, operation: _Operation) -> CollectiveInfo:
        here = comm.members[operation.index][1]
        sent = [(peer, size_bytes) for direction, peer, size_bytes in operation.peers if direction == "send"]
        targets = [(comm.members[peer][1], size_bytes) for peer, size_bytes in sent]
        plans = self._planner.transfers(comm.devices, here, targets)
        sends = [(peer, size_bytes, plan.activity) for (peer, size_bytes), plan in zip(sent, plans, strict=True)]
        receives = [(peer, size_bytes) for direction, peer, size_bytes in operation.peers if direction == "recv"]
        self._simulation.define_group(operation.rank, operation.number, comm.number, operation.index, sends, receives)
        peers = tuple((direction, comm.members[peer][0], size) for direction, peer, size in operation.peers)
        total = sum(size for _direction, _peer, size in peers)
        call = f"{len(peers)} sends and receives"
        return CollectiveInfo("group", total, operation.dtype, comm.ranks, "p2p", "Simple", call, plans, peers)

    def _plan_stores(self, comm: Communicator, operation: _Operation) -> CollectiveInfo:
        here = comm.members[operation.index][1]
        sent = [(peer, size_bytes) for direction, peer, size_bytes in operation.peers if direction == "send"]
        receives = [(peer, size_bytes) for direction, peer, size_bytes in operation.peers if direction == "recv"]
        plans = tuple(self._planner.store(here, comm.members[peer][1] if size else here, size) for peer, size in sent)
        sends = [(peer, size, plan.activity) for (peer, size), plan in zip(sent, plans, strict=True)]
        self._simulation.define_group(
            operation.rank, operation.number, comm.number, operation.index, sends, receives, eager=operation.eager
        )
        peers = tuple((direction, comm.ranks[peer], size) for direction, peer, size in operation.peers)
        total = sum(size for _direction, _peer, size in operation.peers)
        call = f"{len(sends)} stores, and waits for {len(receives)}"
        return CollectiveInfo("stores", total, "", comm.ranks, "store", "store", call, plans, peers)

    def _define_host_group(self, rank: int, fields: Fields) -> None:
        number, uid, what = fields.integer("id", 1, MAX_DEFINITIONS), fields.blob("uid"), fields.text("what")
        size = fields.integer("size", 1, MAX_RANKS)
        index = fields.integer("index", 0, size - 1)
        ranks = fields.items("ranks", [])
        if not all(type(member) is int and 0 <= member < self.world_size for member in ranks):
            raise ProtocolError(f"host group with ranks {ranks!r:.80}, not of the {self.world_size} of the job")
        group = self._host_groups.get(uid) or HostGroup(len(self._host_groups) + 1, size, what, ranks)
        self._simulation.define_host_group(rank, number, group.number, size, host_group_cost_ns(what, size))
        self._host_groups[uid] = self.host_groups[group.number] = group
        group.members[index] = rank

    def _new_id(self, fields: Fields, known: dict[int, Any]) -> int:
        number = fields.integer("id", 1, MAX_DEFINITIONS)
        if number in known:
            raise ProtocolError(f"{fields.text('t')} {number} was defined before")
        return number

    def _device(self, rank: int, fields: Fields) -> Device:
        device = self._placements[rank].device(fields.integer("device"))
        if device.local >= self._cluster.node.gpus:
            raise ProtocolError(f"device {device.local} on a node of {self._cluster.node.gpus} GPUs")
        return device


def _peer(item: Any, size: int) -> tuple[str, int, int]:
    if isinstance(item, list) and len(item) == 3:
        direction, peer, size_bytes = item
        numbers_fit = type(peer) is type(size_bytes) is int and 0 <= peer < size and 0 <= size_bytes <= MAX_BYTES
        if direction in ("send", "recv") and numbers_fit:
            return direction, peer, size_bytes
    raise ProtocolError(f"group with peer {item!r:.80}, not ['send' or 'recv', member below {size}, bytes]")
