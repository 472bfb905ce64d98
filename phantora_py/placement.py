"""Where each rank of the job runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from phantora_py.cluster import Cluster, Device
from phantora_py.fields import Fields
from phantora_py.frames import ProtocolError

MAX_RANKS = 1 << 20


class Placement(NamedTuple):
    rank: int
    node: int
    local_rank: int
    pid: int

    def device(self, index: int) -> Device:
        """The GPU that the rank's process sees as device `index`."""
        return Device(self.node, index)


def placements(told: Fields, cluster: Cluster) -> tuple[Placement, ...]:
    """Reads a JOB map; or a rank's HELLO, if no launcher has told of the job.

    Raises ProtocolError if it does not place every rank once on the cluster.
    """
    if "role" in told.table:
        return _consecutive(told, cluster)
    world_size = told.integer("world_size", 1, MAX_RANKS)
    found = sorted(_placement(entry, cluster, world_size) for entry in told.maps("ranks"))
    if [placement.rank for placement in found] != list(range(world_size)):
        raise ProtocolError(f"JOB places {len(found)} ranks, not each of {world_size} once")
    _check_apart(found)
    return tuple(found)


def _check_apart(found: Sequence[Placement]) -> None:
    """No two ranks have one place."""
    owners: dict[tuple[int, int], int] = {}
    for place in found:
        other = owners.setdefault((place.node, place.local_rank), place.rank)
        if other != place.rank:
            raise ProtocolError(
                f"JOB places ranks {other} and {place.rank} both as local rank {place.local_rank} of node {place.node}"
            )


def _consecutive(hello: Fields, cluster: Cluster) -> tuple[Placement, ...]:
    """A rank of an MPI program says how many there are, and how many a node takes; any other is the only one."""
    world_size = hello.integer("world_size", 1, MAX_RANKS, 1)
    per_node = hello.integer("ranks_per_node", 1, MAX_RANKS, 1)
    nodes = -(-world_size // per_node)
    if nodes > cluster.nodes:
        raise ProtocolError(
            f"{world_size} ranks, {per_node} on a node, take {nodes} nodes, but cluster {cluster.name} has "
            f"{cluster.nodes}\n  hint: --cluster {cluster.name}:{nodes} has enough"
            + (f"; --ranks-per-node may be up to {cluster.node.gpus}" if per_node < cluster.node.gpus else "")
        )
    return tuple(Placement(rank, *divmod(rank, per_node), 0) for rank in range(world_size))


def _placement(entry: Fields, cluster: Cluster, world_size: int) -> Placement:
    return Placement(
        entry.integer("rank", 0, world_size - 1),
        entry.integer("node", 0, cluster.nodes - 1),
        entry.integer("local_rank", 0),
        entry.integer("pid", default=0),
    )
