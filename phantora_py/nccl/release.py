"""The constants of NCCL's tuner, by release: what it believes, which decides what it takes.

Sources: NCCL v2.18.3, v2.21.5, v2.23.4, v2.27.3, v2.28.9 and v2.30.7, src/graph/tuning.cc. Microseconds, and GB/s of
10^9 bytes. Three values of a latency are for LL, LL128, Simple; three of a bandwidth for 1, 2 and more nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from phantora_py.nccl.algorithm import Algorithm

Three = tuple[float, float, float]
_NONE: Three = (0.0, 0.0, 0.0)

LATEST = "2.30"


@dataclass(frozen=True)
class Release:
    """Latencies by algorithm; bandwidths by generation (Volta, Ampere, Hopper, Blackwell)."""

    base_us: Mapping[Algorithm, Three]
    nvlink_us: Mapping[Algorithm, Three]
    pci_us: Mapping[Algorithm, Three]
    network_us: Mapping[Algorithm, Three]
    ll_GBps: tuple[Three, ...]
    """LL at the most."""
    ring_ll128_GBps: tuple[Three, ...]
    """A channel's, as all below."""
    tree_ll128_GBps: tuple[Three, ...]
    tree_GBps: tuple[Three, ...]
    nvls_tree_GBps: tuple[Three, ...]
    nvls_efficiency: tuple[float, float, float, float]
    has_pat: bool = True
    ring_ll_share: float = 1 / 2
    """Of a ring's bandwidth, with LL."""
    lone_ll128_share: float = 0.92
    """Of a ring's bandwidth, with LL128 and one GPU a node."""


def _of(
    tree: Three, ring: Three, direct: float, chain: float, nvls: float, nvls_tree: float, pat: Three
) -> Mapping[Algorithm, Three]:
    return MappingProxyType(
        {
            Algorithm.TREE: tree,
            Algorithm.RING: ring,
            Algorithm.COLLNET_DIRECT: (0.0, 0.0, direct),
            Algorithm.COLLNET_CHAIN: (0.0, 0.0, chain),
            Algorithm.NVLS: (0.0, 0.0, nvls),
            Algorithm.NVLS_TREE: (0.0, 0.0, nvls_tree),
            Algorithm.PAT: pat,
        }
    )


_RING_BASE: Three = (6.6, 14.0, 8.4)
_RING_NVLINK: Three = (0.6, 1.9, 3.4)
_RING_PCI: Three = (1.0, 2.5, 5.7)
_RING_NETWORK: Three = (2.7, 4.0, 14.0)

_V2_30 = Release(
    base_us=_of((6.8, 14.0, 8.4), _RING_BASE, 0, 0, 0, 0, (8.0, 8.0, 8.0)),
    nvlink_us=_of((0.6, 1.25, 4.0), _RING_NVLINK, 3.7, 2.8, 25, 25, (0, 0, 4.0)),
    pci_us=_of((1.0, 1.9, 4.0), _RING_PCI, 3.7, 2.8, 0, 0, (0, 0, 4.0)),
    network_us=_of((5.0, 8.5, 14.0), _RING_NETWORK, 31, 30, 18, 20.9, (0, 0, 14.0)),
    ll_GBps=((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0)),
    ring_ll128_GBps=((20.0,) * 3, (20.0,) * 3, (36.7,) * 3, (40.0,) * 3),
    tree_ll128_GBps=((20.0,) * 3, (20.0,) * 3, (36.7, 36.7, 29.0), (55.6, 31.67, 20.0)),
    tree_GBps=((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0), (70.0, 42.8, 24.0)),
    nvls_tree_GBps=((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (0.0, 57.7, 45.5), (0.0, 96.0, 80.0)),
    nvls_efficiency=(0.0, 0.0, 0.85, 0.74),
)
_V2_28 = replace(
    _V2_30,
    ring_ll128_GBps=(*_V2_30.ring_ll128_GBps[:3], (73.4, 34.6, 73.4)),
    nvls_tree_GBps=(*_V2_30.nvls_tree_GBps[:3], (0.0, 96.0, 43.8)),
)
"""2.28 and 2.29."""
_V2_27 = replace(
    _V2_28,
    base_us=_of((6.8, 14.0, 8.4), _RING_BASE, 0, 0, 0, 0, _NONE),
    network_us=_of((5.0, 8.5, 14.0), _RING_NETWORK, 31, 30, 18, 14, (0, 0, 14.0)),
    ring_ll128_GBps=(*_V2_28.ring_ll128_GBps[:3], (73.4,) * 3),
    tree_ll128_GBps=(*_V2_28.tree_ll128_GBps[:3], (73.4, 73.4, 58.0)),
    tree_GBps=(*_V2_28.tree_GBps[:3], (77.4, 82.8, 72.0)),
    nvls_tree_GBps=((1000.0,) * 3,) * 4,
)
"""2.23 to 2.27. NVLSTree has no cap of its own."""
_V2_19 = replace(
    _V2_27,
    base_us=_of((6.8, 14.0, 0), _RING_BASE, 0, 0, 0, 0, _NONE),
    nvlink_us=_of((0.6, 1.25, 28.0), _RING_NVLINK, 3.7, 2.8, 25, 25, _NONE),
    pci_us=_of((1.0, 1.9, 28.0), _RING_PCI, 3.7, 2.8, 0, 0, _NONE),
    network_us=_of((5.0, 8.5, 28.0), _RING_NETWORK, 31, 30, 18, 14, _NONE),
    has_pat=False,
    lone_ll128_share=0.7,
)
"""2.19 to 2.22."""
_V2_18 = replace(
    _V2_19,
    base_us=_of((6.8, 14.0, 0), _RING_BASE, 0, 0, 23, 23, _NONE),
    nvlink_us=_of((0.6, 1.25, 4.0), _RING_NVLINK, 8, 4.75, 0, 0, _NONE),
    pci_us=_of((1.0, 1.9, 6.0), _RING_PCI, 8, 8, 0, 0, _NONE),
    network_us=_of((5.0, 8.5, 14.0), _RING_NETWORK, 10.7, 14, 18, 19, _NONE),
    ll_GBps=(*_V2_28.ll_GBps[:2], (87.7, 22.5, 19.0), _V2_28.ll_GBps[3]),
    ring_ll_share=1 / 4,
)

_SINCE = ((30, _V2_30), (28, _V2_28), (23, _V2_27), (19, _V2_19), (18, _V2_18))
"""Minor release of NCCL 2 → what holds from it on."""
OLDEST = f"2.{_SINCE[-1][0]}"


def release(version: str) -> Release:
    """The constants of a version, "2.21" or "2.21.5". Raises ValueError."""
    parts = version.split(".")
    minor = int(parts[1]) if len(parts) in (2, 3) and all(part.isdigit() for part in parts) else -1
    if parts[0] == "2":
        for since, constants in _SINCE:
            if minor >= since:
                return constants
    raise ValueError(f"NCCL version {version!r} is not known\n  hint: {OLDEST} or later, like {LATEST!r}")
