"""CUPTI as a profiler uses it: records of work and calls, with the times that the simulator gives."""

import subprocess
import sys
from pathlib import Path

import pytest
from cuda_programs import HERE, SHIMS, compiled, run_as_rank
from rank_peer import EVENT_FORGET, EVENT_RECORD, EVENT_TIME, KERNEL, QUERY, RankPeer, Record, reply

from phantora_native import INCLUDE_DIR

LAUNCH_KERNEL, MEMCPY_ASYNC, MEMSET_ASYNC = 211, 41, 51
LAUNCHED_IN, COPIED_IN = 77, 78


def answer(record: Record) -> bytes:
    """An event ends at a time that says which it is: the n-th recording at n ms."""
    return reply(record.b, 10**6 * record.a if record.kind == EVENT_TIME else int(record.kind == QUERY))


def test_activity_of_the_device(tmp_path: Path) -> None:
    program = compiled(tmp_path, "cupti_activity_test", "-I", str(SHIMS), "-l:libcupti.so.13")
    peer = RankPeer(tmp_path, answer)
    done = run_as_rank(program, run_dir=tmp_path, sink="socket")
    assert (done.returncode, done.stderr) == (0, "")
    peer.join()

    recorded = peer.of_kind(EVENT_RECORD)
    starts = [10**6 * record.a for record in recorded[::2]]
    ends = [10**6 * record.a for record in recorded[1::2]]
    expected = [
        f"kernel {starts[0]} {ends[0]} {LAUNCHED_IN} {LAUNCH_KERNEL}",
        f"memset {starts[1]} {ends[1]} {LAUNCHED_IN} {MEMSET_ASYNC}",
        f"memcpy {starts[2]} {ends[2]} {COPIED_IN} {MEMCPY_ASYNC}",
    ]
    assert done.stdout.splitlines() == expected
    # The launches before and after it cost nothing extra, and nothing is left behind.
    assert len(peer.of_kind(KERNEL)) == 5
    assert len(recorded) == 6
    assert {record.a for record in peer.of_kind(EVENT_FORGET)} == {record.a for record in recorded}


def test_layouts_are_nvidias() -> None:
    roots = [Path(root, "triton/backends/nvidia/include") for root in sys.path]
    headers = next((folder for folder in roots if (folder / "cupti.h").is_file()), None)
    if headers is None:
        pytest.skip("CUPTI's headers are not installed")
    includes = ["-isystem", headers, "-I", SHIMS, "-I", INCLUDE_DIR]
    subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-w", *includes, HERE / "cupti_layouts.cpp"], check=True)
