"""How fast the simulator core is: `python -m benchmarks.core`.

Every line is one synthetic load in a fresh simulation, in CPU time of this thread: a busy machine shows little.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator

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


def all_to_all(hosts: int, messages: int) -> Callable[[], int]:
    """Random messages over a leaf-spine network of 100 Gb/s hosts, 16 to a leaf, 8 spines."""
    chance = random.Random(1)
    network = Network()
    up = [network.add_link(12.5 * GB) for _ in range(hosts)]
    down = [network.add_link(12.5 * GB) for _ in range(hosts)]
    leaves, spines = -(-hosts // 16), 8
    climb = [[network.add_link(25 * GB) for _ in range(spines)] for _ in range(leaves)]
    descend = [[network.add_link(25 * GB) for _ in range(spines)] for _ in range(leaves)]
    simulation = Simulation(hosts, network)
    for host in range(hosts):
        for stream in range(8):
            simulation.define_stream(host, stream, 0)
    batches: list[list[bytes]] = [[] for _ in range(hosts)]
    for number in range(1, messages + 1):
        source, target = chance.sample(range(hosts), 2)
        path = [up[source], down[target]]
        if source // 16 != target // 16:
            spine = chance.randrange(spines)
            path += [climb[source // 16][spine], descend[target // 16][spine]]
        simulation.define_comm(number, 2)
        message = Activity(chance.randrange(10_000, 10_000_000), 5_000, [(link, 1.0) for link in path])
        simulation.define_group(source, number, number, 0, [(1, message)], [])
        simulation.define_group(target, number, number, 1, [], [0])
        when = number * 20_000_000 // messages
        for host in (source, target):
            batches[host].append(record(COLLECTIVE, when, stream=number % 8, a=number))

    def work() -> int:
        for host in range(hosts):
            simulation.feed(host, b"".join(batches[host]))
            simulation.close_rank(host)
        simulation.advance()
        assert len(simulation.take_timeline().kind) == 2 * messages
        return 2 * messages

    return work


def lines() -> Iterator[str]:
    for ranks, batch in ((1, 1000), (8, 1000), (64, 10)):
        count, seconds = timed(kernels(ranks, batch, 1_000_000))
        yield f"compute only, {ranks:2} ranks, batches of {batch:4}: {count / seconds / 1e6:6.2f} million events/s"
    count, seconds = timed(fsdp(1024, 64))
    yield f"FSDP-like, 1024 ranks: {count} flow changes, {count / seconds:10,.0f} a second"
    for messages in (2_000, 8_000):
        count, seconds = timed(all_to_all(128, messages))
        yield f"leaf-spine, 128 hosts: {count} flow changes, {count / seconds:10,.0f} a second"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
