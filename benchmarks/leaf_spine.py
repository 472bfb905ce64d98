"""Random messages between the hosts of a leaf-spine network: a pure flow problem, for the core and for its referee."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

HOSTS_PER_LEAF, SPINES = 16, 8
HOST_BYTES_PER_S, SPINE_BYTES_PER_S = 12.5e9, 25e9
LATENCY_NS = 5_000
DURATION_NS = 20_000_000
"""Over which the messages start."""


class Message(NamedTuple):
    start_ns: int
    source: int
    target: int
    size_bytes: int


@dataclass
class LeafSpine:
    """100 Gb/s hosts, 16 to a leaf, 8 spines at twice the rate; each pair of hosts has one path."""

    hosts: int
    messages: list[Message]
    capacities: list[float]
    """Of the links, in bytes/s."""
    paths: dict[tuple[int, int], list[int]]
    """Links from source to target."""

    @classmethod
    def random(cls, hosts: int, messages: int, seed: int = 1) -> LeafSpine:
        chance = random.Random(seed)
        leaves = -(-hosts // HOSTS_PER_LEAF)
        trunks = leaves * SPINES
        capacities = [HOST_BYTES_PER_S] * (2 * hosts) + [SPINE_BYTES_PER_S] * (2 * trunks)
        problem = cls(hosts, [], capacities, {})
        for source in range(hosts):
            for target in range(hosts):
                path = [source, hosts + target]  # up, down
                from_leaf, to_leaf = source // HOSTS_PER_LEAF, target // HOSTS_PER_LEAF
                if from_leaf != to_leaf:
                    spine = chance.randrange(SPINES)
                    path += [2 * hosts + from_leaf * SPINES + spine, 2 * hosts + trunks + to_leaf * SPINES + spine]
                problem.paths[source, target] = path
        for number in range(messages):
            source, target = chance.sample(range(hosts), 2)
            size_bytes = chance.randrange(10_000, 10_000_000)
            problem.messages.append(Message(number * DURATION_NS // messages, source, target, size_bytes))
        return problem
