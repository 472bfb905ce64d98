"""The NCCL_... variables that matter to time, read as NCCL reads them.

What NCCL refuses is refused here, with its variable and value; what NCCL ignores with a line in its log (a number out
of range) is ignored. Variables without a bearing on time (NCCL_DEBUG) are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from phantora_py.nccl.algorithm import FUNCTIONS, Algorithm, Protocol

Choice = TypeVar("Choice", bound=Enum)
Allowed = Mapping[str, frozenset[Choice]]
"""Collective → what it may use."""


VARIABLES = (
    "NCCL_ALGO",
    "NCCL_COLLNET_ENABLE",
    "NCCL_IB_HCA",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PAT_ENABLE",
    "NCCL_PROTO",
)
"""Those that are read."""

_OTHERS = """
BUFFSIZE CGA_CLUSTER_SIZE CROSS_NIC CTA_POLICY GRAPH_FILE GRAPH_REGISTER IB_DISABLE IB_QPS_PER_CONNECTION
IB_SPLIT_DATA_ON_QPS LL128_BUFFSIZE LL_BUFFSIZE LOCAL_REGISTER MAX_P2P_NCHANNELS MIN_P2P_NCHANNELS MNNVL_ENABLE
NCHANNELS_PER_NET_PEER NET NET_DISABLE_INTRA NET_GDR_LEVEL NET_GDR_READ NET_PLUGIN NSOCKS_PERTHREAD NVLS_NCHANNELS
P2P_DIRECT_DISABLE P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PXN_LEVEL P2P_USE_CUDA_MEMCPY PXN_DISABLE
SHM_DISABLE SINGLE_RING_THRESHOLD SOCKET_IFNAME SOCKET_NTHREADS THREAD_THRESHOLDS TOPO_FILE TUNER_CONFIG_FILE
TUNER_PLUGIN
"""
_NOT_MODELLED = frozenset(f"NCCL_{name}" for name in _OTHERS.split())
"""Those that would change times, and are not."""


class SettingError(ValueError):
    """A variable that NCCL refuses; the message ends in a hint."""


@dataclass(frozen=True)
class Settings:
    """What the environment asks for; the defaults are NCCL's."""

    algorithms: Mapping[str, frozenset[Algorithm]] = field(default_factory=dict)
    """Collective → algorithms it may use; a collective that is not in it may use all."""
    protocols: Mapping[str, frozenset[Protocol]] = field(default_factory=dict)
    min_channels: int | None = None
    max_channels: int | None = None
    threads: int | None = None
    """Of a block, for LL and Simple."""
    p2p: bool = True
    """GPUs of a node reach each other directly; else through host memory."""
    nvls: bool = True
    collnet: bool = False
    """The network can reduce (SHARP). NCCL leaves it off unless asked, and so do we."""
    pat: bool | None = None
    """None: where each GPU has a node of its own."""
    hca: str = ""
    """NCCL_IB_HCA; NIC number i of a node is mlx5_i."""

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Settings:
        """From environment variables. Raises SettingError."""
        least, most = _channels(variables)
        pat = _number(variables, "NCCL_PAT_ENABLE", 2)
        return cls(
            algorithms=_allowed(variables, "NCCL_ALGO", Algorithm),
            protocols=_allowed(variables, "NCCL_PROTO", Protocol),
            min_channels=least,
            max_channels=most,
            threads=_threads(variables),
            p2p=_number(variables, "NCCL_P2P_DISABLE", 0) != 1
            and variables.get("NCCL_P2P_LEVEL", "") not in ("LOC", "0"),
            nvls=_number(variables, "NCCL_NVLS_ENABLE", 2) != 0,
            collnet=_number(variables, "NCCL_COLLNET_ENABLE", 0) != 0,
            pat=None if pat == 2 else pat != 0,
            hca=variables.get("NCCL_IB_HCA", ""),
        )

    def may_use(self, op: str, algorithm: Algorithm, protocol: Protocol) -> bool:
        algorithms, protocols = self.algorithms.get(op), self.protocols.get(op)
        return (algorithms is None or algorithm in algorithms) and (protocols is None or protocol in protocols)

    def asks_for(self, op: str, protocol: Protocol) -> bool:
        """Whether a protocol is named for an op, which lifts NCCL's own doubts about it."""
        return protocol in self.protocols.get(op, ())

    def channels(self, natural: int) -> int:
        """The number of channels, where NCCL would use `natural` ones."""
        if self.max_channels is not None:
            natural = min(natural, self.max_channels)
        return max(natural, self.min_channels or 1)

    def uses_nic(self, number: int) -> bool:
        """Whether NCCL_IB_HCA leaves it a NIC: a list of name prefixes, `=` for whole names, `^` for all others."""
        names = self.hca.removeprefix("^").removeprefix("=")
        wanted = [name.partition(":")[0] for name in names.split(",") if name]
        if not wanted:
            return True
        own = f"mlx5_{number}"
        exact = "=" in self.hca[:2]
        found = any(own == name if exact else own.startswith(name) for name in wanted)
        return found != self.hca.startswith("^")


def not_modelled(variables: Mapping[str, str]) -> list[str]:
    """Those that are set, would change what NCCL does on a real machine, and have no effect here."""
    settings = Settings.read({name: variables[name] for name in VARIABLES if name in variables})
    hca = ["NCCL_IB_HCA"] if settings.hca and not any(map(settings.uses_nic, range(_MOST_NICS))) else []
    return sorted([*_NOT_MODELLED.intersection(variables), *hca])


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    """NCCL takes what is no number as not set, and says so in its log."""
    try:
        return int(variables.get(name, ""), 0)
    except ValueError:
        return default


def _channels(variables: Mapping[str, str]) -> tuple[int | None, int | None]:
    found: list[int | None] = []
    for names in (("NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS"), ("NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS")):
        values = [_number(variables, name, -1) for name in names]
        found.append(next((value for value in values if 1 <= value <= _MAX_CHANNELS), None))
    return found[0], found[1]


_MAX_CHANNELS = 64
_MOST_NICS = 128
_WARP = 32
_MAX_THREADS = 512


def _threads(variables: Mapping[str, str]) -> int | None:
    """NCCL takes 512 for what is no multiple of a warp or too large, and 64 for what is too small."""
    threads = _number(variables, "NCCL_NTHREADS", -2)
    if threads <= 0:
        return None
    return _MAX_THREADS if threads % _WARP else min(max(threads, 2 * _WARP), _MAX_THREADS)


def _allowed(variables: Mapping[str, str], name: str, kind: type[Choice]) -> Mapping[str, frozenset[Choice]]:
    """NCCL's lists: `ring,tree`, `^LL`, `ring;allreduce:tree`."""
    text = variables.get(name, "")
    by_name = {choice.value.lower(): choice for choice in kind}
    by_function = {function.lower(): op for op, function in FUNCTIONS.items()}
    allowed: dict[str, frozenset[Choice]] = {}
    for number, part in enumerate(item for item in text.split(";") if item):
        function, colon, names = part.rpartition(":")
        if not colon and number:
            raise SettingError(f"{name}={text!r}: every list but the first needs a collective\n  hint: like {_EXAMPLE}")
        if colon and function.lower() not in by_function:
            if function.lower() in _OTHER_FUNCTIONS:
                continue
            raise SettingError(
                f"{name}={text!r}: no collective {function!r}\n  hint: one of {', '.join(FUNCTIONS.values())}"
            )
        wanted = set()
        for item in names.removeprefix("^").split(","):
            if item.lower() not in by_name:
                known = ", ".join(choice.value for choice in kind)
                raise SettingError(f"{name}={text!r}: NCCL does not know {item!r}\n  hint: one of {known}")
            wanted.add(by_name[item.lower()])
        chosen = frozenset(set(kind) - wanted if names.startswith("^") else wanted)
        for op in [by_function[function.lower()]] if colon else FUNCTIONS:
            allowed[op] = chosen
    return allowed


_EXAMPLE = "NCCL_ALGO='ring;allreduce:tree'"
_OTHER_FUNCTIONS = frozenset({"sendrecv", "send", "recv", "alltoall", "gather", "scatter", "allgatherv"})
"""NCCL knows them and they have no choice."""
