"""What NCCL knows of a GPU generation: the rate of its NVLinks, the speeds that its search tries, its channels.

Source: NCCL v2.30.7, src/graph/topo.h and search.cc.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Generation:
    name: str
    number: int
    """Row in the tuner's tables."""
    speeds_GBps: tuple[float, ...]
    """Rates of a channel inside a node that the topology search tries, downwards."""
    channels: int
    """Channels of rings inside an NVSwitch node."""
    search_channels: int
    """The same before NCCL doubles them; its tuner's caps are for each of these."""

    def channel_speed(self, port_rate: float, channels: int) -> float:
        """The largest rate at which a port carries so many channels, both in GB/s."""
        return next((speed for speed in self.speeds_GBps if speed * channels <= port_rate), port_rate / channels)


_SPEEDS = (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0)

VOLTA = Generation("volta", 0, _SPEEDS, 12, 6)
AMPERE = Generation("ampere", 1, _SPEEDS, 24, 12)
HOPPER = Generation("hopper", 2, (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0), 24, 12)
BLACKWELL = Generation("blackwell", 3, (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0), 32, 16)


def generation(compute_capability: tuple[int, int]) -> Generation:
    """The generation whose constants NCCL uses for a GPU."""
    major = compute_capability[0]
    if major >= 10:
        return BLACKWELL
    if major == 9:
        return HOPPER
    return AMPERE if major == 8 else VOLTA


def nvlink_bytes_per_s(compute_capability: tuple[int, int], links: int) -> float:
    """What collectives reach over `links` NVLinks of one GPU, a direction.

    NCCL's own figures, but for V100: rings of its NVLinks were measured at 22.5 (vTrain), where NCCL counts 20.
    """
    per_link = {7: 22.5, 8: 20.0, 9: 20.6}.get(compute_capability[0], 40.1)
    if compute_capability == (8, 6):
        per_link = 12.0
    return per_link * 1e9 * links
