"""CUDA graphs: what programs see of them, and what their launches record."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cuda_programs import MACHINE, compiled, run_as_rank
from rank_peer import EVENT_RECORD, KERNEL, STREAM_WAIT, SYNC, RankPeer, Record, reply

Case = Callable[[str], tuple[RankPeer, str]]
Step = tuple[int, int]
"""Kind and stream of a record."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"), "cuda_graph_test")


@pytest.fixture(scope="module")
def conditional_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("conditional"), "cuda_graph_conditional_test")


def play(program: Path, case: str, run_dir: Path) -> tuple[RankPeer, str]:
    peer = RankPeer(run_dir, lambda record: reply(record.b, 1_000_000))
    done = run_as_rank(program, case, run_dir=run_dir, sink="socket")
    assert done.returncode == 0, done.stderr
    peer.join()
    return peer, done.stdout


@pytest.fixture
def played(program: Path, tmp_path: Path) -> Case:
    return lambda case: play(program, case, tmp_path)


def steps(records: list[Record]) -> list[tuple[int, int, int]]:
    """Kind, stream, and the recording of an event's record or wait, numbered by their first appearance."""
    numbers: dict[int, int] = {}
    return [
        (record.kind, record.stream, 0 if record.kind == KERNEL else numbers.setdefault(record.a, len(numbers) + 1))
        for record in records
    ]


def test_semantics(program: Path, tmp_path: Path) -> None:
    done = run_as_rank(program, "semantics", run_dir=tmp_path, sink="null")
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_freed_before_a_launch_is_an_error_with_a_name(program: Path, tmp_path: Path) -> None:
    done = run_as_rank(program, "freed", run_dir=tmp_path, sink="null")
    assert done.returncode == 70
    assert "a copy in a CUDA graph uses device memory that has been freed" in done.stderr


def test_branches_run_side_by_side(played: Case) -> None:
    peer, host_ns = played("fork_join")
    own, branch = 0, 2  # stream 1 is the one that was captured beside
    once = [
        (KERNEL, own),
        (EVENT_RECORD, own),  # the fork
        (KERNEL, own),
        (STREAM_WAIT, branch),
        (KERNEL, branch),
        (EVENT_RECORD, branch),  # the join
        (STREAM_WAIT, own),
        (KERNEL, own),
    ]
    records = peer.of_kind(KERNEL, EVENT_RECORD, STREAM_WAIT)
    first = [(record.kind, record.stream) for record in records[1:9]]  # after that of the launch stream's start
    assert first == once
    numbered = steps(records[:9])
    assert numbered[4][2] == numbered[2][2]
    assert numbered[7][2] == numbered[6][2]
    assert len(peer.of_kind(KERNEL)) == 8
    assert int(host_ns) == 4000, "the host pays for one launch"


def test_launches_of_one_graph_come_after_another(played: Case) -> None:
    peer, _ = played("nested")
    stream, other = 0, 1
    records = steps(peer.of_kind(KERNEL, EVENT_RECORD, STREAM_WAIT))
    assert records == [
        (KERNEL, stream, 0),
        (EVENT_RECORD, stream, 1),  # the end of the first launch …
        (STREAM_WAIT, other, 1),  # … is waited for by the second
        (KERNEL, other, 0),
        (EVENT_RECORD, other, 2),
        (KERNEL, stream, 0),  # the graph around it, a launch of its own
        (KERNEL, stream, 0),
        (EVENT_RECORD, stream, 3),
    ]


def test_roots_start_with_the_launch_and_all_end_before_what_follows(played: Case) -> None:
    peer, _ = played("roots_and_events")
    stream, branch = 0, 2  # stream 1 was for adding the node
    records = steps(peer.of_kind(KERNEL, EVENT_RECORD, STREAM_WAIT))
    assert records == [
        (EVENT_RECORD, stream, 1),  # the start
        (KERNEL, stream, 0),
        (EVENT_RECORD, stream, 2),  # the script's own event
        (STREAM_WAIT, branch, 1),
        (KERNEL, branch, 0),
        (EVENT_RECORD, branch, 3),
        (STREAM_WAIT, stream, 3),
        (EVENT_RECORD, stream, 4),  # the end of the launch
    ]
    waited = peer.of_kind(SYNC)
    assert len(waited) == 1


def test_memory_of_graphs(tmp_path: Path) -> None:
    done = run_as_rank(compiled(tmp_path, "cuda_graph_memory_test"), run_dir=tmp_path, sink="null")
    assert (done.returncode, done.stderr) == (0, "")


def test_nodes_by_general_parameters(tmp_path: Path) -> None:
    done = run_as_rank(compiled(tmp_path, "cuda_graph_nodes_test"), run_dir=tmp_path, sink="null")
    assert (done.returncode, done.stderr) == (0, "")


def test_conditional_nodes(conditional_program: Path, tmp_path: Path) -> None:
    done = run_as_rank(conditional_program, "semantics", run_dir=tmp_path, sink="null")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_loop_and_another_branch_do_not_wait_for_each_other(conditional_program: Path, tmp_path: Path) -> None:
    """What needs no condition is given to the streams first."""
    peer, _ = play(conditional_program, "beside", tmp_path)
    records = peer.of_kind(KERNEL, EVENT_RECORD, STREAM_WAIT)
    launch = steps(records[2:])  # after the flags have been stored
    own, branch = launch[0][1], launch[2][1]
    body = [(KERNEL, own, 0)] * 3
    assert launch == [
        (EVENT_RECORD, own, 1),  # the fork
        (KERNEL, own, 0),  # sets the condition
        (STREAM_WAIT, branch, 1),
        (KERNEL, branch, 0),
        (EVENT_RECORD, branch, 2),
        *body,
        *body,
        (STREAM_WAIT, own, 2),  # the join
        (KERNEL, own, 0),
        (EVENT_RECORD, own, 3),
    ]
    assert len({record.delta_ns for record in records[2:]}) == 1, "all at the time of the launch"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("unset", "has a conditional node whose condition nothing has set"),
        ("foreign", "the condition of a conditional node in a CUDA graph is set by decide, a kernel whose results"),
        ("endless", "has gone round 1000 times in one launch and does not end"),
    ],
)
def test_a_condition_that_nobody_knows_is_an_error_with_a_name(
    conditional_program: Path, tmp_path: Path, case: str, message: str
) -> None:
    machine = MACHINE + "value.loop_limit = 1000\n"
    done = run_as_rank(conditional_program, case, run_dir=tmp_path, sink="null", machine=machine)
    assert done.returncode == 70
    assert message in done.stderr
    assert "hint: " in done.stderr
