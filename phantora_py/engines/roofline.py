"""Time of kernels that are bound by memory or by a link, and of launches about which only the grid is known."""

from __future__ import annotations

from dataclasses import dataclass

from phantora_py.engines.constants import PAGEABLE_BYTES_PER_S, STRIDED, TRANSFER, TRANSFER_LATENCY_NS, MemoryConstants
from phantora_py.engines.traffic import Traffic
from phantora_py.gpus import Gpu
from phantora_py.signature import Copy, Signature

_BYTES_A_THREAD = 32
"""Guess for a launch of which only grid and block are known: one 16-byte load and one 16-byte store a thread."""


@dataclass(frozen=True, slots=True, order=True)
class Time:
    ns: float = 0.0
    busy_ns: float = 0.0
    """Of it, for how long the memory or the arithmetic of the whole GPU would be busy."""

    def __add__(self, other: Time) -> Time:
        return Time(self.ns + other.ns, self.busy_ns + other.busy_ns)

    def __mul__(self, factor: float) -> Time:
        return Time(self.ns * factor, self.busy_ns * factor)


def memory_time(traffic: Traffic, gpu: Gpu, constants: MemoryConstants, share: float) -> Time:
    """To move an op's bytes.

    The first part, up to a share of the L2 cache, comes from there; the rest at the streaming rate of its kind of
    kernel.
    """
    rate = gpu.hbm_bytes_per_s * share / 1e9
    if traffic.strided:
        rate *= STRIDED
    cached = min(traffic.bytes, gpu.l2_bytes * constants.l2_share)
    moving = cached / (rate * constants.l2_gain) + (traffic.bytes - cached) / rate
    return Time(traffic.launches * constants.floor_ns + moving, moving)


def copy_time(copy: Copy, gpu: Gpu, constants: MemoryConstants) -> Time:
    """A copy or set by the copy engines or by kernels of the driver."""
    if copy.kind in ("d2d", "memset"):
        moved = copy.bytes * (2 if copy.kind == "d2d" else 1)
        return memory_time(Traffic("copy", moved), gpu, constants, constants.streaming)
    link = gpu.nvlink_bytes_per_s if copy.kind == "p2p" and gpu.nvlink_bytes_per_s else gpu.pcie_bytes_per_s
    rate = link * TRANSFER
    if copy.pageable:
        rate = min(rate, PAGEABLE_BYTES_PER_S)
    return Time(TRANSFER_LATENCY_NS + copy.bytes / rate * 1e9)


def launch_bytes(signature: Signature) -> float:
    """Bytes that a raw launch may move, from its number of threads."""
    threads = 1
    for size in (*(signature.grid or ()), *(signature.block or ())):
        threads *= max(size, 1)
    return float(threads * _BYTES_A_THREAD)
