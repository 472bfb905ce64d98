"""Lays a cluster's links out in netsim: one link a port and direction, and those of the fabric between the nodes.

NVLink or PCIe port of each GPU, pair links of an NVLink mesh, and both directions of every cable of the fabric.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from phantora_netsim import Network
from phantora_py.cluster import Cluster, Device
from phantora_py.fabric.routes import Routes, Weights
from phantora_py.fabric.sections import RailFabric
from phantora_py.fabric.wiring import Indices

Load = dict[int, float]
"""Link id → weight: how many times the transfer's common rate the link carries."""


class Topology:
    """The links of one cluster; all ids belong to `network`."""

    def __init__(self, cluster: Cluster, network: Network) -> None:
        self.cluster = cluster
        self.network = network
        self._capacity: list[float] = []
        self._names: list[str] = []
        self._ports_out = self._ports("out")
        self._ports_in = self._ports("in")
        self._pairs = self._mesh() if self.is_mesh else np.empty((0, 0, 0), dtype=np.int64)
        self._first_cable = len(self._capacity)
        self._wiring = cluster.wiring
        for number, capacity in enumerate(self._wiring.capacities):
            self._link(capacity, self._wiring.link_name(number))
        self._routes = Routes(self._wiring)
        self._change_capacities()
        self._add_background()

    @property
    def is_mesh(self) -> bool:
        return self.cluster.node.nvlink.kind == "mesh" and self.cluster.node.gpus > 1

    @property
    def port_bytes_per_s(self) -> float:
        """What one GPU sends within its node, over all its links."""
        if self.cluster.node.nvlink.kind == "none":
            return self.cluster.node.pcie.bandwidth_GBps * 1e9
        return self.cluster.nvlink_bytes_per_s

    def capacity(self, link: int) -> float:
        """Bytes per second; of a cable that changes, the most that it ever has."""
        return self._capacity[link]

    def name(self, link: int) -> str:
        """For people: node0.gpu3 out, node0.nic3 > leaf0."""
        return self._names[link]

    def is_cable(self, link: int) -> bool:
        """Whether a link is of a NIC or the fabric, not within an NVLink domain."""
        return link >= self._first_cable

    def domain(self, device: Device) -> int:
        """The NVLink domain: a node, or several that NVLink joins."""
        return device.node // self.cluster.node.nvlink.nodes

    def nics(self, device: Device) -> tuple[int, ...]:
        """Numbers of the NICs of its node that the device uses."""
        return tuple(self.cluster.nics_of(device.local))

    def path(self, source: Device, target: Device) -> Load:
        """Links of a point-to-point transfer; empty on one device."""
        return self._sends(np.array([source]), np.array([target]), 1.0)

    def hop(self, source: Device, target: Device, weight: float = 1.0) -> Load:
        """Links from one GPU to another of its NVLink domain."""
        load = {self.port_out(source): weight, self.port_in(target): weight}
        if self.is_mesh:
            load[self.pair(source, target)] = weight
        return load

    def wire(self, source_node: int, source_nic: int, target_node: int, target_nic: int) -> Load:
        """Links from one NIC to another; data that change rails leave by the NIC of the target's rail."""
        nics = self.cluster.node.nics.count
        source_nic = target_nic if self._forwards else source_nic
        return self._over_fabric(
            np.array([source_node * nics + source_nic]), np.array([target_node * nics + target_nic]), np.ones(1)
        )

    def extra_latency_ns(self, source: Device, target: Device) -> int:
        """Of the fabric between two devices, over NCCL's own network latency, which includes one switch."""
        if self.domain(source) == self.domain(target):
            return 0
        fabric = self.cluster.fabric
        leaves_by = self._nic(Device(source.node, target.local) if self._forwards else source)
        switches = int(self._routes.switches(np.array([leaves_by]), np.array([self._nic(target)]))[0])
        return round((fabric.latency_us + (switches - 1) * fabric.switch_latency_us) * 1000)

    def all_pairs(self, members: Sequence[Device], weight: float) -> Load:
        """All links when each member sends `weight` to each other one."""
        devices = np.array(members)
        source, target = (place.ravel() for place in np.indices((len(members), len(members))))
        return self._sends(devices[source], devices[target], weight)

    def nic_out(self, device: Device) -> int:
        return self._first_cable + int(self._wiring.access[self._nic(device)])

    def nic_in(self, device: Device) -> int:
        return self._first_cable + int(self._wiring.access[self._nic(device)] ^ 1)

    def port_out(self, device: Device) -> int:
        return int(self._ports_out[device])

    def port_in(self, device: Device) -> int:
        return int(self._ports_in[device])

    def pair(self, source: Device, target: Device) -> int:
        """The own link of two GPUs in an NVLink mesh."""
        return int(self._pairs[source.node, source.local, target.local])

    def _sends(self, sources: Indices, targets: Indices, weight: float) -> Load:
        """Devices (rows of node, local) that send `weight` each; nothing from one to itself."""
        domain = self.cluster.node.nvlink.nodes
        inside = sources[:, 0] // domain == targets[:, 0] // domain
        moves = inside & (sources != targets).any(axis=1)
        load = self._hops(sources[moves], targets[moves], weight)
        if inside.all():
            return load
        source, target = sources[~inside], targets[~inside]
        nics = np.array([self.cluster.nics_of(gpu) for gpu in self._gpus])
        into = nics[target[:, 1]]
        out = into if self._forwards else nics[source[:, 1]]
        per_gpu = nics.shape[1]
        share = np.full(len(source), weight / per_gpu)
        first_out, first_in = (device[:, 0] * self.cluster.node.nics.count for device in (source, target))
        for place in range(per_gpu):
            _add(load, self._over_fabric(first_out + out[:, place], first_in + into[:, place], share))
        if self.cluster.node.nvlink.kind == "none":
            _add(load, self._hops(source, target, weight))  # PCIe carries it to the NIC and from it
        if self._forwards:
            _add(load, self._forwarding(source, out[:, 0], nics[:, 0], weight))
        return load

    @cached_property
    def _forwards(self) -> bool:
        """Whether NCCL hands data over NVLink to the GPU that sits on the target's rail (PXN)."""
        return isinstance(self.cluster.fabric, RailFabric) and self.cluster.node.nvlink.kind != "none"

    def _forwarding(self, sources: Indices, out: Indices, nics: Indices, weight: float) -> Load:
        """Hops to the GPUs whose NICs (`nics` of each GPU of a node) are those by which the data leave."""
        other = nics[sources[:, 1]] != out
        through = np.stack([sources[other, 0], np.searchsorted(nics, out[other])], axis=1)
        return self._hops(sources[other], through, weight)

    def _hops(self, sources: Indices, targets: Indices, weight: float) -> Load:
        """Hops within NVLink domains, of `weight` each."""
        load: Load = {}
        used = [self._ports_out[tuple(sources.T)], self._ports_in[tuple(targets.T)]]
        if self.is_mesh:
            used.append(self._pairs[sources[:, 0], sources[:, 1], targets[:, 1]])
        for links in used:
            ids, counts = np.unique(links, return_counts=True)
            _add(load, dict(zip(ids.tolist(), (counts * weight).tolist(), strict=True)))
        return load

    def _over_fabric(self, sources: Indices, targets: Indices, weights: Weights) -> Load:
        load = self._routes.load(sources, targets, weights)
        return {self._first_cable + int(link): float(load[link]) for link in np.flatnonzero(load)}

    def _nic(self, device: Device) -> int:
        """The first that the device uses, among those of all nodes."""
        return device.node * self.cluster.node.nics.count + self.nics(device)[0]

    def _ports(self, direction: str) -> Indices:
        """Of each node and GPU."""
        return np.array(
            [
                [self._link(self.port_bytes_per_s, f"node{node}.gpu{gpu} {direction}") for gpu in self._gpus]
                for node in range(self.cluster.nodes)
            ]
        )

    def _mesh(self) -> Indices:
        """Of each node and two GPUs; -1 from one to itself."""
        share = self.port_bytes_per_s / (len(self._gpus) - 1)
        links = np.full((self.cluster.nodes, len(self._gpus), len(self._gpus)), -1, dtype=np.int64)
        for node, a, b in np.ndindex(links.shape):
            if a != b:
                links[node, a, b] = self._link(share, f"node{node}.gpu{a} > gpu{b}")
        return links

    @property
    def _gpus(self) -> range:
        return range(self.cluster.node.gpus)

    def _link(self, bytes_per_s: float, name: str) -> int:
        self._capacity.append(bytes_per_s)
        self._names.append(name)
        return self.network.add_link(bytes_per_s)

    def _change_capacities(self) -> None:
        for change in self.cluster.fabric.link:
            if change.from_ns > 0:
                for number, rate in self._wiring.changed(change):
                    link = self._first_cable + number
                    self.network.change_capacity(change.from_ns, link, rate)
                    self._capacity[link] = max(self._capacity[link], rate)

    def _add_background(self) -> None:
        number = {name: place for place, name in enumerate(self._wiring.nic_names)}
        for traffic in self.cluster.fabric.background:
            ends = [np.array([number[name]]) for name in (traffic.from_nic, traffic.to_nic)]
            self.network.add_background(
                list(self._over_fabric(ends[0], ends[1], np.ones(1)).items()),
                self._wiring.ports.rate(traffic.bandwidth_Gbps, 0),
                traffic.from_ns,
                traffic.until_ns,
            )


def _add(load: Load, part: Load) -> None:
    for link, weight in part.items():
        load[link] = load.get(link, 0.0) + weight
