"""Cuts one rank's committed history into the stretches between its optimizer steps, keeping only what is still open.

A *segment* ends where an optimizer's step ends on the device and begins where the one before ended (the first at 0).
Within it, per device, with U(x) the length of the union of the intervals x:

    compute = U(kernels)        exposed communication = U(kernels and collectives) - U(kernels)

A node counts for a segment with the part of it that lies inside. History comes in order of ends, so a node that
reaches back into a segment may come late; a segment is closed when the *next* one has ended, and a node that ends later
still is not counted in it. The rule looks at simulated times only, so the result does not depend on how history is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phantora_py.op_times import OpTimes, op_times


@dataclass(frozen=True, eq=False)
class Calls:
    """What a rank communicated in a segment. Segments of a rank that hold the same share one."""

    counts: Mapping[int, int]
    """Definition of a collective or a group of sends → how often it ran."""


@dataclass(frozen=True)
class Segment:
    """What lies between the ends of two successive optimizer steps of one rank."""

    start_ns: int
    end_ns: int
    optimizer: int
    """The rank's number of the optimizer that stepped; 0: not known."""
    forward_before: bool
    """Forward or backward kernels ran between the end of the step before and the beginning of this one."""
    work_before: bool
    """Any kernel did."""
    devices: int
    """Devices that the rank had used by then: the segment holds so many times its length of device time."""
    compute_ns: int
    exposed_ns: int
    lookups: dict[int, int]
    """Signature of an embedding's look-up → times that it was launched."""
    calls: Calls
    """Those that ended within."""
    ops: OpTimes
    """Of what ended within."""


@dataclass(frozen=True)
class Nodes:
    """Committed nodes of one rank in order of their ends; columns of equal length."""

    device: NDArray[np.int32]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    is_kernel: NDArray[np.bool_]
    is_forward: NDArray[np.bool_]
    lookup: NDArray[np.int64]
    """Signature of an embedding's look-up; 0 for all else."""
    call: NDArray[np.int64]
    """Definition of a collective or a group of sends; -1 for kernels."""
    op: NDArray[np.int32]
    """Index into the catalogue's."""
    is_first: NDArray[np.bool_]
    """Not a later launch of an op whose first one carries its cost."""

    def __getitem__(self, chosen: NDArray[np.bool_] | slice) -> Nodes:
        return Nodes(
            self.device[chosen],
            self.start_ns[chosen],
            self.end_ns[chosen],
            self.is_kernel[chosen],
            self.is_forward[chosen],
            self.lookup[chosen],
            self.call[chosen],
            self.op[chosen],
            self.is_first[chosen],
        )

    @classmethod
    def joined(cls, parts: list[Nodes]) -> Nodes:
        return cls(
            np.concatenate([part.device for part in parts]),
            np.concatenate([part.start_ns for part in parts]),
            np.concatenate([part.end_ns for part in parts]),
            np.concatenate([part.is_kernel for part in parts]),
            np.concatenate([part.is_forward for part in parts]),
            np.concatenate([part.lookup for part in parts]),
            np.concatenate([part.call for part in parts]),
            np.concatenate([part.op for part in parts]),
            np.concatenate([part.is_first for part in parts]),
        )


@dataclass(frozen=True)
class _Step:
    begin_ns: int
    end_ns: int
    optimizer: int


class RankHistory:
    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._parts: list[Nodes] = []
        self._devices: set[int] = set()
        self._steps: list[_Step] = []  # those whose segments are open
        self._begin_ns: int | None = None
        self._closed_ns = 0
        self._calls: dict[tuple[tuple[int, int], ...], Calls] = {}

    def add(self, nodes: Nodes) -> None:
        self._parts.append(nodes)

    def step_began(self, time_ns: int) -> None:
        if self._begin_ns is None:
            self._begin_ns = time_ns

    def step_ended(self, time_ns: int, optimizer: int = 0) -> None:
        self._steps.append(_Step(time_ns if self._begin_ns is None else self._begin_ns, time_ns, optimizer))
        self._begin_ns = None
        while len(self._steps) > 1:
            self._close(until_ns=self._steps[1].end_ns)

    def finish(self) -> Segment:
        """Closes what is open; returns what lies behind the last step, to the last end of any node."""
        while self._steps:
            self._close(until_ns=None)
        nodes = self._open_nodes()
        last_ns = max(int(nodes.end_ns.max(initial=0)), self._closed_ns)
        return self._segment(nodes, _Step(last_ns, last_ns, 0))

    def _close(self, until_ns: int | None) -> None:
        """Makes the oldest open step a segment, of the nodes that end up to `until_ns` (None: of all)."""
        step = self._steps.pop(0)
        nodes = self._open_nodes()
        counted = nodes if until_ns is None else nodes[: int(np.searchsorted(nodes.end_ns, until_ns, side="right"))]
        self.segments.append(self._segment(counted, step))
        self._closed_ns = step.end_ns
        self._parts = [nodes[nodes.end_ns > step.end_ns]]

    def _open_nodes(self) -> Nodes:
        if len(self._parts) != 1:
            self._parts = [Nodes.joined(self._parts)] if self._parts else [_NONE]
        return self._parts[0]

    def _segment(self, nodes: Nodes, step: _Step) -> Segment:
        start_ns, end_ns = self._closed_ns, step.end_ns
        between = nodes.is_kernel & (nodes.start_ns >= start_ns) & (nodes.end_ns <= step.begin_ns)
        self._devices.update(np.unique(nodes.device[nodes.start_ns < end_ns]).tolist())
        compute_ns = busy_ns = 0
        for device in sorted(self._devices):
            mine = nodes[nodes.device == device]
            starts, ends = np.maximum(mine.start_ns, start_ns), np.minimum(mine.end_ns, end_ns)
            kernels = mine.is_kernel
            compute_ns += union_ns(starts[kernels], ends[kernels])
            busy_ns += union_ns(starts, ends)
        ended = nodes[nodes.end_ns <= end_ns]
        return Segment(
            start_ns,
            end_ns,
            step.optimizer,
            bool((between & nodes.is_forward).any()),
            bool(between.any()),
            len(self._devices),
            compute_ns,
            busy_ns - compute_ns,
            dict(Counter(ended.lookup[ended.lookup > 0].tolist())),
            self._calls_of(ended),
            op_times(ended.op, ended.is_first, ended.end_ns - ended.start_ns),
        )

    def _calls_of(self, nodes: Nodes) -> Calls:
        definitions, counts = np.unique(nodes.call[nodes.call >= 0], return_counts=True)
        key = tuple(zip(definitions.tolist(), counts.tolist(), strict=True))
        return self._calls.setdefault(key, Calls(dict(key)))


def union_ns(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Length of the union of intervals; those that end before they start are empty."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    if not len(starts):
        return 0
    reached = np.maximum.accumulate(np.concatenate([starts[:1], ends[:-1]]))
    return int(np.maximum(ends - np.maximum(starts, reached), 0).sum())


_NONE = Nodes(
    np.zeros(0, np.int32),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.bool_),
    np.zeros(0, np.bool_),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int32),
    np.zeros(0, np.bool_),
)
