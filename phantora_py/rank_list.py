"""Ranks in messages."""

from __future__ import annotations

import signal
from collections.abc import Iterable

PARTS_SHOWN = 16
"""Of a list; the rest is counted."""


def named_ranks(ranks: Iterable[int]) -> str:
    """ "rank 3", "ranks 0-5, 7"."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] + 1 == rank:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [part for run in runs for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
    more = f" and {len(parts) - PARTS_SHOWN} more" if len(parts) > PARTS_SHOWN else ""
    one = len(runs) == 1 and len(runs[0]) == 1
    return f"{'rank' if one else 'ranks'} {', '.join(parts[:PARTS_SHOWN])}{more}"


def ending(code: int) -> str:
    """ "exit code 3", "ended by SIGKILL": a code as `subprocess` tells it, negative for a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
