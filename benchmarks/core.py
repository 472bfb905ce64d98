"""How fast the simulator core is: `python -m benchmarks.core`.

Every line is one synthetic load in a fresh simulation, in CPU time of this thread: a busy machine shows little.
"""

from __future__ import annotations

import ctypes
import struct
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from benchmarks.leaf_spine import LATENCY_NS, LeafSpine
from benchmarks.referee import NoReferee, judge
from phantora_netsim import Activity, Network, Simulation

KERNEL, COLLECTIVE, SYNC = 1, 4, 5
GB = 1e9


def record(kind: int, delta_ns: int, *, stream: int = 0, a: int = 0, b: int = 0) -> bytes:
    return struct.pack("<BBHIQQQ", kind, 0, 0, stream, delta_ns, a, b)


def timed(work: Callable[[], int]) -> tuple[int, float]:
    start = time.thread_time()
    count = work()
    return count, time.thread_time() - start


def kernels(ranks: int, batch_records: int, total: int) -> Callable[[], int]:
    """Compute only: batches of kernels, each ended by a synchronisation that is answered at once."""
    simulation = Simulation(ranks, Network())
    for rank in range(ranks):
        simulation.define_stream(rank, 0, 0)
        simulation.define_kernel(rank, 1, 5_000, 2_000)
    batch = b"".join(record(KERNEL, 4_000 * number, a=1) for number in range(batch_records - 1))
    batch += record(SYNC, 4_000 * batch_records, b=1)

    def work() -> int:
        for turn in range(total // batch_records // ranks):
            for rank in range(ranks):
                simulation.feed(rank, batch)
            simulation.advance()
            if turn % 20 == 0:
                simulation.take_timeline()
        return total

    return work


def fsdp(ranks: int, layers: int) -> Callable[[], int]:
    """Ranks in groups of 8 that gather among each other, and one ring of everybody, over NVLink and a NIC each."""
    network = Network()
    nvlinks = [network.add_link(450 * GB) for _ in range(ranks)]
    nics = [network.add_link(50 * GB) for _ in range(ranks)]
    simulation = Simulation(ranks, network)
    for rank in range(ranks):
        for stream in (0, 1, 2):
            simulation.define_stream(rank, stream, 0)
        simulation.define_kernel(rank, 1, 50_000 + 7 * (rank % 11), 2_000)
    ring = Activity(200_000_000, 50_000, [(nic, 2.0) for nic in nics])
    simulation.define_comm(0, ranks)
    for rank in range(ranks):
        simulation.define_collective(rank, 1, 0, rank, 1, ring)
    for group in range(0, ranks, 8):
        members = range(group, min(group + 8, ranks))
        inner = Activity(30_000_000, 20_000, [(nvlinks[rank], 1.75) for rank in members])
        simulation.define_comm(1 + group, len(members))
        for member, rank in enumerate(members):
            simulation.define_collective(rank, 2, 1 + group, member, 1, inner)

    def work() -> int:
        for rank in range(ranks):
            records = []
            for layer in range(layers):
                records.append(record(COLLECTIVE, 10_000 * layer, stream=1, a=2))
                records.append(record(KERNEL, 10_000 * layer + 4_000, a=1))
                if layer % 8 == 0:
                    records.append(record(COLLECTIVE, 10_000 * layer + 8_000, stream=2, a=1))
            simulation.feed(rank, b"".join(records))
            simulation.close_rank(rank)
        simulation.advance()
        collectives = sum(simulation.take_timeline().kind == COLLECTIVE)
        assert collectives == ranks * (layers + -(-layers // 8))
        return 2 * (layers * (ranks // 8) + -(-layers // 8))

    return work


def leaf_spine(problem: LeafSpine) -> tuple[Simulation, Callable[[], int]]:
    """Its messages, each on a stream of its own and with nobody to match, as SimGrid has them: two changes each."""
    network = Network()
    for capacity in problem.capacities:
        network.add_link(capacity)
    simulation = Simulation(problem.hosts, network)
    batches: list[list[bytes]] = [[] for _ in range(problem.hosts)]
    for number, (start_ns, source, target, size_bytes) in enumerate(problem.messages):
        links = [(link, 1.0) for link in problem.paths[source, target]]
        simulation.define_comm(number, 1)
        simulation.define_collective(source, number, number, 0, 1, Activity(size_bytes, LATENCY_NS, links))
        simulation.define_stream(source, number, 0)
        batches[source].append(record(COLLECTIVE, start_ns, stream=number, a=number))

    def work() -> int:
        for host in range(problem.hosts):
            simulation.feed(host, b"".join(batches[host]))
            simulation.close_rank(host)
        simulation.advance()
        return 2 * len(problem.messages)

    return simulation, work


def compare(problem: LeafSpine, seconds: float, ends_ns: dict[int, int]) -> str:
    """With SimGrid: how much faster, and how far the ends are apart for each change of rates that a message may see."""
    referee_s, referee_ends_ns = judge(problem)
    starts = sorted(message.start_ns + LATENCY_NS for message in problem.messages)
    changes = sorted([*starts, *ends_ns.values()])
    worst = 0.0
    for number, message in enumerate(problem.messages):
        seen = bisect_right(changes, ends_ns[number]) - bisect_left(changes, message.start_ns + LATENCY_NS)
        worst = max(worst, abs(ends_ns[number] - referee_ends_ns[number]) / seen)
    apart = max(abs(ends_ns[number] - referee_ends_ns[number]) for number in ends_ns)
    return (
        f"  SimGrid takes {referee_s / seconds:.1f} times as long (goal: 10); ends at most {apart:.1f} ns apart, "
        f"{worst:.3f} ns a change of rates (goal: 1)"
    )


def data_parallel(ranks: int, iterations: int, deliver: Callable[[Simulation, list[bytes]], None]) -> Callable[[], int]:
    """Iterations of 20 layers whose gradients are reduced beside the backward pass, each ended by a synchronisation."""
    network = Network()
    links = [network.add_link(450 * GB) for _ in range(ranks)]
    simulation = Simulation(ranks, network)
    simulation.define_comm(1, ranks)
    reduce = Activity(20_000_000, 20_000, [(link, 1.75) for link in links])
    for rank in range(ranks):
        for stream in (0, 1):
            simulation.define_stream(rank, stream, 0)
        simulation.define_kernel(rank, 1, 90_000 + 100 * rank, 2_000)
        simulation.define_collective(rank, 1, 1, rank, 1, reduce)
    starts = range(0, 160_000, 8_000)
    layers = (record(KERNEL, start, a=1) + record(COLLECTIVE, start, stream=1, a=1) for start in starts)
    batch = b"".join(layers) + record(SYNC, 200_000, stream=1, b=1)

    def work() -> int:
        for _ in range(iterations):
            deliver(simulation, [batch] * ranks)
        simulation.take_timeline()
        return iterations * ranks * 41

    return work


def in_order(simulation: Simulation, batches: list[bytes]) -> None:
    for rank, batch in enumerate(batches):
        simulation.feed(rank, batch)
    simulation.advance()


def adversarial(simulation: Simulation, batches: list[bytes]) -> None:
    """Rank after rank, the last first, each as if the others were silent for good."""
    for rank in reversed(range(len(batches))):
        simulation.feed(rank, batches[rank])
        simulation.speculate()
    simulation.take_corrections()


def pending_event_bytes(events: int) -> float:
    """Heap for each kernel that waits behind a rank that has said nothing."""
    simulation = Simulation(2, Network())
    simulation.define_stream(0, 0, 0)
    simulation.define_kernel(0, 1, 5_000, 2_000)
    simulation.define_comm(1, 2)
    simulation.define_collective(0, 1, 1, 0, 1, Activity(0, 1_000, []))
    simulation.feed(0, record(COLLECTIVE, 0, a=1) + record(SYNC, 0, b=1))
    batch = b"".join(record(KERNEL, 10 * number, a=1) for number in range(1_000))
    before = heap_bytes()
    for _ in range(events // 1_000):
        simulation.feed(0, batch)
        batch = b"".join(record(KERNEL, 10_000, a=1) for _ in range(1_000))
    simulation.advance()
    return (heap_bytes() - before) / events


class MallInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")),
        *((name, ctypes.c_size_t) for name in ("uordblks", "fordblks", "keepcost")),
    ]


def heap_bytes() -> int:
    """In use, of this process."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


def lines() -> Iterator[str]:
    for ranks, batch in ((1, 1000), (8, 1000), (64, 10)):
        count, seconds = timed(kernels(ranks, batch, 1_000_000))
        yield f"compute only, {ranks:2} ranks, batches of {batch:4}: {count / seconds / 1e6:6.2f} million events/s"
    count, seconds = timed(fsdp(1024, 64))
    yield f"FSDP-like, 1024 ranks: {count} flow changes, {count / seconds:10,.0f} a second"
    times = {}
    for deliver in (in_order, adversarial):
        count, times[deliver] = timed(data_parallel(64, 100, deliver))
        yield f"data parallel, 64 ranks, {deliver.__name__:11}: {count / times[deliver] / 1e6:6.2f} million events/s"
    ratio = times[adversarial] / times[in_order]
    yield f"  adversarial delivery with speculation costs {ratio:.1f} times as much (goal: 3)"
    yield f"pending events: {pending_event_bytes(1_000_000):.1f} bytes each"
    for messages in (2_000, 8_000):
        problem = LeafSpine.random(128, messages)
        simulation, work = leaf_spine(problem)
        count, seconds = timed(work)
        yield f"leaf-spine, 128 hosts: {count} flow changes, {count / seconds:10,.0f} a second"
        nodes = simulation.take_timeline()
        try:
            ends_ns = dict(zip(nodes.definition.tolist(), nodes.end_ns.tolist(), strict=True))
            yield compare(problem, seconds, ends_ns)
        except NoReferee as reason:
            yield f"  not compared: {reason}"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
