"""The CUDA runtime and driver shims by themselves: semantics without a simulator, records with a played one."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cuda_programs import HERE, MACHINE, SHIMS, compiled, run_as_rank
from rank_peer import (
    EVENT_FORGET,
    EVENT_RECORD,
    EVENT_TIME,
    KERNEL,
    LANE_BEGIN,
    LANE_END,
    LATER_LAUNCH,
    QUERY,
    STREAM_WAIT,
    SYNC,
    RankPeer,
    Record,
    correction,
    reply,
)

from phantora_native import INCLUDE_DIR

Answer = Callable[[Record], bytes | None]
Case = Callable[..., tuple[RankPeer, str]]


def done_at_once(record: Record) -> bytes:
    return reply(record.b, int(record.kind == QUERY))


@pytest.fixture(scope="module")
def semantics_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"), "cuda_semantics_test")


@pytest.fixture(scope="module")
def records_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"), "cuda_records_test")


@pytest.fixture
def played(records_program: Path, tmp_path: Path) -> Case:
    """Runs a case of cuda_records_test to its end; `answer` plays the simulator."""

    def run(
        case: str, answer: Answer = lambda record: reply(record.b, int(record.kind == QUERY))
    ) -> tuple[RankPeer, str]:
        peer = RankPeer(tmp_path, answer)
        done = run_as_rank(records_program, case, run_dir=tmp_path, sink="socket")
        assert done.returncode == 0, done.stderr
        peer.join()
        return peer, done.stdout

    return run


def test_semantics_without_simulator(semantics_program: Path, tmp_path: Path) -> None:
    done = run_as_rank(semantics_program, run_dir=tmp_path, sink="null")
    assert (done.returncode, done.stderr) == (0, "")


def test_hello_definitions_and_bye(played: Case) -> None:
    peer, _ = played("sync")
    assert peer.hello["protocol"] == 1
    assert (peer.hello["role"], peer.hello["rank"]) == ("rank", 3)
    assert peer.hello["argv"][1:] == ["sync"]
    stream, kernel = peer.definitions
    assert stream == {"t": "stream", "id": 0, "device": 0, "priority": 0}
    assert kernel == {"t": "kernel", "id": 1, "op": "", "kernel": "stub", "grid": [1, 1, 1], "block": [32, 1, 1]}
    assert peer.bye is not None
    assert [guess.startswith("kernel stub, whose code cannot be read") for guess in peer.bye["guessed"]] == [True]


def test_sync_moves_the_clock(played: Case) -> None:
    peer, printed = played("sync", lambda record: reply(record.b, 1_000_000))
    launched, waited = peer.issued()
    assert launched == Record(KERNEL, 0, 0, 0, 4000, 1, 0)
    assert waited[:5] == (SYNC, 0, 0, 0, 4000)
    assert int(printed) == 1_000_000 + 500


def test_wait_for_what_is_known_asks_nothing(played: Case) -> None:
    peer, printed = played("known_waits", lambda record: reply(record.b, 1_000_000))
    assert len(peer.of_kind(SYNC)) == 1
    assert int(printed) == 1_000_000 + 4 * 500


def test_legacy_stream_orders_blocking_streams(played: Case) -> None:
    peer, _ = played("implicit_order")
    blocking, free, legacy = 0, 1, 2
    order = [(record.kind, record.stream) for record in peer.of_kind(KERNEL, EVENT_RECORD, STREAM_WAIT)]
    assert order == [
        (KERNEL, blocking),
        (EVENT_RECORD, blocking),
        (STREAM_WAIT, legacy),
        (KERNEL, legacy),
        (EVENT_RECORD, legacy),
        (STREAM_WAIT, blocking),
        (KERNEL, blocking),
        (KERNEL, free),
    ]


def test_first_kernel_of_an_op_carries_its_cost(played: Case) -> None:
    peer, _ = played("op")
    memset, first, copy, later = peer.of_kind(KERNEL)
    assert [record.b for record in (memset, first, copy, later)] == [0, 1, 2, 3]
    assert [record.flags for record in (memset, first, copy, later)] == [0, 0, 0, LATER_LAUNCH]


def test_copies_say_which_host_memory_is_pageable_and_wait_for_it(played: Case) -> None:
    peer, _ = played("host_copies")
    staged, large = 1 << 16, (1 << 16) + 1
    copies = {d["id"]: d["copy"] for d in peer.definitions if d["t"] == "kernel"}
    pinned = [["h2d", staged], ["h2d", large], ["d2h", 1]]
    pageable = [[*copy, "pageable"] for copy in pinned]
    issued = [copies[record.a] if record.kind == KERNEL else "wait" for record in peer.of_kind(KERNEL, SYNC)]
    assert issued == [*pinned, *pinned, pageable[0], pageable[1], "wait", pageable[2], "wait"]


def test_third_identical_question_becomes_a_wait(played: Case) -> None:
    peer, _ = played("spinning", lambda record: reply(record.b, 77_000 if record.kind == SYNC else 0))
    assert [record.kind for record in peer.issued()] == [KERNEL, EVENT_RECORD, QUERY, QUERY, SYNC]
    assert peer.issued()[-1].flags == 1


def test_questions_between_work_stay_questions(played: Case) -> None:
    peer, _ = played("patient", lambda record: reply(record.b, 0))
    assert [record.kind for record in peer.of_kind(QUERY, SYNC)] == [QUERY] * 5


def test_observers_record_nothing_and_learn_from_lane_0(played: Case) -> None:
    peer, _ = played("observer")
    assert [record.kind for record in peer.issued()] == [KERNEL, EVENT_RECORD, STREAM_WAIT, SYNC]


def test_observers_learn_from_waits_alone(played: Case) -> None:
    peer, _ = played("told", lambda record: reply(record.b, 1))
    assert [record.kind for record in peer.issued()] == [KERNEL, EVENT_RECORD, QUERY]


def test_side_thread_has_lanes_that_end_with_its_waits(played: Case) -> None:
    peer, _ = played("side_thread", lambda record: reply(record.b, 50_000))
    lanes = [(record.kind, record.lane, record.a) for record in peer.of_kind(KERNEL, SYNC, LANE_BEGIN, LANE_END)]
    assert lanes == [
        (KERNEL, 0, 1),
        (LANE_BEGIN, 0, 1),
        (KERNEL, 1, 1),
        (SYNC, 1, 0),
        (LANE_END, 1, 0),
        (LANE_BEGIN, 0, 2),
        (KERNEL, 2, 1),
        (LANE_END, 2, 0),
        (KERNEL, 0, 1),
    ]
    first, second = peer.of_kind(LANE_BEGIN)
    assert first.delta_ns == second.delta_ns == 5000
    kernel = next(record for record in peer.of_kind(KERNEL) if record.lane == 2)
    assert kernel.delta_ns == 50_000 + 500 + 4000 - 5000


def test_autograd_threads_share_lane_0(played: Case) -> None:
    peer, _ = played("autograd")
    assert [(record.kind, record.lane) for record in peer.issued()] == [(KERNEL, 0)]


def test_correction_moves_the_lane_but_not_back_what_was_shown(played: Case) -> None:
    waits: list[int] = []

    def answer(record: Record) -> bytes:
        if record.kind == SYNC:
            waits.append(record.b)
            return reply(record.b, 1_000_000, speculated=True)
        return correction(waits[0], 2_000_000) + reply(record.b, 0)

    peer, printed = played("correction", answer)
    speculated, corrected = map(int, printed.split())
    assert speculated == 1_000_500
    assert corrected == speculated + 1_000_000 + 4000 + 2 * 100
    assert peer.of_kind(KERNEL)[-1].delta_ns == 500 + 4000 + 2 * 100 + 4000


def test_forked_child_is_no_rank(played: Case) -> None:
    peer, _ = played("fork")
    assert len(peer.of_kind(KERNEL)) == 2


def test_events_are_forgotten_when_nothing_names_them(played: Case) -> None:
    peer, _ = played("implicit_order")
    recorded = {record.a for record in peer.of_kind(EVENT_RECORD)}
    assert {record.a for record in peer.of_kind(EVENT_FORGET)} == recorded
    assert not peer.of_kind(EVENT_TIME)


def test_lost_simulator_ends_the_rank(records_program: Path, tmp_path: Path) -> None:
    RankPeer(tmp_path, lambda record: None)
    done = run_as_rank(records_program, "wait", run_dir=tmp_path, sink="socket")
    assert done.returncode == 70
    assert "rank 3: the simulator has ended" in done.stderr
    assert "hint:" in done.stderr


@pytest.mark.parametrize(
    ("case", "machine", "message"),
    [
        ("wait", MACHINE, "cannot reach the simulator"),
        ("wait", MACHINE + "device.speed = 7\n", 'not understood: "device.speed = 7"'),
        ("wait", MACHINE + "device.count = many\n", "device.count in machine.conf is not a whole number"),
        ("wait", MACHINE + "host.policy = fast\n", 'host.policy in machine.conf is "fast"'),
        ("wait", "device.name = X\n", "machine.conf lacks a sound device.memory_bytes"),
    ],
)
def test_errors_say_what_and_hint(records_program: Path, tmp_path: Path, case: str, machine: str, message: str) -> None:
    done = run_as_rank(records_program, case, run_dir=tmp_path, sink="socket", machine=machine)
    assert done.returncode == 70
    assert message in done.stderr
    assert "hint:" in done.stderr


def test_visible_devices(semantics_program: Path, tmp_path: Path) -> None:
    done = run_as_rank(semantics_program, run_dir=tmp_path, sink="null", CUDA_VISIBLE_DEVICES="1,0,bad,2")
    assert "count is 2, not 4" in done.stderr


def test_layouts_are_nvidias(tmp_path: Path) -> None:
    """Sizes, offsets and numbers of our declarations against NVIDIA's headers, where their wheels lie."""
    folders = ("nvidia/cu13/include", "triton/backends/nvidia/include")
    present = [Path(root, folder) for root in sys.path for folder in folders]
    cuda = next((folder for folder in present if (folder / "cuda.h").is_file()), None)
    crt = next((folder for folder in present if (folder / "crt/host_defines.h").is_file()), None)
    if cuda is None or crt is None:
        pytest.skip("NVIDIA's CUDA headers are not installed")
    includes = ["-isystem", cuda, "-isystem", crt, "-I", SHIMS, "-I", INCLUDE_DIR]
    subprocess.run(["g++", "-std=c++20", "-fsyntax-only", *includes, HERE / "cuda_layouts.cpp"], check=True)
