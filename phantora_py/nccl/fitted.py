"""How fast NCCL is, fitted to measurements: `python -m phantora_py.nccl.calibrate` repeats the fits and prints the
errors.

Three values are for LL, LL128, Simple. An efficiency is the share of a link's rate that data (with the protocol's
flags) gets in a long transfer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Three = tuple[float, float, float]


@dataclass(frozen=True)
class Inside:
    """Within a domain: one generation of NVLink, or PCIe."""

    launch_us: float
    """What the smallest kernel takes, without its hops."""
    hop_us: Three
    """A step from one GPU to the next."""
    efficiency: Three
    """Of rings and trees."""
    edge: float
    """Part of a step in which a GPU only sends or only receives, the first and the last of a ring's."""
    fill_us: float
    """How much longer a long transfer with Simple takes than at its final rate: chunks grow with the message."""
    nvls_us: float
    nvls_efficiency: float
    nvls_fill_us: float
    pair_us: float
    """The smallest send and receive, with LL."""
    peer_us: float
    """What each further peer takes."""
    pair_simple_us: float
    """What Simple takes more than LL."""
    copy_us: float
    """What a member's copy to itself takes in an all-to-all with Simple, besides its bytes."""
    pair_efficiency: float
    pair_fill_us: float
    """As `fill_us`, of sends to several members at once."""
    pair_copy: float
    """What a byte of a member's copy to itself takes, relative to one of a send."""
    channel_GBps: float
    """What one channel carries with Simple."""
    channel_ll_GBps: float
    """The same with LL."""


@dataclass(frozen=True)
class Outside:
    """Between domains: one kind of network."""

    hop_us: Three
    efficiency: Three
    """Of the NICs' payload rate, for rings and trees."""
    fill_us: float
    """As inside."""
    pair_us: float
    """What a send takes more than inside."""
    pair_efficiency: float
    """Of many sends at a time."""
    channel_GBps: float
    """What one channel of a send reaches."""
    tree_hop: float = 1.0
    """What a tree's hop takes, relative to a ring's; presumably because a small ring has more channels, each with a
    connection that the host serves. Where only one of the two was measured, 1."""


INSIDE: Mapping[str, Inside] = MappingProxyType(
    {
        "volta": Inside(
            launch_us=13.7,
            hop_us=(1.0, 3.12, 1.49),
            efficiency=(0.8, 0.655, 1.0),
            edge=0.0962,
            fill_us=10.4,
            nvls_us=25,
            nvls_efficiency=0.8,
            nvls_fill_us=60,
            pair_us=8,
            peer_us=0.4,
            pair_simple_us=3,
            copy_us=3,
            pair_efficiency=0.9,
            pair_fill_us=15,
            pair_copy=0.3,
            channel_GBps=15,
            channel_ll_GBps=5,
        ),
        "ampere": Inside(
            launch_us=10.0,
            hop_us=(0.846, 2.0, 9.76),
            efficiency=(0.739, 0.72, 0.95),
            edge=0.481,
            fill_us=31.8,
            nvls_us=25,
            nvls_efficiency=0.8,
            nvls_fill_us=60,
            pair_us=11.0,
            peer_us=0.64,
            pair_simple_us=1.76,
            copy_us=1.76,
            pair_efficiency=0.9,
            pair_fill_us=58.4,
            pair_copy=0.263,
            channel_GBps=22.5,
            channel_ll_GBps=5.5,
        ),
        "hopper": Inside(
            launch_us=5.2,
            hop_us=(0.8, 2.0, 3.52),
            efficiency=(0.846, 0.9, 1.0),
            edge=0.444,
            fill_us=27.5,
            nvls_us=24.0,
            nvls_efficiency=0.832,
            nvls_fill_us=59.4,
            pair_us=6.4,
            peer_us=0.266,
            pair_simple_us=1.04,
            copy_us=3.0,
            pair_efficiency=0.936,
            pair_fill_us=30.3,
            pair_copy=0.205,
            channel_GBps=21.2,
            channel_ll_GBps=6,
        ),
        "blackwell": Inside(
            launch_us=7.64,
            hop_us=(1.32, 8.37, 4.07),
            efficiency=(0.8, 0.95, 0.95),
            edge=0.586,
            fill_us=15,
            nvls_us=28.4,
            nvls_efficiency=0.616,
            nvls_fill_us=66.0,
            pair_us=8.8,
            peer_us=0.414,
            pair_simple_us=2.31,
            copy_us=2.73,
            pair_efficiency=0.824,
            pair_fill_us=14.2,
            pair_copy=0.703,
            channel_GBps=30.0,
            channel_ll_GBps=6.04,
        ),
        "pcie": Inside(
            launch_us=4.4,
            hop_us=(1.5, 2.5, 6.22),
            efficiency=(0.962, 0.9, 0.962),
            edge=0.199,
            fill_us=15.0,
            nvls_us=25,
            nvls_efficiency=0.8,
            nvls_fill_us=60,
            pair_us=6.56,
            peer_us=0.901,
            pair_simple_us=1.6,
            copy_us=1.68,
            pair_efficiency=0.865,
            pair_fill_us=15,
            pair_copy=0.256,
            channel_GBps=26.0,
            channel_ll_GBps=6.16,
        ),
    }
)
OUTSIDE: Mapping[str, Outside] = MappingProxyType(
    {
        "infiniband": Outside(
            hop_us=(6, 3.91, 3.94),
            efficiency=(0.6, 1.0, 1.0),
            fill_us=15,
            pair_us=18.8,
            pair_efficiency=0.9,
            channel_GBps=25,
        ),
        "efa": Outside(
            hop_us=(29.1, 43.8, 44.0),
            efficiency=(0.0477, 0.6, 0.8),
            fill_us=379.0,
            pair_us=60,
            pair_efficiency=0.8,
            channel_GBps=20,
        ),
        "efa-1": Outside(
            hop_us=(70, 80, 28.7),
            efficiency=(0.2, 0.6, 0.972),
            fill_us=2080.0,
            pair_us=90,
            pair_efficiency=0.8,
            channel_GBps=10,
            tree_hop=0.512,
        ),
        "slingshot": Outside(
            hop_us=(6.88, 41.8, 15),
            efficiency=(0.203, 0.33, 0.75),
            fill_us=20,
            pair_us=23.1,
            pair_efficiency=0.423,
            channel_GBps=20,
            tree_hop=0.465,
        ),
        "ethernet": Outside(
            hop_us=(15.6, 20.4, 31.7),
            efficiency=(0.5, 0.481, 1.0),
            fill_us=30.0,
            pair_us=20,
            pair_efficiency=0.9,
            channel_GBps=8,
        ),
    }
)
