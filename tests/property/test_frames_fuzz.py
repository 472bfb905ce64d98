"""Damaged frames of a recorded job, fed to a simulator in the middle of it: each is accepted, or refused with a message
and no trace. As test_core_fuzz.py, with two jobs instead of two cores, and damage on its way through the socket.

`python tests/property/test_frames_fuzz.py INPUTS [SEED]` does more of it.
"""

from __future__ import annotations

import random
import struct
import sys
import time
from functools import cache
from pathlib import Path

from fake_rank import packed
from mutation import Mutation

from phantora_py.engines import FusedEngine
from phantora_py.fields import Fields
from phantora_py.frames import EVERYONE, FrameReader, FrameType, ProtocolError, data_address, frame
from phantora_py.job import Job, JobError
from phantora_py.recording import Recording, in_turn, interleave

RECORDING = Path(__file__).parent / "recordings" / "ddp-4-ranks"
CI_INPUTS = 8_000
CI_STREAMS = 20_000
INPUTS_PER_JOB = 300


class Collected:
    """An outbox that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes]] = []

    def send(self, rank: int, data: bytes) -> None:
        self.sent.append((rank, data))

    def refuse(self, rank: int, reason: str) -> None:
        self.sent.append((rank, reason.encode()))


class Times:
    """An observer that keeps what has happened."""

    def __init__(self) -> None:
        self.ends: list[bytes] = []

    def observe(self, timeline: object, marks: object) -> None:
        for item, names in (
            (timeline, ("rank", "definition", "start_ns", "end_ns")),
            (marks, ("rank", "time_ns", "a")),
        ):
            self.ends += [getattr(item, name).tobytes() for name in names]


class Side:
    """A job and what comes out of it."""

    def __init__(self, recording: Recording) -> None:
        self.outbox, self.times = Collected(), Times()
        self.job = Job(recording.cluster, recording.placements, engine(), self.outbox)
        self.job.observers.append(self.times)

    def pump(self) -> str:
        """Why it cannot go on, or nothing."""
        try:
            self.job.pump()
        except JobError as failure:
            return str(failure)
        return ""

    def facts(self) -> list[object]:
        ranks = range(self.job.world_size)
        clocks = [self.job.clock_ns(rank) for rank in ranks]
        defined = self.job.definitions
        streams = [dict(streams) for streams in defined.streams]
        comms = [(comm.text, comm.size, comm.members) for comm in defined.communicators.values()]
        groups = [(group.text, group.size, group.members) for group in defined.host_groups.values()]
        waits = [self.job.is_waiting(), self.job.is_at_an_end(), self.job.diagnosis({})]
        return [clocks, streams, comms, groups, *waits]


@cache
def engine() -> FusedEngine:
    return FusedEngine(recording().cluster.gpu)


@cache
def recording() -> Recording:
    return Recording.read(RECORDING)


def extra_frames(definitions: list[bytes]) -> list[tuple[int, bytes]]:
    """Kinds that the recording lacks."""
    comms = [Fields.decode(payload, "DEFINE").table for payload in definitions]
    numbers = [table["data"] for table in comms if table["t"] == "comm"]
    data = [
        struct.pack("<QQIIII", number, 0, 0, target, 1, 0) + b"value" for number in numbers for target in (1, EVERYONE)
    ]
    return [
        *((FrameType.DATA, payload) for payload in data),
        (FrameType.OUTSIDE, packed(what="key 'x' of a TCPStore")),
        (FrameType.OUTSIDE, packed(what="")),
        (FrameType.DEFINE, packed(t="comm_abort", id=1)),
        (
            FrameType.DEFINE,
            packed(t="host_group", id=1, uid=b"h", size=4, index=0, what="gloo:barrier", ranks=[0, 1, 2, 3]),
        ),
        (FrameType.DEFINE, packed(t="comm", id=2, uid=b"new", size=2, index=0, device=0, data=77, name="pg")),
        (FrameType.DEFINE, packed(t="collective", id=99, comm=1, op="group", peers=[["send", 1, 64], ["recv", 1, 64]])),
    ]


def refused_by(job: Job, rank: int, kind: int, payload: bytes) -> str | None:
    try:
        job.frame(rank, kind, payload)
    except ProtocolError as error:
        return str(error)
    return None


def fuzz_one_job(seed: int, inputs: int) -> int:
    """How many were refused."""
    chance, mutation = random.Random(seed), Mutation(seed)
    frames = [
        item for item in interleave(recording(), in_turn(recording())) if item[1] in (FrameType.DEFINE, FrameType.BATCH)
    ]
    middle = chance.randrange(len(frames))
    tried, spared = Side(recording()), Side(recording())
    for rank, kind, payload in frames[:middle]:
        tried.job.frame(rank, kind, payload)
        spared.job.frame(rank, kind, payload)
    assert tried.pump() == spared.pump() == ""
    others = extra_frames([payload for _rank, kind, payload in frames[:middle] if kind == FrameType.DEFINE])
    refused = 0
    for _ in range(inputs):
        rank, kind, payload = chance.choice(frames[middle : middle + 40] or frames)
        if chance.random() < 0.3:
            kind, payload = chance.choice(others)
        damaged = mutation.records(payload) if kind == FrameType.BATCH else mutation.bytes(payload)
        if chance.random() < 0.02:
            kind = chance.choice([*FrameType, 99])
        refusal = refused_by(tried.job, rank, kind, damaged)
        if refusal is not None:
            assert refusal
            refused += 1
            if chance.random() < 0.1:
                assert tried.facts() == spared.facts()
            continue
        spared.job.frame(rank, kind, damaged)
        failure = tried.pump()
        assert failure == spared.pump()
        assert tried.outbox.sent == spared.outbox.sent
        if failure:
            break
    assert tried.facts() == spared.facts()
    for side in (tried, spared):
        side.job.finish()
    assert tried.facts() == spared.facts()
    assert tried.outbox.sent == spared.outbox.sent
    assert tried.times.ends == spared.times.ends
    return refused


def fuzz(inputs: int, first_seed: int = 0) -> tuple[int, int]:
    """How many inputs there were, at the most, and how many were refused."""
    rounds = -(-inputs // INPUTS_PER_JOB)
    return rounds * INPUTS_PER_JOB, sum(fuzz_one_job(first_seed + number, INPUTS_PER_JOB) for number in range(rounds))


def test_damaged_frames_are_accepted_or_leave_no_trace() -> None:
    inputs, refused = fuzz(CI_INPUTS)
    assert inputs // 10 < refused < inputs


def test_damaged_streams_are_cut_into_frames_or_refused() -> None:
    """Whatever the cut, the reader says the same; and it never keeps more than a frame may have."""
    mutation = Mutation(5)
    stream = b"".join(frame(FrameType(kind), payload) for kind, payload in recording().streams[0])
    refused = 0
    for _ in range(CI_STREAMS):
        start = mutation.chance.randrange(len(stream))
        damaged = mutation.bytes(stream[start : start + 200] if mutation.chance.random() < 0.2 else stream[:200])
        cut = mutation.chance.randrange(len(damaged) + 1)
        whole, pieces = read([damaged]), read([damaged[:cut], damaged[cut:]])
        assert whole == pieces
        refused += isinstance(whole[-1], str)
    assert CI_STREAMS // 20 < refused < CI_STREAMS


def read(pieces: list[bytes]) -> list[object]:
    """Frames, with the addresses of DATA frames; the message of a refusal last."""
    reader, found = FrameReader(), list[object]()
    try:
        for piece in pieces:
            for kind, payload in reader.feed(piece):
                found.append((kind, payload, data_address(payload) if kind == FrameType.DATA else None))
    except ProtocolError as error:
        return [*found, str(error)]
    return [*found, reader.pending_bytes]


if __name__ == "__main__":
    started_s = time.monotonic()
    print(fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0), f"{time.monotonic() - started_s:.0f} s")
