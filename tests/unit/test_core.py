"""The simulator core on small jobs whose times are worked out by hand."""

import struct

import pytest

from phantora_netsim import RECORD_BYTES, Activity, Network, Simulation

KERNEL, EVENT_RECORD, STREAM_WAIT, COLLECTIVE, SYNC, QUERY, EVENT_TIME = range(1, 8)
HOST_SYNC, CLOCK, MARK, LANE_BEGIN, LANE_END, MEMORY, EVENT_FORGET, ABORT = range(8, 16)
STREAM, RECORDING, DEVICE = range(3)
LATER = 1
GB_PER_S = 1e9  # a byte per nanosecond


def record(kind: int, delta: int, *, lane: int = 0, stream: int = 0, a: int = 0, b: int = 0, flags: int = 0) -> bytes:
    return struct.pack("<BBHIQQQ", kind, flags, lane, stream, delta, a, b)


def simulation(ranks: int = 1, links: int = 1, depth: int = 1024) -> Simulation:
    """Streams 0 and 1 on device 0; kernel n lasts n * 100 ns, 7 ns when later; comm 5 of all ranks."""
    network = Network()
    for _ in range(links):
        network.add_link(GB_PER_S)
    made = Simulation(ranks, network, depth)
    made.define_comm(5, ranks)
    for rank in range(ranks):
        for stream in (0, 1):
            made.define_stream(rank, stream, 0)
        for kernel in range(1, 10):
            made.define_kernel(rank, kernel, kernel * 100, 7)
    return made


def define_collective(made: Simulation, definition: int, ranks: list[int], activity: Activity, comm: int = 5) -> None:
    for member, rank in enumerate(ranks):
        made.define_collective(rank, definition, comm, member, 1, activity)


def replies(made: Simulation) -> dict[tuple[int, int], int]:
    answered = made.advance()
    assert not any(reply.speculated for reply in answered)
    return {(reply.rank, reply.request): reply.value for reply in answered}


def finish(made: Simulation, ranks: int) -> dict[tuple[int, int], int]:
    for rank in range(ranks):
        made.close_rank(rank)
    return replies(made)


def spans(made: Simulation) -> list[tuple[int, int, int]]:
    """Rank, start and end of each node."""
    nodes = made.take_timeline()
    return list(zip(nodes.rank.tolist(), nodes.start_ns.tolist(), nodes.end_ns.tolist(), strict=True))


# --- lanes and streams


def test_kernels_follow_one_another_and_a_sync_is_answered_at_once() -> None:
    made = simulation()
    made.feed(0, record(KERNEL, 10, a=1) + record(KERNEL, 20, a=2) + record(KERNEL, 500, a=3, flags=LATER))
    made.feed(0, record(SYNC, 510, b=1) + record(KERNEL, 5, a=1) + record(SYNC, 6, b=2))
    assert replies(made) == {(0, 1): 510, (0, 2): 615}
    assert made.clock_ns(0) == 615
    assert spans(made) == [(0, 10, 110), (0, 110, 310), (0, 500, 507)]  # what ends at the clock is not final yet
    finish(made, 1)
    assert spans(made) == [(0, 515, 615)]


def test_streams_overlap_and_wait_for_recordings() -> None:
    made = simulation()
    made.feed(0, record(KERNEL, 0, a=5) + record(EVENT_RECORD, 1, a=77) + record(KERNEL, 2, a=9))
    made.feed(0, record(KERNEL, 3, stream=1, a=1) + record(STREAM_WAIT, 4, stream=1, a=77))
    made.feed(0, record(KERNEL, 5, stream=1, a=1) + record(SYNC, 6, stream=1, b=1) + record(EVENT_TIME, 0, a=77, b=2))
    assert replies(made) == {(0, 1): 600, (0, 2): 500}


def test_a_wait_is_for_the_recording_made_before_it_not_for_a_later_one() -> None:
    made = simulation()
    made.feed(0, record(KERNEL, 0, a=1) + record(EVENT_RECORD, 0, a=1))
    made.feed(0, record(STREAM_WAIT, 0, stream=1, a=1) + record(KERNEL, 0, a=9) + record(EVENT_RECORD, 0, a=2))
    made.feed(0, record(SYNC, 0, stream=1, b=1) + record(SYNC, 0, flags=RECORDING, a=2, b=2))
    assert replies(made) == {(0, 1): 100, (0, 2): 1000}


def test_a_device_is_drained_when_all_its_streams_are() -> None:
    made = simulation()
    made.define_stream(0, 2, 1)
    made.feed(0, record(KERNEL, 0, a=1) + record(KERNEL, 0, stream=1, a=3) + record(KERNEL, 0, stream=2, a=9))
    made.feed(0, record(SYNC, 0, flags=DEVICE, stream=0, b=1) + record(SYNC, 0, flags=DEVICE, stream=1, b=2))
    assert replies(made) == {(0, 1): 300, (0, 2): 900}


def test_queries_are_honest_for_the_callers_clock() -> None:
    made = simulation()
    made.feed(0, record(KERNEL, 0, a=1) + record(EVENT_RECORD, 0, a=1))
    for request, time in enumerate((99, 100, 101)):
        made.feed(0, record(QUERY, time, flags=RECORDING, a=1, b=request))
    assert replies(made) == {(0, 0): 0, (0, 1): 1, (0, 2): 1}


def test_a_full_launch_queue_holds_the_lane_up_and_what_it_issues_after() -> None:
    made = simulation(depth=2)
    made.feed(0, b"".join(record(KERNEL, time, a=1) for time in (0, 1, 2, 3)) + record(SYNC, 10, b=1))
    assert replies(made) == {(0, 1): 400}
    finish(made, 1)
    assert made.take_timeline().issue_ns.tolist() == [0, 1, 100, 200]


def test_a_side_lane_begins_on_its_parent_and_does_not_move_it() -> None:
    made = simulation()
    made.feed(0, record(LANE_BEGIN, 50, a=3) + record(KERNEL, 60, a=1))
    made.feed(0, record(KERNEL, 5, lane=3, stream=1, a=2) + record(SYNC, 6, lane=3, stream=1, b=1))
    assert replies(made) == {(0, 1): 255}
    made.feed(0, record(SYNC, 70, b=2))
    assert replies(made) == {(0, 2): 160}


def test_lanes_of_a_rank_share_streams_in_the_order_of_time() -> None:
    made = simulation()
    made.feed(0, record(LANE_BEGIN, 0, a=1) + record(KERNEL, 100, a=1) + record(SYNC, 100, b=1))
    assert replies(made) == {}  # the side lane, at 0, could still come before
    assert made.waiting()[0].obstacle.kind == "lane"
    made.feed(0, record(KERNEL, 10, lane=1, a=5) + record(LANE_END, 11, lane=1))
    assert replies(made) == {(0, 1): 610}


def test_marks_come_with_the_end_of_what_is_before_them() -> None:
    made = simulation()
    made.feed(0, record(KERNEL, 0, a=4) + record(MARK, 1, a=1) + record(MEMORY, 2, a=10, b=20))
    finish(made, 1)
    marks = made.take_marks()
    assert list(zip(marks.kind.tolist(), marks.time_ns.tolist(), marks.a.tolist(), marks.b.tolist(), strict=True)) == [
        (MEMORY, 2, 10, 20),
        (MARK, 400, 1, 0),
    ]


# --- communication


def test_a_collective_waits_for_its_last_member_and_ends_for_all() -> None:
    made = simulation(2)
    define_collective(made, 1, [0, 1], Activity(1000, 50, [(0, 1.0)]))
    made.feed(0, record(COLLECTIVE, 10, a=1) + record(SYNC, 20, b=1))
    made.feed(1, record(KERNEL, 0, a=3) + record(COLLECTIVE, 30, a=1) + record(SYNC, 40, b=1))
    assert replies(made) == {(0, 1): 1350, (1, 1): 1350}
    finish(made, 2)
    assert spans(made) == [(1, 0, 300), (0, 10, 1350), (1, 300, 1350)]


def test_a_weight_slows_and_a_cap_limits() -> None:
    for activity, duration in (
        (Activity(1000, 0, [(0, 1.75)]), 1750),
        (Activity(1000, 0, [(0, 0.5)], 1.25e9), 800),
        (Activity(1000, 0, [(0, 1.0), (0, 1.0)]), 2000),
        (Activity(1000, 9, [], 0.5e9), 2009),
        (Activity(0, 9, [(0, 1.0)]), 9),
        (Activity(0, 0, []), 1),
        (Activity(1, 0, [(0, 1.0)], 3e8), 4),  # 3.3 ns, rounded up
    ):
        made = simulation()
        define_collective(made, 1, [0], activity)
        made.feed(0, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
        made.advance()
        finish(made, 1)
        assert spans(made) == [(0, 0, duration)]


def test_two_flows_share_a_link_while_both_last() -> None:
    """A moves 1000 bytes from 0, B 300 from 200: both at half speed until B ends at 800, A at 1300."""
    made = simulation(2)
    for comm, rank, volume in ((8, 0, 1000), (9, 1, 300)):
        made.define_comm(comm, 1)
        made.define_collective(rank, 1, comm, 0, 1, Activity(volume, 0, [(0, 1.0)]))
    made.feed(0, record(COLLECTIVE, 0, a=1))
    made.feed(1, record(COLLECTIVE, 200, a=1))
    finish(made, 2)
    assert spans(made) == [(1, 200, 800), (0, 0, 1300)]


def test_max_min_gives_the_rest_to_who_can_use_it() -> None:
    """Links 0 and 1. A on both, B on 0, C and D on 1: a third each on 1, so B has two thirds of 0."""
    made = simulation(4, links=2)
    uses = [[(0, 1.0), (1, 1.0)], [(0, 1.0)], [(1, 1.0)], [(1, 1.0)]]
    for rank, links in enumerate(uses):
        made.define_comm(10 + rank, 1)
        volume = 600 if rank == 1 else 300
        made.define_collective(rank, 1, 10 + rank, 0, 1, Activity(volume, 0, links))
        made.feed(rank, record(COLLECTIVE, 0, a=1))
    finish(made, 4)
    assert spans(made) == [(rank, 0, 900) for rank in range(4)]


def test_sends_meet_receives_in_order_and_a_launch_ends_with_its_last() -> None:
    made = simulation(2, links=2)
    made.define_group(0, 1, 5, 0, [(1, 7, Activity(100, 0, [(0, 1.0)])), (1, 8, Activity(500, 0, [(1, 1.0)]))], [])
    made.define_group(1, 1, 5, 1, [], [(0, 7)])
    made.define_group(1, 2, 5, 1, [], [(0, 8)])
    made.feed(0, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    made.feed(
        1, record(COLLECTIVE, 10, a=1) + record(SYNC, 10, b=1) + record(COLLECTIVE, 5, a=2) + record(SYNC, 5, b=2)
    )
    assert replies(made) == {(1, 1): 110, (0, 1): 615, (1, 2): 615}


@pytest.mark.parametrize(("receiver_at", "end"), [(0, 121), (110, 121), (121, 121), (500, 500)])
def test_an_eager_send_waits_for_no_receiver(receiver_at: int, end: int) -> None:
    made = simulation(2)
    made.define_group(0, 1, 5, 0, [(1, 7, Activity(100, 11, [(0, 1.0)]))], [], eager=True)
    made.define_group(1, 1, 5, 1, [], [(0, 7)], eager=True)
    made.feed(0, record(COLLECTIVE, 10, a=1) + record(SYNC, 20, b=1))
    made.feed(1, record(COLLECTIVE, receiver_at, a=1) + record(SYNC, receiver_at, b=1))
    assert finish(made, 2) == {(0, 1): 20, (1, 1): end}


def test_eager_sends_both_ways_are_a_barrier() -> None:
    made = simulation(2)
    for rank in range(2):
        signal = Activity(0, 30, [])
        made.define_group(rank, 1, 5, rank, [(1 - rank, 0, signal)], [(1 - rank, 0)], eager=True)
        made.feed(rank, record(COLLECTIVE, 100 * rank, a=1) + record(SYNC, 100 * rank, b=1))
    assert finish(made, 2) == {(0, 1): 130, (1, 1): 100}


def test_who_waits_for_an_eager_send_is_told_who_owes_it() -> None:
    made = simulation(2)
    for rank in range(2):
        signal = Activity(0, 30, [])
        made.define_group(rank, 1, 5, rank, [(1 - rank, 0, signal)], [(1 - rank, 0)], eager=True)
    made.feed(0, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    made.close_rank(1)
    assert replies(made) == {}
    (waiting,) = made.waiting()
    assert (waiting.obstacle.kind, waiting.obstacle.peer, waiting.obstacle.absent) == ("receive", 1, [1])


def test_who_is_missing_at_a_barrier_is_told_though_others_have_met() -> None:
    made, ranks = simulation(4), range(4)
    for rank in ranks:
        others = [other for other in ranks if other != rank]
        signals = [(other, 0, Activity(0, 30, [])) for other in others]
        made.define_group(rank, 1, 5, rank, signals, [(other, 0) for other in others], eager=True)
        if rank != 1:
            made.feed(rank, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    made.close_rank(1)
    assert replies(made) == {}
    assert [(waiting.rank, waiting.obstacle.peer) for waiting in made.waiting()] == [(0, 1), (2, 1), (3, 1)]


def pair(activity: Activity) -> Simulation:
    """Two ranks with collective 1 of that activity, which abort 9 gives up."""
    made = simulation(2)
    define_collective(made, 1, [0, 1], activity)
    for rank in range(2):
        made.define_abort(rank, 9, 5, rank)
    return made


def test_an_abort_ends_what_waits_and_what_comes_later() -> None:
    made = pair(Activity(1000, 0, [(0, 1.0)]))
    made.feed(0, record(COLLECTIVE, 10, a=1) + record(KERNEL, 11, a=1) + record(COLLECTIVE, 12, a=1))
    made.feed(0, record(ABORT, 500, a=9) + record(SYNC, 500, b=1))
    made.feed(0, record(KERNEL, 0, a=1) + record(COLLECTIVE, 1, a=1) + record(SYNC, 1, b=2))
    assert finish(made, 2) == {(0, 1): 601, (0, 2): 701}
    assert spans(made) == [(0, 10, 501), (0, 501, 601), (0, 601, 601), (0, 601, 701), (0, 701, 701)]


def test_an_abort_takes_what_is_under_way_off_the_links_and_the_others_wait_for_it() -> None:
    made = pair(Activity(1000, 0, [(0, 1.0)]))
    made.define_comm(6, 1)
    made.define_collective(1, 2, 6, 0, 1, Activity(1000, 0, [(0, 1.0)]))
    made.feed(0, record(COLLECTIVE, 0, a=1) + record(ABORT, 400, a=9) + record(SYNC, 400, b=1))
    made.feed(1, record(COLLECTIVE, 0, a=1) + record(COLLECTIVE, 0, a=2, stream=1))
    made.feed(1, record(SYNC, 0, b=1, stream=1) + record(SYNC, 0, b=2))
    assert finish(made, 2) == {(0, 1): 401, (1, 1): 1200}  # half its rate until 400, then all of it
    (waiting,) = made.waiting()
    assert (waiting.rank, waiting.request) == (1, 2)
    assert (waiting.obstacle.gone, waiting.obstacle.absent, waiting.obstacle.busy) == ([0], [], [])


@pytest.mark.parametrize(("abort_at", "end"), [(999, 1000), (1000, 1000), (1001, 1000)])
def test_what_has_ended_by_the_time_of_an_abort_has_ended_for_all(abort_at: int, end: int) -> None:
    made = pair(Activity(1000, 0, [(0, 1.0)]))
    for rank in range(2):
        made.feed(rank, record(COLLECTIVE, 0, a=1))
    made.feed(0, record(ABORT, abort_at, a=9))
    made.feed(1, record(SYNC, 0, b=1))
    answers = finish(made, 2)
    assert ((1, 1) in answers) == (abort_at >= 1000)
    assert (0, 0, end) in spans(made)


def test_an_abort_waits_until_others_can_end_nothing_before_it() -> None:
    made = pair(Activity(100, 0, [(0, 1.0)]))
    made.feed(0, record(COLLECTIVE, 0, a=1) + record(ABORT, 400, a=9) + record(SYNC, 400, b=1))
    assert replies(made) == {}
    made.feed(1, record(COLLECTIVE, 300, a=1) + record(SYNC, 300, b=1))
    assert finish(made, 2) == {(0, 1): 400, (1, 1): 400}


@pytest.mark.parametrize(("eager", "answers"), [(False, {(0, 1): 51}), (True, {(0, 1): 50, (1, 1): 110})])
def test_an_abort_ends_messages_but_not_eager_ones(eager: bool, answers: dict[tuple[int, int], int]) -> None:
    made = simulation(2)
    made.define_group(0, 1, 5, 0, [(1, 7, Activity(100, 0, [(0, 1.0)]))], [], eager=eager)
    made.define_group(1, 1, 5, 1, [], [(0, 7)], eager=eager)
    made.define_abort(0, 9, 5, 0)
    made.feed(0, record(COLLECTIVE, 10, a=1) + record(ABORT, 50, a=9) + record(SYNC, 50, b=1))
    made.feed(1, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    assert finish(made, 2) == answers
    assert [waiting.obstacle.gone for waiting in made.waiting()] == ([] if eager else [[0]])


def test_a_rank_may_send_to_itself() -> None:
    made = simulation()
    made.define_group(0, 1, 5, 0, [(0, 1, Activity(100, 5, [(0, 1.0)]))], [(0, 1)])
    made.define_group(0, 2, 5, 0, [], [])
    made.feed(0, record(COLLECTIVE, 0, a=1) + record(COLLECTIVE, 0, a=2) + record(SYNC, 0, b=1))
    assert replies(made) == {(0, 1): 105}


def test_hosts_meet_at_the_last_arrival() -> None:
    made = simulation(2)
    for rank in range(2):
        made.define_host_group(rank, 1, 3, 2, 25)
    made.feed(0, record(HOST_SYNC, 100, a=1, b=1))
    made.feed(1, record(HOST_SYNC, 400, a=1, b=1) + record(KERNEL, 5, a=1))
    assert replies(made) == {(0, 1): 425, (1, 1): 425}
    finish(made, 2)
    assert spans(made) == [(1, 430, 530)]


# --- certainty


def waits_for_a_message() -> Simulation:
    """Rank 0 syncs on a collective that rank 1 took part in; rank 2 has links in common and has said nothing."""
    made = simulation(3)
    made.define_comm(6, 2)
    define_collective(made, 1, [0, 1], Activity(1000, 0, [(0, 1.0)]), comm=6)
    made.define_comm(7, 1)
    made.define_collective(2, 1, 7, 0, 1, Activity(500, 0, [(0, 1.0)]))
    for rank in (0, 1):
        made.feed(rank, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=9))
    return made


def test_nothing_that_another_rank_could_change_is_certain() -> None:
    made = waits_for_a_message()
    assert replies(made) == {}
    assert made.committed_ns == 0
    made.feed(2, record(CLOCK, 999))
    assert replies(made) == {}
    made.feed(2, record(CLOCK, 1000))
    assert replies(made) == {(0, 9): 1000, (1, 9): 1000}  # at 1000 itself nothing can change it any more


def test_a_speculated_answer_is_corrected_when_a_newcomer_changes_it() -> None:
    made = waits_for_a_message()
    guesses = {(reply.rank, reply.value, reply.speculated) for reply in made.speculate()}
    assert guesses == {(0, 1000, True), (1, 1000, True)}
    assert made.speculate() == []  # told once
    made.feed(0, record(KERNEL, 10, a=1) + record(SYNC, 10, b=10))  # the rank goes on from what it was told
    made.feed(2, record(COLLECTIVE, 500, a=1))
    made.close_rank(2)
    assert replies(made) == {(0, 10): 1610}
    corrections = made.take_corrections()
    assert [(c.rank, c.request, c.value) for c in corrections] == [(0, 9, 1500), (1, 9, 1500)]
    assert made.corrected_replies == 2
    assert made.take_corrections() == []


def test_a_speculated_answer_that_was_right_is_not_mentioned_again() -> None:
    made = waits_for_a_message()
    assert len(made.speculate()) == 2
    made.close_rank(2)
    assert replies(made) == {}
    assert made.take_corrections() == []
    assert made.corrected_replies == 0


def test_the_earliest_request_is_speculated_first() -> None:
    made = simulation(3)
    for comm, rank, volume in ((8, 0, 700), (9, 1, 300)):
        made.define_comm(comm, 1)
        made.define_collective(rank, 1, comm, 0, 1, Activity(volume, 0, [(0, 1.0)]))
        made.feed(rank, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    assert [(reply.rank, reply.value) for reply in made.speculate()] == [(1, 600)]
    assert [(reply.rank, reply.value) for reply in made.speculate()] == [(0, 1000)]


# --- diagnosis


def test_a_missing_member_is_named() -> None:
    made = simulation(3)
    define_collective(made, 1, [0, 1, 2], Activity(0, 0, []))
    made.feed(1, record(COLLECTIVE, 5, a=1) + record(SYNC, 6, b=4))
    made.close_rank(0)
    made.close_rank(2)
    assert replies(made) == {}
    assert made.speculate() == []
    (waiting,) = made.waiting()
    assert (waiting.rank, waiting.lane, waiting.request, waiting.since_ns) == (1, 0, 4, 6)
    stopped = waiting.obstacle
    assert (stopped.kind, stopped.name, stopped.sequence) == ("collective", 5, 0)
    assert (stopped.member, stopped.definition, stopped.absent, stopped.busy) == (1, 1, [0, 2], [])


def test_a_missing_receiver_and_a_missing_host_are_named() -> None:
    made = simulation(2)
    made.define_group(0, 1, 5, 0, [(1, 1, Activity(1, 0, [(0, 1.0)]))], [])
    made.define_host_group(1, 1, 3, 2, 0)
    made.define_host_group(0, 1, 3, 2, 0)
    made.feed(0, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    made.feed(1, record(HOST_SYNC, 0, a=1, b=1))
    assert replies(made) == {}
    message, meeting = (waiting.obstacle for waiting in made.waiting())
    assert (message.kind, message.name, message.sequence) == ("send", 5, 0)
    assert (message.member, message.peer, message.absent) == (0, 1, [1])
    assert (meeting.kind, meeting.name, meeting.sequence) == ("host_group", 3, 0)
    assert (meeting.absent, meeting.unheard) == ([0], 0)


def test_what_stands_behind_events_and_streams_is_found() -> None:
    """Rank 0's host waits for an event on a stream that waits for another's event behind a collective."""
    made = simulation(2)
    define_collective(made, 1, [0, 1], Activity(0, 0, []))
    made.feed(0, record(COLLECTIVE, 0, a=1) + record(EVENT_RECORD, 1, a=1) + record(STREAM_WAIT, 2, stream=1, a=1))
    made.feed(0, record(EVENT_RECORD, 3, stream=1, a=2) + record(SYNC, 4, flags=RECORDING, a=2, b=1))
    made.close_rank(1)
    assert replies(made) == {}
    (waiting,) = made.waiting()
    assert (waiting.obstacle.kind, waiting.obstacle.absent) == ("collective", [1])
    assert [obstacle.absent for obstacle in made.held_up(0)] == [[1], [1]]


def test_members_that_disagree_never_start() -> None:
    made = simulation(3)
    for rank, key in enumerate((11, 11, 12)):
        made.define_collective(rank, 1, 5, rank, key, Activity(0, 0, []))
        made.feed(rank, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    assert replies(made) == {}
    assert made.speculate() == []
    assert made.disagrees
    (found,) = made.disagreements()
    assert (found.comm, found.sequence, found.is_message) == (5, 0, False)
    assert found.sides == [[(0, 0, 1), (1, 1, 1)], [(2, 2, 1)]]


def test_nobody_is_accused_before_all_have_come() -> None:
    made = simulation(3)
    for rank, key in enumerate((11, 12)):
        made.define_collective(rank, 1, 5, rank, key, Activity(0, 0, []))
        made.feed(rank, record(COLLECTIVE, 0, a=1))
    assert replies(made) == {}
    assert not made.disagrees
    assert len(made.disagreements()) == 1


def test_a_message_that_is_not_what_the_receiver_wants_never_starts() -> None:
    made = simulation(2)
    made.define_group(0, 1, 5, 0, [(1, 64, Activity(64, 0, [(0, 1.0)]))], [])
    made.define_group(1, 1, 5, 1, [], [(0, 32)])
    for rank in range(2):
        made.feed(rank, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    assert replies(made) == {}
    assert made.speculate() == []
    assert made.disagrees
    (found,) = made.disagreements()
    assert (found.is_message, found.sides) == (True, [[(0, 0, 1)], [(1, 1, 1)]])
    assert [waiting.obstacle.mismatched for waiting in made.waiting()] == [True, True]


# --- refusals


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (b"x" * (RECORD_BYTES + 1), "33 bytes, not a multiple of 32"),
        (record(0, 0), "record 0 of the batch: unknown kind 0"),
        (record(16, 0), "unknown kind 16"),
        (record(CLOCK, 0) + record(KERNEL, 0, a=99), "record 1 of the batch: kernel signature not defined: 99"),
        (record(KERNEL, 0, a=1, stream=9), "stream not defined: 9"),
        (record(KERNEL, 0, a=1, flags=4), "unknown flags 4"),
        (record(KERNEL, 0, a=1, lane=1), "no such lane, or it has ended: 1"),
        (record(COLLECTIVE, 0, a=1), "collective not defined: 1"),
        (record(HOST_SYNC, 0, a=1), "host group not defined: 1"),
        (record(ABORT, 0, a=1), "abort not defined: 1"),
        (record(STREAM_WAIT, 0, a=1), "recording never made, or forgotten: 1"),
        (record(EVENT_RECORD, 0, a=1) * 2, "recording made twice: 1"),
        (
            record(EVENT_RECORD, 0, a=1) + record(EVENT_FORGET, 0, a=1) + record(EVENT_TIME, 0, a=1),
            "recording never made, or forgotten: 1",
        ),
        (record(SYNC, 0, flags=3), "unknown flags 3"),
        (record(CLOCK, 5) + record(CLOCK, 4), "delta_ns goes back, to 4"),
        (record(CLOCK, 2**62), "absurd delta_ns"),
        (record(LANE_BEGIN, 0, a=0), "lane began twice: 0"),
        (record(LANE_BEGIN, 0, a=2**16), "no such lane: 65536"),
        (record(LANE_END, 0) + record(CLOCK, 0), "no such lane, or it has ended: 0"),
    ],
)
def test_a_malformed_batch_is_refused_and_changes_nothing(batch: bytes, message: str) -> None:
    made = simulation()
    with pytest.raises(ValueError, match=message):
        made.feed(0, batch)
    made.feed(0, record(EVENT_RECORD, 1, a=1) + record(KERNEL, 1, a=1) + record(SYNC, 2, b=1))
    assert replies(made) == {(0, 1): 101}


def test_definitions_that_make_no_sense_are_refused() -> None:
    made = simulation(2)
    nothing = Activity(0, 0, [])
    made.define_collective(0, 1, 5, 0, 1, nothing)
    made.define_collective(0, 1, 5, 0, 1, Activity(0, 0, []))  # the same again
    for refused in (
        lambda: made.define_kernel(0, 1, 5, 5),
        lambda: made.define_kernel(0, 99, -1, 5),
        lambda: made.define_kernel(7, 99, 1, 5),
        lambda: made.define_stream(0, 0, 1),
        lambda: made.define_comm(5, 3),
        lambda: made.define_comm(6, 0),
        lambda: made.define_collective(0, 2, 66, 0, 1, nothing),
        lambda: made.define_collective(0, 2, 5, 2, 1, nothing),
        lambda: made.define_collective(1, 2, 5, 0, 1, nothing),  # member 0 is rank 0
        lambda: made.define_collective(0, 2, 5, 0, 1, Activity(1, 0, [(3, 1.0)])),
        lambda: made.define_abort(0, 1, 66, 0),
        lambda: made.define_abort(0, 1, 5, 2),
        lambda: made.define_abort(1, 1, 5, 0),  # member 0 is rank 0
        lambda: made.define_host_group(0, 1, 1, 1, -5),
        lambda: Activity(-1, 0, []),
        lambda: Activity(1, -1, [(0, 1.0)]),
        lambda: Activity(1, 0, []),
        lambda: Activity(1, 0, [(0, 0.0)]),
        lambda: Activity(1, 0, [(0, float("nan"))]),
        lambda: Network().add_link(0.0),
        lambda: Network().add_link(float("inf")),
        lambda: Simulation(0, Network()),
        lambda: made.feed(2, b""),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            refused()


def test_nothing_is_taken_from_a_rank_that_has_ended() -> None:
    made = simulation()
    made.close_rank(0)
    with pytest.raises(ValueError, match="records after its end"):
        made.feed(0, record(CLOCK, 1))


def test_lane_numbers_are_used_again() -> None:
    made = simulation()
    for start in (0, 1000):
        made.feed(0, record(LANE_BEGIN, start, a=1) + record(KERNEL, 1, lane=1, a=1))
        made.feed(0, record(SYNC, 2, lane=1, b=start) + record(LANE_END, 0, lane=1))
    assert finish(made, 1) == {(0, 0): 101, (0, 1000): 1101}
