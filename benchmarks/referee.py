"""SimGrid as an outside referee of pure flow problems: the same max-min sharing by other people's code.

Needs Debian's libsimgrid-dev (3.32) and g++; the program is compiled at each use.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.leaf_spine import LATENCY_NS, LeafSpine

_SOURCE = Path(__file__).with_name("referee.cpp")
_CORRECTIONS_OFF = {
    "network/model": "CM02",
    "network/latency-factor": 1,
    "network/bandwidth-factor": 1,
    "network/weight-S": 0,
    "network/crosstraffic": 0,
    "network/TCP-gamma": 0,
    "surf/precision": 1e-12,
    "maxmin/precision": 1e-9,
}


class NoReferee(Exception):
    """SimGrid is not installed."""


def compiled(folder: Path) -> Path:
    """Raises NoReferee."""
    program = folder / "referee"
    if shutil.which("g++") is None or not Path("/usr/include/simgrid/s4u.hpp").exists():
        raise NoReferee("SimGrid is not installed\n  hint: apt-get install libsimgrid-dev g++")
    subprocess.run(["g++", "-O2", "-std=c++17", _SOURCE, "-o", program, "-lsimgrid"], check=True)
    return program


def judge(problem: LeafSpine) -> tuple[float, list[float]]:
    """CPU seconds that SimGrid took, and the end of each message in ns. Raises NoReferee."""
    with tempfile.TemporaryDirectory(prefix="phantora-referee-") as folder:
        options = [f"--cfg={key}:{value}" for key, value in _CORRECTIONS_OFF.items()]
        command = [compiled(Path(folder)), *options, "--log=root.thresh:error"]
        done = subprocess.run(command, input="\n".join(_lines(problem)), capture_output=True, text=True, check=True)
    seconds, *ends = map(float, done.stdout.split())
    return seconds, [end * 1e9 for end in ends]


def _lines(problem: LeafSpine) -> Iterator[str]:
    yield f"{problem.hosts} {len(problem.capacities)}"
    yield from map(repr, problem.capacities)
    pairs = sorted({(message.source, message.target) for message in problem.messages})
    yield str(len(pairs))
    for source, target in pairs:
        path = problem.paths[source, target]
        yield f"{source} {target} {len(path)} {' '.join(map(str, path))}"
    yield f"{LATENCY_NS / 1e9!r} {len(problem.messages)}"
    for start_ns, source, target, size_bytes in problem.messages:
        yield f"{start_ns / 1e9!r} {source} {target} {size_bytes}"
