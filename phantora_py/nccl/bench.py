"""The simulated nccl-tests: what a collective takes at each size, in nccl-tests' terms.

Sizes, counts, algorithm bandwidth and bus bandwidth are defined as in nccl-tests' doc/PERFORMANCE.md, so that the
tables can be laid side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from phantora_netsim import Network
from phantora_py.cluster import Cluster, Device
from phantora_py.collectives import CollectivePlanner, Plan
from phantora_py.topology import Topology

OPS = {
    "all_reduce": "sum",
    "all_gather": "none",
    "reduce_scatter": "sum",
    "broadcast": "none",
    "reduce": "sum",
    "alltoall": "none",
    "gather": "none",
    "scatter": "none",
    "sendrecv": "none",
}
"""As nccl-tests names them → the reduction that it shows by default."""
DTYPES = {
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "bfloat16": 2,
    "f8e4m3": 1,
    "f8e5m2": 1,
}
"""Name → bytes."""
_DIVIDED = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")
"""Count is that of one rank, size that of all."""
_ROOTED = ("broadcast", "reduce", "gather", "scatter")
_ALIGNMENT = 16
"""Bytes of a rank's part are rounded down to a multiple."""


@dataclass(frozen=True)
class Line:
    """One size."""

    size_bytes: int
    count: int
    dtype: str
    redop: str
    root: int
    time_us: float
    algbw: float
    busbw: float
    algorithm: str
    protocol: str


class CollectiveBench:
    """One op over GPUs of a cluster: the first so many of each of the first so many nodes."""

    def __init__(self, cluster: Cluster, gpus: int, nodes: int) -> None:
        """`gpus` on each of `nodes`."""
        self.members = tuple(Device(node, gpu) for node in range(nodes) for gpu in range(gpus))
        self._planner = CollectivePlanner(Topology(cluster, Network()))

    def line(self, op: str, size_bytes: int, dtype: str) -> Line:
        """Of an op of OPS; the size is rounded as nccl-tests does."""
        ranks, width = len(self.members), DTYPES[dtype]
        if op in _DIVIDED:
            count = size_bytes // (ranks * width)
            count -= count % max(1, _ALIGNMENT // width) if count * width >= _ALIGNMENT else 0
            size_bytes = count * width * ranks
        else:
            count = size_bytes // width
            size_bytes = count * width
        plan = self._plan(op, size_bytes)
        seconds = max(plan.alone_ns, 1) / 1e9
        algbw = size_bytes / seconds / 1e9
        return Line(
            size_bytes,
            count,
            dtype,
            OPS[op],
            0 if op in _ROOTED else -1,
            seconds * 1e6,
            algbw,
            algbw * self._factor(op),
            plan.algorithm,
            plan.protocol,
        )

    def _plan(self, op: str, size_bytes: int) -> Plan:
        if op != "sendrecv":
            return self._planner.collective(self.members, "all_to_all" if op == "alltoall" else op, size_bytes)
        nexts = (*self.members[1:], self.members[0])
        pairs = zip(self.members, nexts, strict=True)
        plans = (self._planner.transfer(source, target, size_bytes, self.members) for source, target in pairs)
        return max(plans, key=lambda plan: plan.alone_ns)

    def _factor(self, op: str) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        ranks = len(self.members)
        if op == "all_reduce":
            return 2 * (ranks - 1) / ranks
        return (ranks - 1) / ranks if op in _DIVIDED else 1.0


def sizes(begin: int, end: int, factor: float, step: int) -> Iterator[int]:
    """From `begin` to `end`, times `factor`, or plus `step` if that is not 0."""
    size = begin
    while size <= end:
        yield size
        size = size + step if step else max(size + 1, int(size * factor))
