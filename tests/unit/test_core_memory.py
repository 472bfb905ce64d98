"""What is committed is dropped: a long run takes no more memory than a short one."""

import ctypes
import struct

import pytest

from phantora_netsim import Activity, Network, Simulation

KERNEL, EVENT_RECORD, STREAM_WAIT, COLLECTIVE, SYNC = range(1, 6)
EVENT_FORGET = 14
RANKS = 64
COMPUTE, COMMUNICATE = 0, 1


class MallInfo(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")),
        *((name, ctypes.c_size_t) for name in ("uordblks", "fordblks", "keepcost")),
    ]


def heap_bytes() -> int:
    """In use, of this process."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        pytest.skip("this C library has no mallinfo2")
    mallinfo.restype = MallInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


def record(kind: int, delta: int, *, stream: int = COMPUTE, a: int = 0, b: int = 0) -> bytes:
    return struct.pack("<BBHIQQQ", kind, 0, 0, stream, delta, a, b)


def iteration(number: int, rank: int) -> bytes:
    """Gathers beside what was computed before, and computes with what was gathered; ends with a synchronisation."""
    event = 10 * number
    records = [record(KERNEL, 10 * step, a=1 + rank % 3) for step in range(6)]
    records += [
        record(EVENT_RECORD, 70, a=event),
        record(STREAM_WAIT, 71, stream=COMMUNICATE, a=event),
        record(EVENT_FORGET, 72, a=event),
        record(COLLECTIVE, 73, stream=COMMUNICATE, a=1),
        record(EVENT_RECORD, 74, stream=COMMUNICATE, a=event + 1),
        record(KERNEL, 75, a=4),
        record(STREAM_WAIT, 76, a=event + 1),
        record(EVENT_FORGET, 77, a=event + 1),
        record(KERNEL, 78, a=1),
        record(SYNC, 80, b=number),
    ]
    return b"".join(records)


def made() -> Simulation:
    network = Network()
    links = [network.add_link(450e9) for _ in range(RANKS)]
    simulation = Simulation(RANKS, network)
    simulation.define_comm(1, RANKS)
    activity = Activity(1_000_000, 5_000, [(link, 1.75) for link in links])
    for rank in range(RANKS):
        if rank % 2:
            simulation.define_device(rank, 0, 1.25, 1.1)
        for stream in (COMPUTE, COMMUNICATE):
            simulation.define_stream(rank, stream, 0)
        for kernel in range(1, 5):
            simulation.define_kernel(rank, kernel, 1000 * kernel, 500)
        simulation.define_collective(rank, 1, 1, rank, 1, activity)
    return simulation


def test_five_thousand_iterations_take_no_more_memory_than_a_hundred() -> None:
    before = heap_bytes()
    simulation = made()
    nodes = 0
    after: dict[int, int] = {}
    for number in range(1, 5001):
        for rank in range(RANKS):
            simulation.feed(rank, iteration(number, rank))
        assert len(simulation.advance()) == RANKS
        if number % 50 == 0:
            nodes += len(simulation.take_timeline().rank)
        if number in (100, 5000):
            after[number] = heap_bytes() - before
    assert nodes > 4999 * RANKS * 9
    assert after[5000] < 1.1 * after[100]
