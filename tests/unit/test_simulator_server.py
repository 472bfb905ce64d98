"""The simulator's socket with fake ranks: replies, values, speculation, garbage, disagreement, the end."""

import os
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_rank import (
    MARK,
    STEP_ENDED,
    FakeEngine,
    FakeRank,
    Peer,
    decoded,
    join_as_launcher,
    packed,
    record,
)

from phantora_py.cluster import load_cluster
from phantora_py.endings import note_ending
from phantora_py.frames import EVERYONE, MAX_PAYLOAD_BYTES, FrameType, frame
from phantora_py.job import Job
from phantora_py.placement import placements
from phantora_py.server import Patience, Server

CLUSTER = load_cluster("dgx-h100")
MEBIBYTE = 1 << 20


class Running:
    """A server in a thread of this process."""

    def __init__(self, run_dir: Path, patience: Patience) -> None:
        self.run_dir = run_dir
        self.server = Server(
            run_dir,
            lambda where, outbox: Job(CLUSTER, where, FakeEngine(), outbox),
            lambda fields: placements(fields, CLUSTER),
            patience,
        )
        self._thread = threading.Thread(target=self.server.serve)
        self._thread.start()
        while not (run_dir / "sim.sock").exists():
            time.sleep(0.002)

    def rank(self, rank: int) -> tuple[Peer, FakeRank]:
        peer, fake = Peer(self.run_dir), FakeRank(rank)
        peer.send(fake.hello())
        return peer, fake

    def stop(self) -> None:
        self.server.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path, Patience(stuck_s=0.3, spinning_s=0.5))
    yield server
    server.stop()
    assert not (tmp_path / "sim.sock").exists()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.002)


def flushed(peer: Peer, fake: FakeRank) -> None:
    peer.send_frames(fake.frames)
    fake.frames.clear()


def test_a_single_rank_gets_the_end_of_its_stream(running: Running) -> None:
    peer, fake = running.rank(0)
    fake.kernel("gemm:1000", at=50)
    fake.kernel("gemm:500", at=60)
    request = fake.sync(at=70)
    flushed(peer, fake)
    assert peer.reply() == (request, 1550, False)


def test_the_socket_is_private(running: Running) -> None:
    assert running.run_dir.stat().st_mode & 0o777 == 0o700
    assert (running.run_dir / "sim.sock").stat().st_mode & 0o777 == 0o600


def test_two_ranks_meet_in_a_collective(running: Running) -> None:
    launcher = join_as_launcher(running.run_dir, 2)
    ends = []
    peers = [running.rank(rank) for rank in range(2)]
    for rank, (peer, fake) in enumerate(peers):
        comm = fake.comm(b"all", 2, rank, rank)
        fake.collective(comm, "all_reduce", MEBIBYTE, at=100 + 1000 * rank)
        fake.sync(at=2000)
        flushed(peer, fake)
    for peer, _fake in peers:
        _request, end_ns, speculated = peer.reply()
        assert not speculated
        ends.append(end_ns)
    assert ends[0] == ends[1] > 2000
    launcher.close()


def test_records_wait_until_all_members_are_known(running: Running) -> None:
    join_as_launcher(running.run_dir, 2)
    (first, zero), (second, one) = running.rank(0), running.rank(1)
    comm = zero.comm(b"late", 2, 0, 0)
    zero.collective(comm, "all_gather", MEBIBYTE, at=10)
    zero.sync(at=20)
    flushed(first, zero)
    time.sleep(0.05)
    comm = one.comm(b"late", 2, 1, 1)
    one.collective(comm, "all_gather", MEBIBYTE, at=10)
    one.sync(at=20)
    flushed(second, one)
    assert first.reply()[1] == second.reply()[1] > 20


def test_values_are_carried_and_kept_for_members_to_come(running: Running) -> None:
    join_as_launcher(running.run_dir, 3)
    peers = [running.rank(rank) for rank in range(3)]
    data = int.from_bytes(b"values\0\0", "little")
    to_everyone = struct.pack("<QQIIII", data, 1, 0, EVERYONE, 1, 0) + b"hello"
    to_one = struct.pack("<QQIIII", data, 2, 0, 2, 1, 0) + b"you"
    for rank in (0, 1):
        peer, fake = peers[rank]
        fake.comm(b"values", 3, rank, rank)
        flushed(peer, fake)
    time.sleep(0.05)
    peers[0][0].send(frame(FrameType.DATA, to_everyone) + frame(FrameType.DATA, to_one))
    assert peers[1][0].receive() == (FrameType.DATA, to_everyone)
    peers[2][1].comm(b"values", 3, 2, 2)
    flushed(*peers[2])
    assert [peers[2][0].receive() for _ in range(2)] == [(FrameType.DATA, to_everyone), (FrameType.DATA, to_one)]


def test_a_rank_is_claimed_once(running: Running) -> None:
    running.rank(0)
    time.sleep(0.05)
    second, _fake = running.rank(0)
    kind, text = second.receive()
    assert kind == FrameType.ABORT
    assert b"rank 0 is process" in text
    assert second.is_closed()


def test_a_rank_outside_the_world_is_turned_away(running: Running) -> None:
    join_as_launcher(running.run_dir, 2)
    peer, _fake = running.rank(2)
    assert b"has no rank 2" in peer.receive()[1]


def test_why_a_job_is_refused_is_told_to_one_rank(running: Running) -> None:
    hello = packed(protocol=1, role="rank", rank=0, pid=1, argv=[], world_size=9, ranks_per_node=8)
    peers = [Peer(running.run_dir) for _ in range(3)]
    for peer in peers[:2]:
        peer.send(frame(FrameType.HELLO, hello) + frame(FrameType.BYE, packed()))
        time.sleep(0.05)
    assert b"9 ranks, 8 on a node, take 2 nodes" in peers[0].receive()[1]
    assert running.server.has_refused
    assert peers[0].is_closed()
    peers[0].close()  # it has told
    assert peers[1].receive() == (FrameType.ABORT, b"")
    peers[2].send(frame(FrameType.HELLO, hello))
    assert peers[2].receive() == (FrameType.ABORT, b"")
    assert running.server.job is None


def test_garbage_does_not_disturb_a_running_job(running: Running) -> None:
    join_as_launcher(running.run_dir, 2)
    (first, zero), (second, one) = running.rank(0), running.rank(1)
    noise = random.Random(7)
    hello = FakeRank(0).hello()
    intruders = [
        os.urandom(1000),
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<IHH", MAX_PAYLOAD_BYTES + 1, 1, 0),
        struct.pack("<IHH", 4, 1, 9),
        frame(FrameType.BATCH, b"x" * 32),
        frame(FrameType.HELLO, b"\xc1"),
        frame(FrameType.HELLO, packed(protocol=2, role="rank", rank=0, pid=1, argv=[])),
        frame(FrameType.HELLO, packed(protocol=1, role="king", rank=0, pid=1, argv=[])),
        frame(FrameType.HELLO, packed(protocol=1, role="rank", rank=-1, pid=1, argv=[])),
        frame(FrameType.HELLO, b"\x81\xa1x\xc7\x01\x05a"),  # an extension type
        frame(FrameType.HELLO, b"\xdf\xff\xff\xff\xff"),  # a map that says it has 2^32 - 1 pairs
        frame(FrameType.HELLO, b"\x91" * 100_000),  # lists in lists
        *(bytes(noise.choices(hello, k=len(hello))) for _ in range(50)),
    ]
    closed = []
    for data in intruders:
        peer = Peer(running.run_dir)
        peer.send(data)
        closed.append(peer)
    Peer(running.run_dir).send(hello[:5])  # half a header, held open
    for rank, (peer, fake) in enumerate(((first, zero), (second, one))):
        comm = fake.comm(b"all", 2, rank, rank)
        fake.collective(comm, "all_reduce", MEBIBYTE, at=100)
        fake.sync(at=200)
        flushed(peer, fake)
    assert first.reply() == second.reply()
    assert all(peer.is_closed() for peer in closed[:12])


@pytest.mark.parametrize(
    "bad",
    [
        (FrameType.BATCH, b"x" * 31),
        (FrameType.BATCH, record(99)),
        (FrameType.BATCH, record(1, 77)),
        (FrameType.DEFINE, packed(t="kernel", id=0)),
        (FrameType.DEFINE, packed(t="nonsense", id=1)),
        (FrameType.DEFINE, packed(t="stream", id=7, device=99)),
        (FrameType.DEFINE, packed(t="collective", id=1, comm=5, op="all_reduce", bytes=4)),
        (FrameType.DEFINE, packed(t="comm", id=1, uid=b"u", size=2, index=2, device=0, data=1)),
        (FrameType.DATA, b"short"),
        (FrameType.DATA, struct.pack("<QQIIII", 1, 1, 0, 1, 1, 0)),
        (FrameType.BYE, packed(peak_allocated_bytes="many")),
        (FrameType.REPLY, b""),
        (FrameType.JOB, packed(world_size=9, ranks=[])),
    ],
)
def test_a_rank_that_breaks_a_rule_is_closed_and_no_other(running: Running, bad: tuple[FrameType, bytes]) -> None:
    join_as_launcher(running.run_dir, 2)
    (first, zero), (second, _one) = running.rank(0), running.rank(1)
    second.send_frames([bad])
    kind, text = second.receive()
    assert kind == FrameType.ABORT
    assert b"cannot understand this rank" in text
    assert second.is_closed()
    zero.kernel("gemm:1000", at=0)
    zero.sync(at=10)
    flushed(first, zero)
    assert first.reply() == (1, 1000, False)


def test_waiting_ranks_get_a_speculated_answer_when_nothing_moves(running: Running) -> None:
    """Rank 2 waits outside the simulator's sight; it could still begin a transfer that slows the other two's down.

    All ranks are this very process, which the simulator does not look at: so nothing of the job ever runs."""
    join_as_launcher(running.run_dir, 3)
    peers = [running.rank(rank) for rank in range(3)]
    for rank, (peer, fake) in enumerate(peers[:2]):
        comm = fake.comm(b"two", 2, rank, rank)
        fake.collective(comm, "all_reduce", MEBIBYTE, at=100)
        fake.sync(at=200)
        flushed(peer, fake)
    for peer, _fake in peers[:2]:
        _request, _end_ns, speculated = peer.reply()
        assert speculated
    assert running.server.job is not None
    assert running.server.job.speculated_answers == 2


def test_members_that_disagree_end_the_job_with_both_sides(running: Running) -> None:
    join_as_launcher(running.run_dir, 2)
    peers = [running.rank(rank) for rank in range(2)]
    for rank, (peer, fake) in enumerate(peers):
        comm = fake.comm(b"all", 2, rank, rank)
        fake.collective(comm, "all_reduce", MEBIBYTE * (1 + rank), at=100)
        fake.sync(at=200)
        flushed(peer, fake)
    for peer, _fake in peers:
        kind, text = peer.receive()
        assert kind == FrameType.ABORT
        assert b"collective 0 of communicator 1 (ranks 0, 1):" in text
        assert b"rank 0 calls all_reduce of 262,144 float32 (1,048,576 bytes)" in text
        assert b"rank 1 calls all_reduce of 524,288 float32 (2,097,152 bytes)" in text
    assert running.server.failure is not None


def test_a_stuck_job_is_told_who_waits_for_what(running: Running) -> None:
    join_as_launcher(running.run_dir, 2)
    (first, zero), (second, one) = running.rank(0), running.rank(1)
    comm = zero.comm(b"all", 2, 0, 0)
    one.comm(b"all", 2, 1, 1)
    zero.collective(comm, "all_reduce", MEBIBYTE, at=0)
    zero.sync(at=10)
    flushed(second, one)
    flushed(first, zero)
    time.sleep(0.05)
    second.send_frames([(FrameType.BYE, packed())])
    second.close()
    kind, text = first.receive()
    assert kind == FrameType.ABORT
    assert b"the job is stuck" in text
    assert b"rank 0 waits, since 0.000000 s, for collective 0" in text
    assert b"rank 1 has not come" in text
    assert b"rank 1: has ended" in text


def test_a_rank_that_goes_without_farewell_is_closed_in_the_job(running: Running) -> None:
    join_as_launcher(running.run_dir, 2)
    (first, zero), (second, _one) = running.rank(0), running.rank(1)
    second.close()
    zero.kernel("gemm:1000", at=0)
    zero.sync(at=10)
    flushed(first, zero)
    assert first.reply() == (1, 1000, False)
    job = running.server.job
    assert job is not None
    wait_until(lambda: job.closed_ranks == {1})


def test_exit_codes_come_from_the_launcher(running: Running) -> None:
    launcher = join_as_launcher(running.run_dir, 2)
    launcher.send(frame(FrameType.EXITED, packed(rank=1, code=-9)))
    wait_until(lambda: running.server.exit_codes == {1: -9})


def test_exit_codes_come_from_parents_where_no_launcher_tells(running: Running) -> None:
    _peer, _rank = running.rank(0)
    wait_until(lambda: running.server.job is not None)
    assert running.server.exit_codes == {}
    note_ending(running.run_dir, os.getpid() + 1, 1)
    note_ending(running.run_dir, os.getpid(), -9)
    assert running.server.exit_codes == {0: -9}


def test_frames_may_come_in_the_smallest_pieces(running: Running) -> None:
    peer, fake = running.rank(0)
    fake.kernel("gemm:1000", at=0)
    fake.batch(record(MARK, STEP_ENDED, at=0))
    fake.sync(at=10)
    for kind, payload in fake.frames:
        for byte in frame(kind, payload):
            peer.send(bytes([byte]))
    assert peer.reply() == (1, 1000, False)


def test_helpers_decode_what_they_pack() -> None:
    assert decoded(packed(a=1, b="two")) == {"a": 1, "b": "two"}
