"""NCCL's own cost constants, and the formulas of its tuner for rings.

Source: NCCL v2.30.7, src/graph/tuning.cc. Microseconds, and GB/s of 10^9 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Protocol(Enum):
    """How a collective writes: flags with every word, with every 128 bytes, or by chunks."""

    LL = "LL"
    LL128 = "LL128"
    SIMPLE = "Simple"

    @property
    def label(self) -> str:
        return self.value

    @property
    def wire_overhead(self) -> float:
        """Bytes on the wire for a byte of data."""
        return {"LL": 2.0, "LL128": 128 / 120, "Simple": 1.0}[self.value]


_RING_BASE_US = {Protocol.LL: 6.6, Protocol.LL128: 14.0, Protocol.SIMPLE: 8.4}
_RING_NVLINK_US = {Protocol.LL: 0.6, Protocol.LL128: 1.9, Protocol.SIMPLE: 3.4}
_RING_PCI_US = {Protocol.LL: 1.0, Protocol.LL128: 2.5, Protocol.SIMPLE: 5.7}
_RING_NETWORK_US = {Protocol.LL: 2.7, Protocol.LL128: 4.0, Protocol.SIMPLE: 14.0}

_NETWORK_OVERHEAD_US = 1.0
"""Added by the CPU to each network step (Intel); three times that for Simple. It also bounds a step inside a node."""

LL128_EFFICIENCY = 0.92


@dataclass(frozen=True)
class Architecture:
    """Constants of one GPU generation."""

    name: str
    ll_max_GBps: tuple[float, float, float]
    """Ring LL at the most, on 1, 2 and more nodes."""
    ll128_channel_GBps: float
    channels: int
    """Channels of a ring inside a node (PyTorch's port of the model: torch/_inductor/comm_analysis.py, BSD-3)."""
    simple_all_reduce_factor: float
    """Latency of a Simple ring all-reduce over several nodes is this much longer."""

    def ring_latency_ns(self, protocol: Protocol, steps: int, inter_steps: int, *, nvlink: bool) -> int:
        """Latency of a ring of `steps`, of which `inter_steps` cross nodes."""
        overhead = _NETWORK_OVERHEAD_US * (3 if protocol is Protocol.SIMPLE else 1) if inter_steps else 0.0
        intra = (_RING_NVLINK_US if nvlink else _RING_PCI_US)[protocol]
        inter = _RING_NETWORK_US[protocol] + overhead
        latency = _RING_BASE_US[protocol] + (steps - inter_steps) * max(intra, overhead) + inter_steps * inter
        return round(latency * 1000)

    def bandwidth_bytes_per_s(self, protocol: Protocol, ring_bytes_per_s: float, nodes: int) -> float:
        """Bus bandwidth of a ring whose links allow `ring_bytes_per_s`."""
        if protocol is Protocol.LL:
            return min(self.ll_max_GBps[min(nodes, 3) - 1] * 1e9, ring_bytes_per_s / 2)
        if protocol is Protocol.LL128:
            return min(self.ll128_channel_GBps * 1e9 * self.channels, ring_bytes_per_s * LL128_EFFICIENCY)
        return ring_bytes_per_s


VOLTA = Architecture("Volta", (39.0, 39.0, 20.4), 20.0, 12, 1.9)
AMPERE = Architecture("Ampere", (87.7, 22.5, 19.0), 20.0, 24, 1.4)
HOPPER = Architecture("Hopper", (141.0, 45.0, 35.0), 36.7, 16, 1.4)
BLACKWELL = Architecture("Blackwell", (282.0, 90.0, 70.0), 40.0, 32, 1.4)


def architecture(compute_capability: tuple[int, int]) -> Architecture:
    """The generation whose constants NCCL uses for a GPU."""
    major = compute_capability[0]
    if major >= 10:
        return BLACKWELL
    if major == 9:
        return HOPPER
    return AMPERE if major == 8 else VOLTA


def nvlink_bytes_per_s(compute_capability: tuple[int, int], links: int) -> float:
    """What NCCL counts for `links` NVLinks of one GPU, a direction."""
    per_link = {7: 20.0, 8: 20.0, 9: 20.6}.get(compute_capability[0], 40.1)
    if compute_capability == (8, 6):
        per_link = 12.0
    return per_link * 1e9 * links
