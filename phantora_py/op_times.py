"""Where device time goes: how often each op ran in a stretch of a rank's history, and for how long.

A kernel belongs to the ATen op that launched it, or goes by its own name where no op did (Triton's, Inductor's); a
collective to NCCL's call. What runs at once on several streams counts each for itself: the sum over all ops may be more
than the time that passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

OpTimes = NDArray[np.int64]
"""A row an op, by its number in a catalogue: how often it ran, and its device time in ns. Ops behind the last row have
not run."""

NO_OPS: OpTimes = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, order=True)
class Op:
    category: str
    """`kernel` or `collective`."""
    name: str


def op_times(ops: NDArray[np.int32], is_first: NDArray[np.bool_], durations_ns: NDArray[np.int64]) -> OpTimes:
    """Of nodes; an op that launches several kernels ran as often as its first one."""
    times = np.zeros((int(ops.max(initial=-1)) + 1, 2), np.int64)
    np.add.at(times[:, 0], ops, is_first)
    np.add.at(times[:, 1], ops, durations_ns)
    return times


def summed(parts: Iterable[OpTimes]) -> OpTimes:
    total = NO_OPS
    for part in parts:
        longer, shorter = (total, part) if len(total) >= len(part) else (part, total)
        total = longer.copy()
        total[: len(shorter)] += shorter
    return total


def listed(times: OpTimes, ops: Sequence[Op]) -> list[dict[str, Any]]:
    """Those that ran, the longest first; the keys are those of docs/report.md."""
    ran = [(op, calls, time_ns) for op, (calls, time_ns) in zip(ops, times.tolist(), strict=False) if calls or time_ns]
    ran.sort(key=lambda row: (-row[2], row[0]))
    return [
        {"op": op.name, "category": op.category, "calls": calls, "device_ns": time_ns} for op, calls, time_ns in ran
    ]
