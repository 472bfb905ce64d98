"""What is said of jobs whose ranks do not do the same: each kind of mistake, in records as the runtime sends them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_rank import EVENT_RECORD, LANE_BEGIN, STREAM_WAIT, SYNC, FakeEngine, FakeRank, packed, record

from phantora_py.cluster import load_cluster
from phantora_py.frames import FrameType, ProtocolError
from phantora_py.job import Job, JobError
from phantora_py.outbox import NullOutbox
from phantora_py.placement import Placement

RECORDING = 1
"""Target of a SYNC."""

Program = Callable[[list[FakeRank]], None]
CLUSTER = load_cluster("dgx-h100")


def job_of(ranks: list[FakeRank]) -> Job:
    """Fed with what the ranks have sent, a frame of each in turn."""
    job = Job(CLUSTER, [Placement(rank.rank, 0, rank.rank, 0) for rank in ranks], FakeEngine(), NullOutbox())
    for turn in range(max(len(rank.frames) for rank in ranks)):
        for rank in ranks:
            if turn < len(rank.frames):
                job.frame(rank.rank, *rank.frames[turn])
    return job


def accused(program: Program, size: int = 3) -> str:
    """What is said at once, without waiting for the job to stand still."""
    ranks = [FakeRank(rank) for rank in range(size)]
    program(ranks)
    with pytest.raises(JobError) as failure:
        job_of(ranks).pump()
    return str(failure.value)


def stuck(program: Program, size: int = 3, *, ended: tuple[int, ...] = ()) -> list[str]:
    """What is said of a job in which nothing can move."""
    ranks = [FakeRank(rank) for rank in range(size)]
    program(ranks)
    job = job_of(ranks)
    for rank in ended:
        job.close(rank)
    job.pump()
    while job.speculate():
        pass
    assert job.is_waiting()
    job.check_agreement()
    return job.diagnosis(dict.fromkeys(ended, 0)).split("\n  ")


def world(rank: FakeRank, size: int, name: bytes = b"world") -> int:
    return rank.comm(name, size, rank.rank, rank.rank)


def each(call: Callable[[FakeRank, int], None]) -> Program:
    """`call(rank, its number of the communicator)` and a synchronisation, on every rank."""

    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            call(rank, world(rank, len(ranks)))
            rank.sync(at=100)

    return program


# --- disagreements: certain, and said at once


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            ("all_reduce", 4096, {"redop": "sum"}),
            ("broadcast", 4096, {"root": 0}),
            "rank 2 calls broadcast of 1,024 float32 (4,096 bytes), root rank 0\n    "
            "ranks 0, 1 call all_reduce of 1,024 float32 (4,096 bytes), sum",
        ),
        (
            ("all_reduce", 4096, {"redop": "sum"}),
            ("all_reduce", 8192, {"redop": "sum"}),
            "rank 2 calls all_reduce of 2,048 float32 (8,192 bytes), sum\n    "
            "ranks 0, 1 call all_reduce of 1,024 float32 (4,096 bytes), sum",
        ),
        (
            ("all_reduce", 4096, {"redop": "sum"}),
            ("all_reduce", 4096, {"redop": "max"}),
            "rank 2 calls all_reduce of 1,024 float32 (4,096 bytes), max\n    "
            "ranks 0, 1 call all_reduce of 1,024 float32 (4,096 bytes), sum",
        ),
        (
            ("broadcast", 4096, {"root": 0}),
            ("broadcast", 4096, {"root": 2}),
            "rank 2 calls broadcast of 1,024 float32 (4,096 bytes), root rank 2\n    "
            "ranks 0, 1 call broadcast of 1,024 float32 (4,096 bytes), root rank 0",
        ),
        (
            ("all_gather", 4096, {}),
            ("all_gather", 4096, {"dtype": "int32"}),
            "rank 2 calls all_gather of 1,024 int32 (4,096 bytes)\n    "
            "ranks 0, 1 call all_gather of 1,024 float32 (4,096 bytes)",
        ),
    ],
    ids=["operation", "size", "reduction", "root", "type"],
)
def test_one_rank_calls_something_else(
    right: tuple[str, int, dict[str, object]], wrong: tuple[str, int, dict[str, object]], said: str
) -> None:
    def call(rank: FakeRank, comm: int) -> None:
        rank.collective(comm, "all_reduce", 4, at=0)
        op, size_bytes, more = wrong if rank.rank == 2 else right
        rank.collective(comm, op, size_bytes, at=10, **more)

    assert f"collective 1 of communicator 1 (ranks 0-2):\n    {said}\n" in accused(each(call))


def test_two_collectives_in_another_order() -> None:
    def call(rank: FakeRank, comm: int) -> None:
        calls = ["all_gather", "all_reduce"]
        for op in reversed(calls) if rank.rank == 1 else calls:
            rank.collective(comm, op, 4096, at=0)

    said = accused(each(call))
    assert "collective 0 of communicator 1 (ranks 0-2):\n    rank 1 calls all_reduce" in said
    assert "collective 1 of communicator 1 (ranks 0-2):\n    rank 1 calls all_gather" in said


def test_a_message_of_another_size() -> None:
    def call(rank: FakeRank, comm: int) -> None:
        if rank.rank < 2:
            rank.group(comm, [["recv", 0, 4096] if rank.rank else ["send", 1, 8192]], at=0)

    assert (
        "message 0 from rank 0 to rank 1 on communicator 1 (ranks 0-2):\n    "
        "rank 0 sends 8,192 bytes, rank 1 receives 4,096 bytes"
    ) in accused(each(call))


def test_a_signal_that_nobody_gives() -> None:
    def program(ranks: list[FakeRank]) -> None:
        comm = ranks[2].comm(b"channel", 3, 2, 2, ranks=[0, 1, 2], name="symmetric memory, channel 0")
        ranks[2].group(comm, [["recv", 1, 0]], at=0, op="stores", eager=1)
        ranks[2].sync(at=1)

    said = stuck(program, ended=(0, 1))
    assert (
        "rank 2 waits, since 0.000000 s, for signal 0 of rank 1 in symmetric memory, channel 0 (ranks 0-2): "
        "no put_signal or barrier has given it"
    ) in said


def test_members_that_have_not_all_come_disagree_when_nothing_moves() -> None:
    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comm = world(rank, 3)
            if rank.rank < 2:
                rank.collective(comm, "all_reduce", 4096 << rank.rank, at=0)
                rank.sync(at=1)

    ranks = [FakeRank(rank) for rank in range(3)]
    program(ranks)
    job = job_of(ranks)
    job.pump()
    with pytest.raises(JobError, match=r"rank 0 calls all_reduce of 1,024(?s:.*)rank 1 calls all_reduce of 2,048"):
        job.check_agreement()


# --- ranks that do not come


def all_reduce_by(*callers: int) -> Program:
    def call(rank: FakeRank, comm: int) -> None:
        if rank.rank in callers:
            rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")

    return each(call)


WAIT_FOR_2 = (
    "ranks 0, 1 wait, since 0.000000 s, for collective 0 of communicator 1 (ranks 0-2), "
    "all_reduce of 1,024 float32 (4,096 bytes), sum: rank 2 has not come"
)


def test_a_rank_that_has_ended() -> None:
    assert stuck(all_reduce_by(0, 1), ended=(2,)) == [
        WAIT_FOR_2,
        "rank 2: has ended (exit code 0)",
        "so it is rank 2, which has ended, that the others wait for",
    ]


def test_a_rank_that_calls_one_more() -> None:
    def call(rank: FakeRank, comm: int) -> None:
        for time in range(3 if rank.rank == 1 else 2):
            rank.collective(comm, "all_reduce", 4096, at=time, redop="sum")

    assert stuck(each(call), ended=(0, 2)) == [
        "rank 1 waits, since 0.000000 s, for collective 2 of communicator 1 (ranks 0-2), "
        "all_reduce of 1,024 float32 (4,096 bytes), sum: ranks 0, 2 have not come",
        "ranks 0, 2: has ended (exit code 0)",
        "so it is rank 0, which has ended, that the others wait for",
    ]


def test_a_rank_that_aborted_the_communicator() -> None:
    def program(ranks: list[FakeRank]) -> None:
        all_reduce_by(0, 1)(ranks)
        ranks[2].abort(1, at=0)

    lines = stuck(program, ended=(2,))
    assert lines[0] == WAIT_FOR_2.replace("rank 2 has not come", "rank 2 has aborted the communicator")


def test_a_rank_that_waits_outside() -> None:
    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comm = world(rank, 3)
            if rank.rank < 2:
                rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")
                rank.sync(at=100)
        ranks[2].frames.append((FrameType.OUTSIDE, packed(what="key 'go' of a TCPStore")))

    assert stuck(program) == [
        WAIT_FOR_2,
        "rank 2: waits outside CUDA and NCCL, for key 'go' of a TCPStore",
        "so it is rank 2, which is elsewhere, that the others wait for",
    ]


def test_a_rank_that_uses_another_gpu_than_before() -> None:
    def program(ranks: list[FakeRank]) -> None:
        all_reduce_by(0, 1)(ranks)
        ranks[2].frames.append((FrameType.OUTSIDE, packed(what="key '/default_pg/0//cuda//1' of a TCPStore")))

    lines = stuck(program)
    assert lines[-2].startswith("hint: rank 2 set up one more NCCL communicator of the group")
    assert "Fewer ranks than GPUs on a node" in lines[-1]


def test_a_condition_that_hangs_on_what_comes_after_the_launch() -> None:
    def program(ranks: list[FakeRank]) -> None:
        what = "the value that a conditional node of a CUDA graph asks for"
        ranks[0].frames.append((FrameType.OUTSIDE, packed(what=what)))
        ranks[1].frames.append((FrameType.OUTSIDE, packed(what="key 'go' of a TCPStore")))

    lines = stuck(program, 2)
    assert lines[-1].startswith("hint: rank 0 launched a CUDA graph whose condition")


def test_a_send_without_a_receive() -> None:
    def program(ranks: list[FakeRank]) -> None:
        comms = [world(rank, 2) for rank in ranks]
        ranks[0].group(comms[0], [["send", 1, 4096]], at=0)
        ranks[0].sync(at=1)

    assert stuck(program, 2, ended=(1,)) == [
        "rank 0 waits, since 0.000000 s, for send 0 to rank 1 on communicator 1 (ranks 0, 1), "
        "4,096 bytes: the receive has not come",
        "rank 1: has ended (exit code 0)",
        "so it is rank 1, which has ended, that the others wait for",
    ]


def test_a_receive_without_a_send() -> None:
    def program(ranks: list[FakeRank]) -> None:
        comms = [world(rank, 2) for rank in ranks]
        ranks[1].group(comms[1], [["recv", 0, 4096]], at=0)
        ranks[1].sync(at=1)

    assert stuck(program, 2, ended=(0,))[0] == (
        "rank 1 waits, since 0.000000 s, for receive 0 from rank 0 on communicator 1 (ranks 0, 1), "
        "4,096 bytes: the send has not come"
    )


def test_both_send_first() -> None:
    """Each host waits for its send before it posts the receive."""

    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comm = world(rank, 2)
            rank.group(comm, [["send", 1 - rank.rank, 4096]], at=0)
            rank.sync(at=1)

    assert stuck(program, 2)[-1] == ("so ranks 0, 1 wait for one another: they make their calls in different orders")


def test_ranks_that_forgot_to_set_their_device() -> None:
    ranks = [FakeRank(rank) for rank in range(3)]
    for rank in ranks:
        rank.comm(b"world", 3, rank.rank, min(rank.rank, 1))
    with pytest.raises(JobError, match=r"ranks 1, 2 use one GPU in communicator 1 \(ranks 0-2\), which NCCL refuses"):
        job_of(ranks).pump()


# --- orders that do not fit


def test_two_communicators_the_other_way_round() -> None:
    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comms = [world(rank, 2, name) for name in (b"first", b"second")]
            for comm in reversed(comms) if rank.rank else comms:
                rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")
                rank.sync(at=100)

    call = "all_reduce of 1,024 float32 (4,096 bytes), sum"
    assert stuck(program, 2) == [
        f"rank 0 waits, since 0.000000 s, for collective 0 of communicator 1 (ranks 0, 1), {call}: rank 1 has not come",
        f"rank 1 waits, since 0.000000 s, for collective 0 of communicator 2 (ranks 0, 1), {call}: rank 0 has not come",
        "so ranks 0, 1 wait for one another: they make their calls in different orders",
    ]


def test_two_communicators_the_other_way_round_on_one_stream() -> None:
    """Nobody waits in between: both have come everywhere, but the streams stand."""

    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comms = [world(rank, 2, name) for name in (b"first", b"second")]
            for comm in reversed(comms) if rank.rank else comms:
                rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")
            rank.sync(at=100)

    lines = stuck(program, 2)
    assert lines[0].endswith(
        "communicator 1 (ranks 0, 1), all_reduce of 1,024 float32 (4,096 bytes), sum: rank 1 has other work before it"
    )
    assert lines[-1] == "so ranks 0, 1 wait for one another: they make their calls in different orders"


def test_a_host_side_barrier_against_a_collective() -> None:
    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comm, hosts = world(rank, 2), rank.host_group(b"hosts", 2, rank.rank)
            if rank.rank:
                rank.host_sync(hosts, at=50)
            else:
                rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")
                rank.sync(at=100)

    assert stuck(program, 2) == [
        "rank 0 waits, since 0.000000 s, for collective 0 of communicator 1 (ranks 0, 1), "
        "all_reduce of 1,024 float32 (4,096 bytes), sum: rank 1 has not come",
        "rank 1 waits, since 0.000000 s, for gloo barrier of 2 members with ranks 0, 1, round 0: rank 0 has not come",
        "so ranks 0, 1 wait for one another: they make their calls in different orders",
    ]


def test_a_communicator_that_only_some_set_up() -> None:
    def program(ranks: list[FakeRank]) -> None:
        ranks[0].host_sync(ranks[0].host_group(b"new", 2, 0, "comm_init"), at=0)
        ranks[1].host_sync(ranks[1].host_group(b"new", 2, 1, "comm_init"), at=0)
        ranks[2].host_sync(ranks[2].host_group(b"other", 2, 0, "comm_init"), at=0)

    assert stuck(program, ended=(0, 1)) == [
        "rank 2 waits, since 0.000000 s, for the set-up of an NCCL communicator of 2 members with rank 2, round 0: "
        "member 1 has not come",
        "ranks 0, 1: has ended (exit code 0)",
    ]


def test_a_collective_on_a_communicator_that_not_all_have_joined() -> None:
    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks[:2]:
            rank.collective(world(rank, 3), "all_reduce", 4096, at=0)
            rank.sync(at=100)

    assert stuck(program, ended=(2,))[0] == (
        "ranks 0, 1 wait for communicator 1 (ranks 0, 1) to be set up: member 2 has not come"
    )


# --- waits behind waits


def test_an_event_behind_a_collective_that_never_starts() -> None:
    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comm = world(rank, 3)
            if rank.rank < 2:
                rank.stream(1)
                rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")
                rank.batch(record(EVENT_RECORD, 1, at=1) + record(STREAM_WAIT, 1, at=2, stream=1))
                rank.batch(record(EVENT_RECORD, 2, at=3, stream=1) + record(SYNC, 2, 9, at=4, flags=RECORDING))

    assert stuck(program, ended=(2,))[0] == WAIT_FOR_2


def test_an_event_that_another_thread_never_records() -> None:
    """A side thread has begun and said nothing: what it does could come first. Its rank waits, then so do all."""

    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comm = world(rank, 2)
            rank.batch(record(LANE_BEGIN, 1, at=0))
            rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")
            if rank.rank:
                rank.sync(at=100)

    ranks = [FakeRank(rank) for rank in range(2)]
    program(ranks)
    job = job_of(ranks)
    job.pump()
    assert job.diagnosis({}).startswith("rank 1 waits, since 0.000000 s, for another of its threads")


def test_a_launch_queue_that_is_full() -> None:
    def program(ranks: list[FakeRank]) -> None:
        for rank in ranks:
            comm = world(rank, 2)
            if rank.rank:
                rank.collective(comm, "all_reduce", 4096, at=0, redop="sum")
                for time in range(1030):
                    rank.kernel("gemm:10", at=time)
                rank.sync(at=2000)

    lines = stuck(program, 2, ended=(0,))
    assert lines[0].startswith("rank 1 waits, since 0.000001 s, for room in a stream's launch queue, which is full: ")
    assert "all_reduce of 1,024 float32 (4,096 bytes), sum: rank 0 has not come" in lines[0]


def test_many_ranks_are_told_together() -> None:
    lines = stuck(all_reduce_by(*range(7)), 8, ended=(7,))
    assert len(lines) == 3
    assert lines[0].startswith("ranks 0-6 wait, since 0.000000 s, for collective 0 of communicator 1 (ranks 0-7), ")


# --- definitions that name ranks


@pytest.mark.parametrize("ranks", [[0, 9], [0, -1], [0, "1"], [0, 1, 1], [1, 0]])
def test_ranks_of_a_communicator_are_those_of_the_job(ranks: list[object]) -> None:
    made = [FakeRank(0), FakeRank(1)]
    made[0].comm(b"channel", 2, 0, 0, ranks=ranks)
    with pytest.raises(ProtocolError, match="communicator with ranks"):
        job_of(made)


@pytest.mark.parametrize("ranks", [[0, 9], [0, -1], [0, "1"]])
def test_ranks_of_a_host_group_are_those_of_the_job(ranks: list[object]) -> None:
    made = [FakeRank(0), FakeRank(1)]
    made[0].define("host_group", id=1, uid=b"h", size=2, index=0, what="gloo:barrier", ranks=ranks)
    with pytest.raises(ProtocolError, match="host group with ranks"):
        job_of(made)
