"""The cables of each kind of fabric, from the NICs on: two names and a rate."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

import networkx

from phantora_py.fabric.sections import (
    DragonflyFabric,
    FatTreeFabric,
    GraphFabric,
    LeafSpineFabric,
    RailFabric,
    SwitchFabric,
    TorusFabric,
)


class FabricError(ValueError):
    """A fabric that cannot be; the message ends in a hint."""


class Cable(NamedTuple):
    a: str
    b: str
    bytes_per_s: float
    """A direction."""


@dataclass(frozen=True)
class Ports:
    """The NICs that a fabric joins."""

    nodes: int
    nics: int
    """A node."""
    bytes_per_s: float
    """Of one, payload."""
    payload: float
    """Share of a cable's bits that are payload."""

    @property
    def node_bytes_per_s(self) -> float:
        return self.nics * self.bytes_per_s

    def rate(self, gigabits: float | None, default_bytes_per_s: float) -> float:
        return default_bytes_per_s if gigabits is None else gigabits * 1e9 / 8 * self.payload

    def cables(self, node: int, switch: str) -> Iterator[Cable]:
        """All NICs of a node at one switch."""
        return (Cable(nic_name(node, nic), switch, self.bytes_per_s) for nic in range(self.nics))


def nic_name(node: int, nic: int) -> str:
    return f"node{node}.nic{nic}"


@singledispatch
def lay(fabric: object, ports: Ports) -> Iterator[Cable]:
    """The fabric's cables, as its kind has them. Raises FabricError."""
    raise TypeError(f"no cables are known for {fabric!r}")


@lay.register
def _(_: SwitchFabric, ports: Ports) -> Iterator[Cable]:
    for node in range(ports.nodes):
        yield from ports.cables(node, "switch")


@lay.register
def _(fabric: RailFabric, ports: Ports) -> Iterator[Cable]:
    leaves = math.ceil(ports.nodes / fabric.nodes_per_leaf)
    below = min(fabric.nodes_per_leaf, ports.nodes) * ports.bytes_per_s
    for rail, leaf in itertools.product(range(ports.nics), range(leaves)):
        name = f"rail{rail}.leaf{leaf}"
        first = leaf * fabric.nodes_per_leaf
        for node in range(first, min(first + fabric.nodes_per_leaf, ports.nodes)):
            yield Cable(nic_name(node, rail), name, ports.bytes_per_s)
        yield from _uplinks(name, "spine", fabric.spines, below / fabric.oversubscription)


@lay.register
def _(fabric: LeafSpineFabric, ports: Ports) -> Iterator[Cable]:
    below = min(fabric.nodes_per_leaf, ports.nodes) * ports.node_bytes_per_s
    for leaf in range(math.ceil(ports.nodes / fabric.nodes_per_leaf)):
        yield from _leaf(f"leaf{leaf}", leaf * fabric.nodes_per_leaf, fabric.nodes_per_leaf, ports)
        yield from _uplinks(f"leaf{leaf}", "spine", fabric.spines, below / fabric.oversubscription)


@lay.register
def _(fabric: FatTreeFabric, ports: Ports) -> Iterator[Cable]:
    below = min(fabric.nodes_per_leaf, ports.nodes) * ports.node_bytes_per_s
    leaves = math.ceil(ports.nodes / fabric.nodes_per_leaf)
    for leaf in range(leaves):
        name = f"pod{leaf // fabric.leaves_per_pod}.leaf{leaf % fabric.leaves_per_pod}"
        spine = f"pod{leaf // fabric.leaves_per_pod}.spine"
        yield from _leaf(name, leaf * fabric.nodes_per_leaf, fabric.nodes_per_leaf, ports)
        yield from _uplinks(name, spine, fabric.spines_per_pod, below / fabric.oversubscription)
    upward = fabric.leaves_per_pod * below / fabric.oversubscription / fabric.spines_per_pod
    for pod, spine_number in itertools.product(
        range(math.ceil(leaves / fabric.leaves_per_pod)), range(fabric.spines_per_pod)
    ):
        cores = f"core{spine_number}."
        up = upward / fabric.core_oversubscription
        yield from _uplinks(f"pod{pod}.spine{spine_number}", cores, fabric.cores_per_spine, up)


@lay.register
def _(fabric: DragonflyFabric, ports: Ports) -> Iterator[Cable]:
    below = fabric.nodes_per_router * ports.node_bytes_per_s
    groups = math.ceil(ports.nodes / fabric.nodes_per_router / fabric.routers_per_group)
    routers = range(fabric.routers_per_group)
    for node in range(ports.nodes):
        group, router = divmod(node // fabric.nodes_per_router, fabric.routers_per_group)
        yield from ports.cables(node, f"group{group}.router{router}")
    for group in range(groups):
        for a, b in itertools.combinations(routers, 2):
            ends = (f"group{group}.router{a}", f"group{group}.router{b}")
            yield Cable(*ends, ports.rate(fabric.local_Gbps, below))
    next_router = [0] * groups
    for _, a, b in itertools.product(range(fabric.cables_per_group_pair), range(groups), range(groups)):
        if a < b:
            from_, to = (f"group{group}.router{next_router[group] % len(routers)}" for group in (a, b))
            yield Cable(from_, to, ports.rate(fabric.global_Gbps, below))
            next_router[a] += 1
            next_router[b] += 1


@lay.register
def _(fabric: TorusFabric, ports: Ports) -> Iterator[Cable]:
    places = list(itertools.product(*(range(length) for length in fabric.dimensions)))
    if len(places) < ports.nodes:
        raise FabricError(
            f"fabric.dimensions: {list(fabric.dimensions)} has room for {len(places)} nodes, not {ports.nodes}\n"
            "  hint: the product of the dimensions must be the number of nodes or more"
        )
    for node in range(ports.nodes):
        yield from ports.cables(node, _router(places[node]))
    rate = ports.rate(fabric.link_Gbps, ports.node_bytes_per_s)
    for place in places:
        for axis, length in enumerate(fabric.dimensions):
            if length > 2 or (length == 2 and place[axis] == 0):
                neighbour = (*place[:axis], (place[axis] + 1) % length, *place[axis + 1 :])
                yield Cable(_router(place), _router(neighbour), rate)


@lay.register
def _(fabric: GraphFabric, ports: Ports) -> Iterator[Cable]:
    for a, b, gigabits in fabric.cables or _read_graph(fabric.file or ""):
        if a == b:
            raise FabricError(f"fabric: a cable joins {a!r} to itself\n  hint: give it two different ends")
        rate = ports.rate(gigabits, 0)
        for start, end in itertools.product(_nics(a, ports), _nics(b, ports)):
            yield Cable(start, end, rate)


def _leaf(name: str, first: int, nodes: int, ports: Ports) -> Iterator[Cable]:
    for node in range(first, min(first + nodes, ports.nodes)):
        yield from ports.cables(node, name)


def _uplinks(switch: str, above: str, count: int, bytes_per_s: float) -> Iterator[Cable]:
    """From a switch to each of `count` above it, which share the rate."""
    return (Cable(switch, f"{above}{number}", bytes_per_s / count) for number in range(count))


def _router(place: tuple[int, ...]) -> str:
    return "router" + ".".join(map(str, place))


_LIKE_A_NODE = re.compile(r"node\d")
_NODE_OR_NIC = re.compile(r"node(0|[1-9]\d{0,5})(?:\.nic(0|[1-9]\d{0,5}))?", re.ASCII)


def _nics(name: str, ports: Ports) -> list[str]:
    """What a name of a graph stands for: NICs of the cluster, or a switch. Raises FabricError."""
    if not name.strip():
        raise FabricError(f"fabric: a cable ends at {name!r}\n  hint: every switch needs a name")
    if not _LIKE_A_NODE.match(name):
        return [name]
    found = _NODE_OR_NIC.fullmatch(name)
    if found is None or int(found[1]) >= ports.nodes or int(found[2] or 0) >= ports.nics:
        last = ports.nodes - 1
        raise FabricError(
            f"fabric: a cable ends at {name!r}, which is no node or NIC of the cluster\n"
            f"  hint: from node0 to node{last}, from node0.nic0 to {nic_name(last, ports.nics - 1)}; "
            "the name of a switch must not begin so"
        )
    if found[2] is not None:
        return [name]
    return [nic_name(int(found[1]), nic) for nic in range(ports.nics)]


def _read_graph(file: str) -> Iterator[tuple[str, str, float]]:
    try:
        graph = networkx.read_graphml(file)
    except (OSError, networkx.NetworkXError, ValueError, KeyError, SyntaxError) as error:
        raise FabricError(f"fabric.file: cannot read {file!r}: {error}\n  hint: it must be a GraphML file") from error
    for a, b, attributes in graph.edges(data=True):
        rate = attributes.get("bandwidth_Gbps")
        if not isinstance(rate, int | float) or not 1e-3 <= rate <= 100_000:
            raise FabricError(
                f"fabric.file: the edge {a} - {b} of {file!r} has bandwidth_Gbps = {rate!r}\n"
                "  hint: every edge needs a number from 0.001 to 100,000"
            )
        yield str(a), str(b), float(rate)
