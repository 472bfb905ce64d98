"""Why a job cannot go on, in the job's own words: which ranks wait for which call of which communicator, what they call
there, and where the ranks are that have not come."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phantora_netsim import Simulation
from phantora_py.catalogue import Catalogue
from phantora_py.definitions import Definitions
from phantora_py.rank_list import PARTS_SHOWN, named_ranks

if TYPE_CHECKING:
    from phantora_netsim._core import Disagreement, Obstacle

_DISAGREEMENTS_SHOWN = 4
_FURTHER_COMMUNICATOR = re.compile(r"//cuda//[1-9]\d*'")
"""Ends the key under which PyTorch's process group hands out the id of any NCCL communicator after its first."""

_ROOM = "room for the next signal"
"""In the name of a channel by which who waits for a signal tells that it is taken."""

_CONDITION = re.compile("conditional node of a CUDA graph")
"""In what the runtime says that a launch of such a graph waits for."""


@dataclass
class Whereabouts:
    """What is known of the ranks besides their records."""

    asking: frozenset[int]
    """Those that wait for an answer."""
    outside: Mapping[int, str]
    """What they wait for where the simulator cannot see it."""
    ended: Mapping[int, str]
    """How they have ended."""


@dataclass(frozen=True)
class _Wait:
    """Why a rank stands still, and for whom."""

    text: str
    lacks: tuple[int, ...]
    """Ranks that have to do something first."""


class Diagnosis:
    def __init__(self, simulation: Simulation, definitions: Definitions, catalogue: Catalogue) -> None:
        self._simulation = simulation
        self._definitions = definitions
        self._catalogue = catalogue

    def disagreements(self) -> list[str]:
        """Collectives, and messages, that are not the same for all who take part; the smallest side, which is the one
        that is wrong if anyone is, comes first."""
        found = self._simulation.disagreements()
        texts = [self._disagreement(each) for each in found[:_DISAGREEMENTS_SHOWN]]
        if len(found) > _DISAGREEMENTS_SHOWN:
            texts.append(f"and {len(found) - _DISAGREEMENTS_SHOWN} more")
        return texts

    def stuck(self, where: Whereabouts) -> list[str]:
        """Where each rank stands, for a job in which nothing can move; who is to blame, if certain, comes last."""
        waits, since_ns = self._waits(where.asking)
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for rank in sorted(waits):
            for wait in waits[rank]:
                groups[wait.text].append(rank)
        lines = []
        for text, ranks in groups.items():
            first_ns = min((since_ns[rank] for rank in ranks if rank in since_ns), default=None)
            since = "" if first_ns is None else f", since {first_ns / 1e9:.6f} s,"
            lines.append(f"{named_ranks(ranks)} {'waits' if len(ranks) == 1 else 'wait'}{since} for {text}")
        lines += self._streams(waits)
        lines += _elsewhere(where, set(waits), self._definitions.world_size)
        return lines + _verdict(waits, where) + _remedies(where)

    # --- disagreements

    def _disagreement(self, found: Disagreement) -> str:
        sides = sorted(found.sides, key=len)
        if found.is_message:
            sender, receiver = found.sides[0][0], found.sides[1][0]
            return (
                f"message {found.sequence} from rank {sender[1]} to rank {receiver[1]} "
                f"on {self._comm(found.comm)}:\n    "
                f"rank {sender[1]} sends {self._message(sender[1], sender[2], 'send', receiver[1])}, "
                f"rank {receiver[1]} receives {self._message(receiver[1], receiver[2], 'recv', sender[1])}"
            )
        calls = [
            f"{named_ranks(rank for _member, rank, _definition in side)} {'calls' if len(side) == 1 else 'call'} "
            f"{self._call(side[0][1], side[0][2])}"
            for side in sides
        ]
        return f"collective {found.sequence} of {self._comm(found.comm)}:\n    " + "\n    ".join(calls)

    def _call(self, rank: int, definition: int) -> str:
        return self._catalogue.collectives[rank][definition].call

    def _message(self, rank: int, definition: int, direction: str, peer: int) -> str:
        sizes = {
            size
            for sends, other, size in self._catalogue.collectives[rank][definition].peers
            if (sends, other) == (direction, peer)
        }
        return " or ".join(f"{size:,} bytes" for size in sorted(sizes))

    # --- waits

    def _waits(self, asking: frozenset[int]) -> tuple[dict[int, list[_Wait]], dict[int, int]]:
        """By rank: what it waits for, each once; and since when it has."""
        waits: defaultdict[int, list[_Wait]] = defaultdict(list)
        since_ns: dict[int, int] = {}
        for waiting in self._simulation.waiting():
            if waiting.rank not in asking:
                continue
            wait = self._wait(waiting.rank, waiting.obstacle)
            if waiting.launches:
                wait = _Wait(f"room in a stream's launch queue, which is full: {wait.text}", wait.lacks)
            if wait not in waits[waiting.rank]:
                waits[waiting.rank].append(wait)
            since_ns.setdefault(waiting.rank, waiting.since_ns)
        for rank in asking:
            waits[rank] += self._set_ups(rank)
        return {rank: found for rank, found in waits.items() if found}, since_ns

    def _set_ups(self, rank: int) -> list[_Wait]:
        """Communicators that the rank has called something on while other members have not even joined."""
        return [
            _Wait(f"{comm.text} to be set up: {_members_have_not_come(comm.absent)}", ())
            for comm in self._definitions.incomplete_communicators(rank)
        ]

    def _wait(self, rank: int, obstacle: Obstacle) -> _Wait:
        match obstacle.kind:
            case "collective":
                return self._collective(rank, obstacle)
            case "send" | "receive":
                return self._transfer(rank, obstacle)
            case "transfers":
                return _Wait(f"sends and receives on {self._comm(obstacle.name)}, which are under way", ())
            case "kernel":
                return _Wait("a kernel, which is under way", ())
            case "host_group":
                return self._host_group(obstacle)
            case "recording":
                return _Wait(f"CUDA event {obstacle.name}, which has not been recorded", ())
            case "lane":
                return _Wait("another of its threads, which may still act before", ())
            case _:
                return _Wait("streams of its own that wait for one another's events", ())

    def _collective(self, rank: int, obstacle: Obstacle) -> _Wait:
        ranks = self._definitions.communicators[obstacle.name].ranks
        lacking = (obstacle.absent, obstacle.gone, obstacle.busy)
        absent, gone, busy = ([ranks[member] for member in members] for members in lacking)
        call = f"collective {obstacle.sequence} of {self._comm(obstacle.name)}, {self._call(rank, obstacle.definition)}"
        reasons = []
        if obstacle.mismatched:
            reasons.append("members do not ask for the same")
        if absent:
            reasons.append(f"{named_ranks(absent)} {_has(absent)} not come")
        if gone:
            reasons.append(f"{named_ranks(gone)} {_has(gone)} aborted the communicator")
        if busy:
            reasons.append(f"{named_ranks(busy)} {_has(busy)} other work before it")
        return _Wait(f"{call}: {'; '.join(reasons) or 'it is under way'}", (*absent, *gone, *busy))

    def _transfer(self, rank: int, obstacle: Obstacle) -> _Wait:
        peer = self._definitions.communicators[obstacle.name].ranks[obstacle.peer]
        sends = obstacle.kind == "send"
        if self._catalogue.collectives[rank][obstacle.definition].is_signals:
            where = self._definitions.communicators[obstacle.name].where
            lacking = "no wait_signal has made it" if _ROOM in where else "no put_signal or barrier has given it"
            reason = lacking if obstacle.absent else f"rank {peer} has other work before it"
            return _Wait(f"signal {obstacle.sequence} of rank {peer} in {where}: {reason}", (peer,))
        size = self._message(rank, obstacle.definition, "send" if sends else "recv", peer)
        what = f"send {obstacle.sequence} to" if sends else f"receive {obstacle.sequence} from"
        if obstacle.absent:
            reason = f"the {'receive' if sends else 'send'} has not come"
        elif obstacle.gone:
            reason = f"rank {peer} has aborted the communicator"
        else:
            reason = f"rank {peer} has other work before it"
        return _Wait(f"{what} rank {peer} on {self._comm(obstacle.name)}, {size}: {reason}", (peer,))

    def _host_group(self, obstacle: Obstacle) -> _Wait:
        group = self._definitions.host_groups[obstacle.name]
        here = sorted(group.members.values())
        absent = list(obstacle.absent)
        if obstacle.unheard:
            expected = group.ranks or (range(group.size) if group.size == self._definitions.world_size else [])
            absent += [rank for rank in expected if rank not in here]
        members = f" with {named_ranks(here)}" if here else ""
        reason = f"{named_ranks(absent)} {_has(absent)} not come" if absent else _members_have_not_come(group.absent)
        return _Wait(
            f"{group.text} of {group.size} members{members}, round {obstacle.sequence}: {reason}", tuple(absent)
        )

    def _streams(self, waits: Mapping[int, list[_Wait]]) -> list[str]:
        """What streams of ranks that others wait for stand at, if their hosts do not wait for that as well."""
        lines = []
        for rank in sorted({lacked for found in waits.values() for wait in found for lacked in wait.lacks}):
            told = {wait.text for wait in waits.get(rank, [])}
            held_up = {self._wait(rank, obstacle).text for obstacle in self._simulation.held_up(rank)}
            lines += [f"rank {rank} has a stream that waits for {text}" for text in sorted(held_up - told)]
        return lines

    def _comm(self, number: int) -> str:
        return self._definitions.communicators[number].text


def _has(ranks: list[int]) -> str:
    return "has" if len(ranks) == 1 else "have"


def _members_have_not_come(members: list[int]) -> str:
    shown = ", ".join(map(str, members[:PARTS_SHOWN])) + (", …" if len(members) > PARTS_SHOWN else "")
    return f"member {shown} has not come" if len(members) == 1 else f"members {shown} have not come"


def _elsewhere(where: Whereabouts, waiting: set[int], world_size: int) -> list[str]:
    """Ranks that wait for nothing that the simulator knows of, and those that have ended; alike ones together."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for rank in range(world_size):
        if rank in where.ended:
            groups[where.ended[rank]].append(rank)
        elif rank not in waiting:
            groups[f"waits outside CUDA and NCCL, for {where.outside.get(rank, 'something that is not known')}"].append(
                rank
            )
    return [f"{named_ranks(ranks)}: {text}" for text, ranks in groups.items()]


def _verdict(waits: Mapping[int, list[_Wait]], where: Whereabouts) -> list[str]:
    """Follows who waits for whom, from the first rank that waits, to one that waits for nobody, or in a circle."""
    path: list[int] = []
    rank = min((rank for rank, found in waits.items() if any(wait.lacks for wait in found)), default=None)
    while rank is not None and rank not in path:
        path.append(rank)
        rank = min((lacked for wait in waits.get(rank, []) for lacked in wait.lacks), default=None)
    if rank is not None:
        circle = sorted(path[path.index(rank) :])
        if len(circle) == 1:
            return [f"so rank {rank} waits for itself"]
        return [f"so {named_ranks(circle)} wait for one another: they make their calls in different orders"]
    if not path:
        return []
    culprit = path[-1]
    how = "which has ended" if culprit in where.ended else "which is elsewhere"
    return [f"so it is rank {culprit}, {how}, that the others wait for"]


def _remedies(where: Whereabouts) -> list[str]:
    return _remedies_for_communicators(where) + _remedies_for_conditions(where)


def _outside_for(where: Whereabouts, what: re.Pattern[str]) -> list[int]:
    return sorted(rank for rank, text in where.outside.items() if what.search(text))


def _remedies_for_communicators(where: Whereabouts) -> list[str]:
    ranks = _outside_for(where, _FURTHER_COMMUNICATOR)
    if not ranks:
        return []
    return [
        f"hint: {named_ranks(ranks)} set up one more NCCL communicator of the group, which the others do not: a rank "
        "does so when it uses another GPU than in the group's calls before",
        'hint: docs/running.md, "Fewer ranks than GPUs on a node", has the usual cause; torch.cuda.set_device before '
        "init_process_group, CUDA_VISIBLE_DEVICES, or nodes with as many GPUs as ranks, are the usual remedies",
    ]


def _remedies_for_conditions(where: Whereabouts) -> list[str]:
    ranks = _outside_for(where, _CONDITION)
    if not ranks:
        return []
    return [
        f"hint: {named_ranks(ranks)} launched a CUDA graph whose condition (torch.cond, while_loop) hangs on others; a "
        "GPU's host would go on, here it waits for the value: let nothing that the others need come after the launch "
        '(docs/virtual_time.md, "Conditional nodes of CUDA graphs")'
    ]
