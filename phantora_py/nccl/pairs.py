"""Sends and receives, and the collectives that NCCL makes of them: all-to-all, gather, scatter.

A message is split over channels: one for each 64 KiB, up to a pair's share of the communicator's channels, and more
of them from 16 MiB a channel on; between nodes a pair has two, or one in a large communicator, and one for each NIC
of a GPU. Up to 16 KiB a channel it goes with LL. (NCCL v2.30.7, src/enqueue.cc.)
"""

from __future__ import annotations

from dataclasses import dataclass

from phantora_py.nccl.algorithm import Protocol
from phantora_py.nccl.group import Group

_LEAST_PART = 64 << 10
_MOST_PART = 16 << 20
_LL_PART = 16 << 10
_NETWORK_CHANNELS = 2
_PCIE_CHANNELS = 2


@dataclass(frozen=True)
class Split:
    """How one message between two members goes."""

    channels: int
    protocol: Protocol


def split(group: Group, size_bytes: int, *, between: bool) -> Split:
    """Of a message between two members of the group, in one domain or between two."""
    total = all_channels(group)
    if between:
        channels = _NETWORK_CHANNELS
        while channels * group.size > total and channels > 1:
            channels //= 2
        channels = min(max(channels, group.nics_each), max(1, -(-size_bytes // _LEAST_PART)))
    else:
        most = total if group.has_nvlink else _PCIE_CHANNELS
        least = most
        while least * group.size > total and least > 1:
            least //= 2
        channels = min(least, max(1, -(-size_bytes // _LEAST_PART)))
        while size_bytes > _MOST_PART * channels and channels <= most // 2:
            channels *= 2
    return Split(channels, Protocol.LL if size_bytes <= channels * _LL_PART else Protocol.SIMPLE)


def all_channels(group: Group) -> int:
    """Of all sends of a GPU together: the power of two that holds the channels of rings."""
    return 1 << (group.channels - 1).bit_length()
