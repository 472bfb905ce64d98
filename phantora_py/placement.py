"""Where each rank of the job runs."""

from __future__ import annotations

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


ONE_RANK = (Placement(0, 0, 0, 0),)
"""The job of a script that no launcher started."""


def placements(job: Fields, cluster: Cluster) -> tuple[Placement, ...]:
    """Reads a JOB map. Raises ProtocolError if it does not place every rank once on the cluster."""
    world_size = job.integer("world_size", 1, MAX_RANKS)
    found = sorted(_placement(entry, cluster, world_size) for entry in job.maps("ranks"))
    if [placement.rank for placement in found] != list(range(world_size)):
        raise ProtocolError(f"JOB places {len(found)} ranks, not each of {world_size} once")
    return tuple(found)


def _placement(entry: Fields, cluster: Cluster, world_size: int) -> Placement:
    return Placement(
        entry.integer("rank", 0, world_size - 1),
        entry.integer("node", 0, cluster.nodes - 1),
        entry.integer("local_rank", 0),
        entry.integer("pid", 0),
    )
