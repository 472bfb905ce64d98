"""A report's sums over ranks and iterations, as what a rank does in an iteration on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OpAverage:
    calls: float
    device_ns: float


def op_averages(result: Mapping[str, Any]) -> dict[tuple[str, str], OpAverage]:
    """By category and op, in the report's order: the longest first."""
    times = _times(result)
    return {(op["category"], op["op"]): OpAverage(op["calls"] / times, op["device_ns"] / times) for op in result["ops"]}


def breakdown_average(result: Mapping[str, Any], part: str) -> float | None:
    """A part of the breakdown in ns; None: nothing ran on a device."""
    breakdown = result["breakdown"]
    return None if breakdown is None else float(breakdown[part] * breakdown["device_ns"] / _times(result))


def stretch(result: Mapping[str, Any]) -> str:
    """What the averages are of, for people."""
    return "an iteration" if _steady(result) else "the run"


def _times(result: Mapping[str, Any]) -> int:
    """What the report's sums are over: each steady iteration on each rank, or the run on each rank."""
    return int(result["world_size"]) * (_steady(result) or 1)


def _steady(result: Mapping[str, Any]) -> int:
    return sum(not iteration["warm_up"] for iteration in result["iterations"])
