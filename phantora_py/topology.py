"""Lays a cluster's links out in netsim: one link a port and direction.

NVLink or PCIe port of each GPU, pair links of an NVLink mesh, port of each NIC. The fabric is one non-blocking switch,
so two nodes meet in their NICs' ports only.
"""

from __future__ import annotations

from phantora_netsim import Network
from phantora_py.cluster import Cluster, Device

Load = dict[int, float]
"""Link id → weight: how many times the transfer's common rate the link carries."""


class Topology:
    """The links of one cluster; all ids belong to `network`."""

    def __init__(self, cluster: Cluster, network: Network) -> None:
        self.cluster = cluster
        self.network = network
        self._capacity: list[float] = []
        gpus, nics = cluster.node.gpus, cluster.node.nics.count
        self._port_out = self._per_node(gpus, self.port_bytes_per_s)
        self._port_in = self._per_node(gpus, self.port_bytes_per_s)
        self._nic_out = self._per_node(nics, cluster.nic_bytes_per_s)
        self._nic_in = self._per_node(nics, cluster.nic_bytes_per_s)
        self._pair = self._mesh() if self.is_mesh else {}

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
        """Bytes per second."""
        return self._capacity[link]

    def path(self, source: Device, target: Device) -> Load:
        """Links of a point-to-point transfer; empty on one device."""
        if source == target:
            return {}
        if source.node != target.node:
            return {self.nic_out(source): 1.0, self.nic_in(target): 1.0}
        return self.hop(source, target)

    def hop(self, source: Device, target: Device, weight: float = 1.0) -> Load:
        """Links from one GPU to another of its node."""
        load = {self._port_out[source.node][source.local]: weight, self._port_in[target.node][target.local]: weight}
        if self.is_mesh:
            load[self._pair[source, target]] = weight
        return load

    def nic_out(self, device: Device) -> int:
        return self._nic_out[device.node][self.cluster.nic_of(device.local)]

    def nic_in(self, device: Device) -> int:
        return self._nic_in[device.node][self.cluster.nic_of(device.local)]

    def port_out(self, device: Device) -> int:
        return self._port_out[device.node][device.local]

    def port_in(self, device: Device) -> int:
        return self._port_in[device.node][device.local]

    def pair(self, source: Device, target: Device) -> int:
        """The own link of two GPUs in an NVLink mesh."""
        return self._pair[source, target]

    def _per_node(self, count: int, bytes_per_s: float) -> list[list[int]]:
        return [[self._link(bytes_per_s) for _ in range(count)] for _ in range(self.cluster.nodes)]

    def _mesh(self) -> dict[tuple[Device, Device], int]:
        gpus = range(self.cluster.node.gpus)
        share = self.port_bytes_per_s / (len(gpus) - 1)
        return {
            (Device(node, a), Device(node, b)): self._link(share)
            for node in range(self.cluster.nodes)
            for a in gpus
            for b in gpus
            if a != b
        }

    def _link(self, bytes_per_s: float) -> int:
        self._capacity.append(bytes_per_s)
        return self.network.add_link(bytes_per_s)
