"""How long the links of a node or between nodes can hold a job up, from its trace: an upper bound."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WIRE_BYTES = {"LL": 2.0, "LL128": 1.09, "Simple": 1.0}
"""Bytes on the wire for a byte of data, LL128's lower bandwidth included."""


@dataclass(frozen=True)
class Collective:
    """One rank's part of a collective, or of a group of sends and receives."""

    rank: int
    start_us: float
    end_us: float
    wire_bytes: float
    """What a port of the rank carries in one direction, at the most."""
    group: tuple[int, ...]


@dataclass(frozen=True)
class Trace:
    collectives: list[Collective]
    steps_us: dict[int, list[float]]
    """Per rank: when optimizer steps ended."""

    @staticmethod
    def read(path: Path) -> Trace:
        collectives, steps_us = [], defaultdict(list)
        for event in json.loads(path.read_text())["traceEvents"]:
            if event.get("cat") == "collective":
                collectives.append(_collective(event))
            elif event["name"] == "optimizer step ended":
                steps_us[event["pid"]].append(event["ts"])
        return Trace(collectives, dict(steps_us))

    def last_iteration_bytes(self, crosses: Callable[[tuple[int, ...]], bool]) -> dict[int, float]:
        """Per rank: wire bytes of the last iteration's collectives whose group uses the links in question."""
        totals: dict[int, float] = dict.fromkeys(self.steps_us, 0.0)
        for item in self.collectives:
            begin_us, end_us = self.steps_us[item.rank][-2:]
            if item.end_us > begin_us and item.start_us < end_us and crosses(item.group):
                totals[item.rank] += item.wire_bytes
        return totals


def busiest(totals: dict[int, float], ranks: Iterable[int]) -> float:
    return max(totals[rank] for rank in ranks)


def _collective(event: dict[str, Any]) -> Collective:
    arguments = event["args"]
    group = tuple(arguments["group"])
    share = (len(group) - 1) / len(group)
    passes = {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share}.get(event["name"], 1.0)
    wire_bytes = arguments["bytes"] * passes * _WIRE_BYTES[arguments["protocol"]]
    return Collective(event["pid"], event["ts"], event["ts"] + event["dur"], wire_bytes, group)
