"""How the members of a communicator lie on the cluster: domains of NVLink, their NICs, the rates between them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from math import inf

from phantora_py.cluster import Device
from phantora_py.nccl.generation import Generation, generation
from phantora_py.nccl.settings import Settings
from phantora_py.topology import Load, Topology

_MOST_SEARCH_CHANNELS = 16
"""Search channels between nodes, at the most."""


@dataclass(frozen=True)
class Domain:
    """Members that NVLink (or one node's PCIe) joins."""

    members: tuple[Device, ...]
    nics: tuple[tuple[int, int], ...]
    """(node, number) of the NICs that they use."""


class Group:
    """One communicator on one cluster, as NCCL's topology search would see it."""

    def __init__(self, members: tuple[Device, ...], topology: Topology, settings: Settings) -> None:
        self.topology = topology
        self.settings = settings
        self.size = len(members)
        self.domains = _domains(members, topology, settings)
        self.generation: Generation = generation(topology.cluster.gpu.compute_capability)

    @cached_property
    def largest_domain(self) -> int:
        return max(len(domain.members) for domain in self.domains)

    @property
    def nics_each(self) -> int:
        """NICs of a GPU."""
        return min(len(domain.nics) // len(domain.members) for domain in self.domains) or 1

    @property
    def per_domain(self) -> float:
        """NCCL's ppn."""
        return self.size / len(self.domains)

    @property
    def is_single(self) -> bool:
        return len(self.domains) == 1

    @property
    def has_nvlink(self) -> bool:
        """Whether members of a domain talk over NVLink."""
        return self.topology.cluster.node.nvlink.kind != "none" and self.settings.p2p

    @property
    def has_nvls(self) -> bool:
        is_switched = self.topology.cluster.node.nvlink.kind == "nvswitch"
        return self.has_nvlink and is_switched and self.settings.nvls and self.generation.number >= 2

    @property
    def inside_scale(self) -> float:
        """How much more a byte between two GPUs of a node loads their ports than over NVLink."""
        if self.settings.p2p or self.topology.cluster.node.nvlink.kind == "none":
            return 1.0
        return max(1.0, self.topology.port_bytes_per_s / (self.topology.cluster.node.pcie.bandwidth_GBps * 1e9))

    @property
    def search_channels(self) -> int:
        """Channels as NCCL's search finds them, before it doubles them."""
        if self.is_single:
            return self.generation.search_channels if self.has_nvlink else 2
        nics = min(len(domain.nics) for domain in self.domains)
        is_fast = self.topology.cluster.nic_bytes_per_s >= 25e9
        return min(nics * (2 if is_fast and nics <= 4 else 1), _MOST_SEARCH_CHANNELS)

    @property
    def channels(self) -> int:
        natural = self.generation.channels if self.is_single and self.has_nvlink else 2 * self.search_channels
        return self.settings.channels(natural)

    def rate(self, load: Load) -> float:
        """Bytes per second that links alone allow."""
        return min((self.topology.capacity(link) / weight for link, weight in load.items() if weight > 0), default=inf)


def _domains(members: tuple[Device, ...], topology: Topology, settings: Settings) -> tuple[Domain, ...]:
    by_domain: dict[int, list[Device]] = defaultdict(list)
    for member in sorted(set(members)):
        by_domain[topology.domain(member)].append(member)
    return tuple(Domain(tuple(some), _nics(some, topology, settings)) for _, some in sorted(by_domain.items()))


def _nics(members: list[Device], topology: Topology, settings: Settings) -> tuple[tuple[int, int], ...]:
    own = {(member.node, nic) for member in members for nic in topology.nics(member)}
    allowed = {(node, nic) for node, nic in own if settings.uses_nic(nic)}
    if own and not allowed:  # Members of which each is nearest to a NIC that they must not use take one that they may.
        count = topology.cluster.node.nics.count
        allowed = {(node, nic) for node, _ in own for nic in range(count) if settings.uses_nic(nic)}
    return tuple(sorted(allowed or own))
