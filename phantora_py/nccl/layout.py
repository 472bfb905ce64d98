"""What an algorithm carries over which link for one byte of a collective, and the steps that it takes.

Size is nccl-tests': the whole buffer, S bytes. Over n members in N domains of k:

    ring      each member sends S (n-1)/n (all-gather, reduce-scatter), twice that (all-reduce), or S (broadcast,
              reduce). Rings pass through all members of a domain and out by a NIC to the next domain; the channels
              start at different GPUs, so that they use all NICs in turn.
    tree      two binary trees over the domains, each for one half, in which an inner node of the one is a leaf of the
              other; each edge carries its half up and down. Inside a domain the tree is a chain.
    NVLS      the switch adds up what it reads from all members and copies what one writes to all: each port sends and
              receives S (1 + 1/k) for an all-reduce.
    NVLSTree  NVLS inside, the trees over the domains between, from each GPU's own NIC.
    CollNet   the network's switches add up: a domain sends S and receives S.
    PAT       to the members 1, 2, 4 ... further on, between nodes of one GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from phantora_py.nccl.algorithm import Algorithm, passes
from phantora_py.nccl.group import Domain, Group
from phantora_py.topology import Load


@dataclass(frozen=True)
class Layout:
    """An algorithm on a group."""

    inside: Load
    """Of the links of domains, for a byte of the collective's size."""
    outside: Load
    """Of NICs and the fabric, likewise."""
    inside_steps: float
    """Hops one after the other that a byte makes."""
    outside_steps: float
    wires_ns: int
    """Latency of the fabric over NCCL's own, of one hop between domains, at the most."""

    @property
    def load(self) -> Load:
        """Of all links; the two have none in common."""
        return {**self.inside, **self.outside}


def lay(group: Group, algorithm: Algorithm, op: str) -> Layout:
    """The layout of an op that the algorithm can do."""
    layout = _lay(group, algorithm, op)
    if group.topology.cluster.node.nvlink.kind != "none":
        return layout
    return replace(layout, inside=_with_nics(group, layout))


def _lay(group: Group, algorithm: Algorithm, op: str) -> Layout:
    if algorithm is Algorithm.RING:
        return _ring(group, op)
    if algorithm is Algorithm.PAT:
        return _pat(group)
    if algorithm is Algorithm.TREE:
        depth, outside = _trees(group)
        inside = _through_ports(group, lambda k: 2 * (k - 1) / k)
        return Layout(inside, outside, 2 * (group.largest_domain - 1), 2 * depth, _wires_ns(group))
    if algorithm.is_nvls:
        depth, outside = _trees(group) if algorithm is Algorithm.NVLS_TREE else (1, _collnet(group))
        steps = 0 if group.is_single else 2 * depth
        inside = _through_ports(group, lambda k: 1 + 1 / k if op == "all_reduce" else 1)
        return Layout(inside, outside, 1, steps, _wires_ns(group))
    inside = _through_ports(group, lambda k: passes(op) * (k - 1) / k)
    steps = 2 if algorithm is Algorithm.COLLNET_DIRECT else 2 * (group.largest_domain - 1)
    return Layout(inside, _collnet(group), steps, 1, _wires_ns(group))


def _ring(group: Group, op: str) -> Layout:
    each = passes(op) * (1.0 if op in ("broadcast", "reduce") else (group.size - 1) / group.size)
    between = len(group.domains) - 1
    inside = _through_ports(group, lambda k: each * (1 if group.is_single else (k - 1) / k))
    outside: Load = defaultdict(float)
    if between:
        for number, domain in enumerate(group.domains):
            _add_wires(group, outside, domain, group.domains[(number + 1) % len(group.domains)], each)
    steps = passes(op) * (group.size - 1)
    outside_steps = passes(op) * between
    return Layout(inside, dict(outside), steps - outside_steps, outside_steps, _wires_ns(group))


def _trees(group: Group) -> tuple[int, Load]:
    """Depth of the deeper tree, and the load for a byte of which each tree carries one half up and one half down."""
    load: Load = defaultdict(float)
    domains, depth = group.domains, 0
    for parents in double_tree(len(domains)):
        for child, parent in enumerate(parents):
            if parent is not None:
                _add_wires(group, load, domains[child], domains[parent], 0.5)
                _add_wires(group, load, domains[parent], domains[child], 0.5)
            depth = max(depth, _depth(parents, child))
    return depth, dict(load)


def _depth(parents: tuple[int | None, ...], node: int) -> int:
    depth, parent = 0, parents[node]
    while parent is not None:
        depth, parent = depth + 1, parents[parent]
    return depth


def double_tree(count: int) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Parents of `count` nodes in NCCL's two trees: the second is the first mirrored, or shifted by one if odd."""
    first = tuple(_parent(node, count) for node in range(count))
    second: list[int | None] = [None] * count
    for node, parent in enumerate(first):
        if count % 2:
            second[(node + 1) % count] = None if parent is None else (parent + 1) % count
        else:
            second[count - 1 - node] = None if parent is None else count - 1 - parent
    return first, tuple(second)


def _parent(node: int, count: int) -> int | None:
    """In a binary tree where the lowest set bit tells the height: 0 is the root, odd nodes are leaves."""
    if node == 0:
        return None
    bit = node & -node
    up = (node ^ bit) | (bit << 1)
    return up if up < count else node ^ bit


def _pat(group: Group) -> Layout:
    outside: Load = defaultdict(float)
    count, distance, steps = len(group.domains), 1, 0
    while distance < count:
        blocks = min(distance, count - distance)
        for number, domain in enumerate(group.domains):
            _add_wires(group, outside, domain, group.domains[(number + distance) % count], blocks / count)
        distance, steps = 2 * distance, steps + 1
    return Layout({}, dict(outside), 0, steps, _wires_ns(group))


def _collnet(group: Group) -> Load:
    """Up to the network's switches and back: what they do with it there loads no link of another node."""
    if group.is_single:
        return {}
    load: Load = defaultdict(float)
    for number, domain in enumerate(group.domains):
        _add_wires(group, load, domain, group.domains[(number + 1) % len(group.domains)], 1.0)
    return dict(load)


def _through_ports(group: Group, each: Callable[[int], float]) -> Load:
    """Every port of a domain of k members carries `each(k)`; in a mesh, spread over the links to all others."""
    topology, load = group.topology, defaultdict[int, float](float)
    for domain in group.domains:
        members = domain.members
        if len(members) == 1:
            continue
        weight = each(len(members)) * group.inside_scale
        if topology.is_mesh:
            for source in members:
                for target in members:
                    if source != target:
                        _add(load, topology.hop(source, target), weight / (len(members) - 1))
        else:
            for member in members:
                load[topology.port_out(member)] += weight
                load[topology.port_in(member)] += weight
    return dict(load)


def _with_nics(group: Group, layout: Layout) -> Load:
    """Of a node of PCIe alone: it also carries what goes to the NICs and comes from them."""
    topology, load = group.topology, defaultdict[int, float](float, layout.inside)
    for domain in group.domains:
        for nic, port in ((topology.nic_out, topology.port_out), (topology.nic_in, topology.port_in)):
            carried = sum(layout.outside.get(link, 0.0) for link in {nic(member) for member in domain.members})
            for member in domain.members:
                load[port(member)] += carried / len(domain.members)
    return dict(load)


def _add_wires(group: Group, load: Load, source: Domain, target: Domain, weight: float) -> None:
    """Channels from one domain to another, each on the next NIC of both."""
    count = max(len(source.nics), len(target.nics))
    for channel in range(count):
        ends = (*source.nics[channel % len(source.nics)], *target.nics[channel % len(target.nics)])
        _add(load, group.topology.wire(*ends), weight / count)


def _wires_ns(group: Group) -> int:
    """The fabric's own latency between neighbours."""
    domains = group.domains
    return (
        max(
            (
                group.topology.extra_latency_ns(domain.members[0], domains[(number + 1) % len(domains)].members[0])
                for number, domain in enumerate(domains)
            ),
            default=0,
        )
        if len(domains) > 1
        else 0
    )


def _add(load: Load, part: Load, scale: float) -> None:
    for link, weight in part.items():
        load[link] = load.get(link, 0.0) + weight * scale
