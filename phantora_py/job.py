"""One simulated job: takes the ranks' frames, drives the core, hands replies out. Knows nothing of sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from phantora_netsim import Network, Simulation
from phantora_py.catalogue import Catalogue
from phantora_py.cluster import Cluster
from phantora_py.collectives import CollectivePlanner
from phantora_py.definitions import CostEngine, Definitions
from phantora_py.diagnosis import Diagnosis, Whereabouts
from phantora_py.farewell import Farewell
from phantora_py.fields import Fields
from phantora_py.frames import FrameType, ProtocolError, correction, questions, reply
from phantora_py.mail import Mail
from phantora_py.outbox import Outbox
from phantora_py.placement import Placement
from phantora_py.rank_list import ending
from phantora_py.topology import Topology

if TYPE_CHECKING:
    from phantora_netsim._core import Marks, Reply, Timeline

_PUMPS_PER_DRAIN = 256
"""Committed history is handed on once in so many advances: often enough for bounded memory, seldom enough for speed."""


class Observer(Protocol):
    """Takes committed history, in commit order; how it is cut into pieces must not matter."""

    def observe(self, timeline: Timeline, marks: Marks) -> None: ...


class JobError(Exception):
    """The job cannot go on; the message is for the user."""


class Job:
    def __init__(
        self,
        cluster: Cluster,
        placements: Sequence[Placement],
        engine: CostEngine,
        outbox: Outbox,
    ) -> None:
        network = Network()
        self.topology = Topology(cluster, network)
        planner = CollectivePlanner(self.topology)
        self.cluster = cluster
        self.placements = placements
        self.catalogue = Catalogue(len(placements))
        self.farewells: dict[int, Farewell] = {}
        self.observers: list[Observer] = []
        self.speculated_answers = 0
        self._simulation = Simulation(len(placements), network)
        self.definitions = Definitions(cluster, placements, engine, planner, self._simulation, self.catalogue)
        self._diagnosis = Diagnosis(self._simulation, self.definitions, self.catalogue)
        self._outbox = outbox
        self._mail = Mail(self.definitions, outbox)
        self._held: dict[int, list[bytes]] = {}
        self._closing: set[int] = set()
        self._closed: set[int] = set()
        self._asked: list[dict[int, int]] = [{} for _ in placements]
        """Per rank: requests without an answer, with their lanes."""
        self._outside: dict[int, str] = {}
        """By rank: what its main thread waits for where the simulator cannot see it."""
        self._pumps = 0

    @property
    def world_size(self) -> int:
        return len(self.placements)

    @property
    def closed_ranks(self) -> frozenset[int]:
        """Ranks that have ended."""
        return frozenset(self._closed | self._closing)

    @property
    def corrected_answers(self) -> int:
        return self._simulation.corrected_replies

    def clock_ns(self, rank: int) -> int:
        """The rank's main host clock, as far as it is final."""
        return self._simulation.clock_ns(rank)

    def frame(self, rank: int, kind: int, payload: bytes) -> None:
        """Takes one frame of a rank. Raises ProtocolError; nothing of the frame has an effect then."""
        if rank in self.farewells:
            return  # other threads of a process that exits may still be talking; it no longer matters
        if kind == FrameType.BATCH:
            self._batch(rank, payload)
        elif kind == FrameType.DEFINE:
            self.definitions.define(rank, payload)
            self._release()
            self._mail.collect()
        elif kind == FrameType.DATA:
            self._mail.carry(rank, payload)
        elif kind == FrameType.OUTSIDE:
            self._go_outside(rank, Fields.decode(payload, "OUTSIDE").text("what"))
        elif kind == FrameType.BYE:
            self.farewells[rank] = Farewell.read(payload)
        else:
            raise ProtocolError(f"a frame of type {kind}, which ranks do not send at this point")

    def close(self, rank: int) -> None:
        """The rank's process has ended or will send nothing more."""
        if rank in self._closed:
            return
        self._asked[rank].clear()
        self._outside.pop(rank, None)
        if rank in self._held:
            self._closing.add(rank)
        else:
            self._closed.add(rank)
            self._simulation.close_rank(rank)

    def pump(self) -> None:
        """Commits what has become certain and answers it. Raises JobError if ranks disagree, or NCCL refuses."""
        if self.definitions.refused:
            raise JobError(
                "; ".join(self.definitions.refused) + ", which NCCL refuses\n  hint: does the script call "
                "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before its first collective?"
            )
        self._answer(self._simulation.advance())
        if self._simulation.disagrees:
            self.check_agreement()
        self._pumps += 1
        if self._pumps % _PUMPS_PER_DRAIN == 0:
            self._drain()

    def speculate(self) -> bool:
        """At quiescence: answers the earliest waiting request from a speculation. False if nothing can move."""
        replies = self._simulation.speculate()
        self._answer(replies)
        return bool(replies)

    def is_waiting(self) -> bool:
        """Whether some rank waits for an answer, or all wait where nobody can come any more."""
        return any(self._asked) or (bool(self._outside) and self.is_at_an_end())

    def is_at_an_end(self) -> bool:
        """Whether each rank has ended or its main thread waits for an answer, or for other ranks."""
        return all(
            rank in self.closed_ranks or 0 in asked.values() or rank in self._outside
            for rank, asked in enumerate(self._asked)
        )

    def check_agreement(self) -> None:
        """Raises JobError if those who take part in a collective or a message have asked for different things."""
        disagreements = self._diagnosis.disagreements()
        if disagreements:
            raise JobError(
                "ranks disagree on what they do together, which would hang or corrupt data on real GPUs\n  "
                + "\n  ".join(disagreements)
                + "\n  hint: members of a communicator must call the same operations, of the same sizes, in one order"
            )

    def diagnosis(self, exit_codes: Mapping[int, int]) -> str:
        """Who waits for what, for a job in which nothing can move."""
        ended = {
            rank: f"has ended ({ending(exit_codes[rank])})" if rank in exit_codes else "has ended"
            for rank in sorted(self.closed_ranks)
        }
        asking = frozenset(rank for rank, asked in enumerate(self._asked) if asked)
        return "\n  ".join(self._diagnosis.stuck(Whereabouts(asking, self._outside, ended)))

    def finish(self) -> None:
        """Every rank has ended: commits all that can still happen and hands it to the observers."""
        self._held.clear()
        for rank in range(self.world_size):
            self.close(rank)
        self._answer(self._simulation.advance())
        self._drain()

    def _batch(self, rank: int, payload: bytes) -> None:
        if rank in self._held or self.definitions.is_incomplete(rank):
            self._held.setdefault(rank, []).append(payload)
        else:
            self._feed(rank, payload)
        self._asked[rank].update(questions(payload))
        self._outside.pop(rank, None)

    def _feed(self, rank: int, payload: bytes) -> None:
        try:
            self._simulation.feed(rank, payload)
        except ValueError as error:
            raise ProtocolError(f"BATCH: {error}") from error

    def _release(self) -> None:
        """Feeds what was held back of ranks whose collectives are all planned now."""
        for rank in [rank for rank in self._held if not self.definitions.is_incomplete(rank)]:
            for payload in self._held.pop(rank):
                try:
                    self._feed(rank, payload)
                except ProtocolError as error:
                    self._outbox.refuse(rank, str(error))
                    break
            if rank in self._closing:
                self._closing.remove(rank)
                self.close(rank)

    def _answer(self, replies: Sequence[Reply]) -> None:
        for change in self._simulation.take_corrections():
            self._outbox.send(change.rank, correction(change.request, change.value))
        for answer in replies:
            self.speculated_answers += answer.speculated
            self._asked[answer.rank].pop(answer.request, None)
            self._outbox.send(answer.rank, reply(answer.request, answer.value, speculated=answer.speculated))

    def _go_outside(self, rank: int, what: str) -> None:
        if what:
            self._outside[rank] = what
        else:
            self._outside.pop(rank, None)

    def _drain(self) -> None:
        timeline, marks = self._simulation.take_timeline(), self._simulation.take_marks()
        for observer in self.observers:
            observer.observe(timeline, marks)
