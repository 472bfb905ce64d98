"""The simulated nccl-tests: what a collective takes at each size, in nccl-tests' terms.

Sizes, counts, algorithm bandwidth and bus bandwidth are defined as in nccl-tests' doc/PERFORMANCE.md, so that the
tables can be laid side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from phantora_netsim import Network
from phantora_py.cluster import Cluster, Device
from phantora_py.collectives import CollectivePlanner, Plan
from phantora_py.host import DEFAULT_HOST
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
_OTHER_DTYPES = {
    "float16": "half",
    "fp16": "half",
    "float32": "float",
    "fp32": "float",
    "float64": "double",
    "fp64": "double",
    "bf16": "bfloat16",
}
"""What PyTorch and people call them."""
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


@dataclass(frozen=True)
class Loop:
    """How nccl-tests measures: a process issues so many operations one after another, each as a launch for each of its
    GPUs, then waits for all of them; what it prints is the mean."""

    gpus_of_a_process: int = 1
    iterations: int = 20

    def mean_ns(self, operation_ns: int) -> float:
        """The first operation starts when it was issued everywhere. Then either the GPUs wait for the host or never."""
        issue_ns, count = self.gpus_of_a_process * DEFAULT_HOST.launch_ns, self.iterations
        busy_ns = max(issue_ns + count * operation_ns, count * issue_ns + operation_ns)
        return (busy_ns + DEFAULT_HOST.sync_ns) / count

    def mean_in_ring_ns(self, pairs_ns: Sequence[int]) -> float:
        """Of messages from each GPU to the next, which take so long: each waits for its neighbours only.

        A GPU's kernel ends when it has sent and received. The mean of all processes is printed, and slow pairs hold up
        the GPUs that are far from them late.
        """
        each, messages_ns = self.gpus_of_a_process, np.array(pairs_ns)
        launched_ns = (np.arange(len(pairs_ns)) % each + 1) * DEFAULT_HOST.launch_ns
        ended_ns = np.zeros(len(pairs_ns), dtype=np.int64)
        for iteration in range(self.iterations):
            begun_ns = np.maximum(ended_ns, launched_ns + iteration * each * DEFAULT_HOST.launch_ns)
            sent_ns = np.maximum(begun_ns, np.roll(begun_ns, -1)) + messages_ns
            ended_ns = np.maximum(sent_ns, np.roll(sent_ns, 1))
        processes_ns = ended_ns.reshape(-1, each).max(axis=1)
        return float(processes_ns.mean() + DEFAULT_HOST.sync_ns) / self.iterations


class CollectiveBench:
    """One op over GPUs of a cluster: the first so many of each of the first so many nodes."""

    def __init__(self, cluster: Cluster, gpus: int, nodes: int, loop: Loop | None = None) -> None:
        """`gpus` on each of `nodes`."""
        self._loop = loop or Loop()
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
        plans = self._plans(op, size_bytes)
        plan = max(plans, key=lambda plan: plan.alone_ns)
        times_ns = [plan.alone_ns for plan in plans]
        seconds = (self._loop.mean_in_ring_ns(times_ns) if op == "sendrecv" else self._loop.mean_ns(*times_ns)) / 1e9
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

    def _plans(self, op: str, size_bytes: int) -> list[Plan]:
        """One; or that of each GPU's message to the next."""
        if op != "sendrecv":
            return [self._planner.collective(self.members, "all_to_all" if op == "alltoall" else op, size_bytes)]
        nexts = (*self.members[1:], self.members[0])
        pairs = zip(self.members, nexts, strict=True)
        return [self._planner.transfer(source, target, size_bytes, self.members) for source, target in pairs]

    def _factor(self, op: str) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        ranks = len(self.members)
        if op == "all_reduce":
            return 2 * (ranks - 1) / ranks
        return (ranks - 1) / ranks if op in _DIVIDED else 1.0


def op_named(text: str) -> str | None:
    """The op of OPS that is called so: all_reduce, allreduce, AllReduce, all_reduce_perf."""
    plain = _plain(text).removesuffix("perf")
    return next((op for op in OPS if _plain(op) == plain), None)


def dtype_named(text: str) -> str | None:
    """The type of DTYPES that is called so: half, fp16, float16."""
    name = text.lower()
    return _OTHER_DTYPES.get(name, name if name in DTYPES else None)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def sizes(begin: int, end: int, factor: float, step: int) -> Iterator[int]:
    """From `begin` to `end`, times `factor`, or plus `step` if that is not 0."""
    size = begin
    while size <= end:
        yield size
        size = size + step if step else max(size + 1, int(size * factor))
