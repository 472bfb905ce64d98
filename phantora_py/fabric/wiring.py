"""The directed links of a fabric, as a cluster file asks for it: all cables, those that failed or run slower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from phantora_py.fabric.cables import Cable, FabricError, Ports, lay, nic_name
from phantora_py.fabric.sections import Fabric, LinkChange, RailFabric

Indices = NDArray[np.int64]


class Wiring:
    """NICs, switches, and two directed links for each cable: link 2c from its first end to its second, 2c + 1 back.

    NIC n * nics + i is NIC i of node n. Raises FabricError if the section names what is not there, or cuts NICs off.
    """

    def __init__(self, fabric: Fabric, ports: Ports) -> None:
        self.fabric = fabric
        self.ports = ports
        cables = list(lay(fabric, ports))
        self._failed = _ends(fabric.link, failed=True)
        self._check_names(cables)
        self.cables = [cable for cable in map(self._as_changed, cables) if _pair(cable) not in self._failed]
        self._check_nics()
        self._check_connected()

    @cached_property
    def nic_names(self) -> list[str]:
        return [nic_name(node, nic) for node in range(self.ports.nodes) for nic in range(self.ports.nics)]

    @cached_property
    def _nics(self) -> frozenset[str]:
        return frozenset(self.nic_names)

    @cached_property
    def switch_names(self) -> list[str]:
        """In the order in which the cables name them."""
        names = dict.fromkeys(end for cable in self.cables for end in (cable.a, cable.b))
        return [name for name in names if name not in self._nics]

    @cached_property
    def capacities(self) -> list[float]:
        """Bytes per second of each directed link."""
        return [cable.bytes_per_s for cable in self.cables for _ in range(2)]

    @cached_property
    def sources(self) -> Indices:
        """Of each directed link: number of a switch, or of a NIC counted from the number of switches on."""
        return self._numbers[:, 0].copy()

    @cached_property
    def targets(self) -> Indices:
        return self._numbers[:, 1].copy()

    @cached_property
    def access(self) -> Indices:
        """Of each NIC: its link into the fabric; that out of it is the other one of the cable."""
        links = np.flatnonzero(self.sources >= len(self.switch_names))
        access = np.empty(len(self.nic_names), dtype=np.int64)
        access[self.sources[links] - len(self.switch_names)] = links
        return access

    def link_name(self, link: int) -> str:
        cable = self.cables[link // 2]
        return f"{cable.b} > {cable.a}" if link % 2 else f"{cable.a} > {cable.b}"

    def changed(self, change: LinkChange) -> list[tuple[int, float]]:
        """The directed links that a change is about, and the rate that it gives them."""
        return [
            (2 * number + way, self._with_rate(cable, change.bandwidth_Gbps).bytes_per_s)
            for number, cable in enumerate(self.cables)
            if _pair(cable) == frozenset(change.between)
            for way in range(2)
        ]

    @cached_property
    def _numbers(self) -> Indices:
        number = {name: place for place, name in enumerate((*self.switch_names, *self.nic_names))}
        ends = [(number[cable.a], number[cable.b]) for cable in self.cables]
        return np.array([way for a, b in ends for way in ((a, b), (b, a))], dtype=np.int64).reshape(-1, 2)

    def _as_changed(self, cable: Cable) -> Cable:
        for change in self.fabric.link:
            if frozenset(change.between) == _pair(cable) and change.from_ns == 0:
                return self._with_rate(cable, change.bandwidth_Gbps)
        return self._with_rate(cable, None)

    def _with_rate(self, cable: Cable, gigabits: float | None) -> Cable:
        """At that rate, or its own; a NIC's cable is no faster than its port."""
        rate = self.ports.rate(gigabits, cable.bytes_per_s)
        at_port = not self._nics.isdisjoint(_pair(cable))
        return cable._replace(bytes_per_s=min(rate, self.ports.bytes_per_s) if at_port else rate)

    def _check_names(self, cables: Sequence[Cable]) -> None:
        known = {_pair(cable) for cable in cables}
        for change in self.fabric.link:
            if frozenset(change.between) not in known:
                a, b = change.between
                some = ", ".join(f"{cable.a} - {cable.b}" for cable in list(cables)[-3:])
                raise FabricError(
                    f"fabric.link: no cable joins {a!r} and {b!r}\n  hint: there are, among others, {some}"
                )
        nics = set(self.nic_names)
        for traffic in self.fabric.background:
            for name in (traffic.from_nic, traffic.to_nic):
                if name not in nics:
                    raise FabricError(
                        f"fabric.background: there is no NIC {name!r}\n"
                        f"  hint: from {self.nic_names[0]} to {self.nic_names[-1]}"
                    )

    def _check_nics(self) -> None:
        """Each NIC has one cable, to a switch."""
        nics = set(self.nic_names)
        cables: dict[str, int] = dict.fromkeys(self.nic_names, 0)
        for cable in self.cables:
            if cable.a in nics and cable.b in nics:
                raise FabricError(
                    f"fabric: a cable joins the NICs {cable.a} and {cable.b} directly\n"
                    "  hint: put a switch between them"
                )
            for end in {cable.a, cable.b} & nics:
                cables[end] += 1
        for name, count in cables.items():
            if count != 1:
                raise FabricError(f"fabric: the NIC {name} has {count} cables\n  hint: {self._nic_hint(name)}")

    def _nic_hint(self, name: str) -> str:
        """What may be done about a NIC that has not exactly one cable."""
        if not any(name in pair for pair in self._failed):
            return "each NIC needs exactly one, to a switch; node.nics.count says how many NICs a node has"
        number = name.rpartition("nic")[2]
        return (
            "a NIC's only cable cannot fail; environment = { NCCL_IB_HCA = \"^=mlx5_"
            f'{number}" }} in [nccl] has NCCL leave NIC {number} of all nodes alone'
        )

    def _check_connected(self) -> None:
        """Every NIC reaches all others (without spines: those of its rail)."""
        count = len(self.switch_names) + len(self.nic_names)
        ones = np.ones(len(self.sources), dtype=np.int8)
        _, part = connected_components(csr_array((ones, (self.sources, self.targets)), shape=(count, count)))
        of_nic = part[len(self.switch_names) :].reshape(self.ports.nodes, self.ports.nics)
        by_rail = isinstance(self.fabric, RailFabric) and self.fabric.spines == 0
        apart = np.argwhere(of_nic != (of_nic[:1] if by_rail else of_nic[0, 0]))
        if len(apart):
            node, nic = map(int, apart[0])
            other = nic_name(0, nic if by_rail else 0)
            failed = ", ".join(sorted(" - ".join(sorted(pair)) for pair in self._failed))
            raise FabricError(
                f"fabric: {nic_name(node, nic)} is cut off from {other}{failed and f'; failed cables: {failed}'}\n"
                "  hint: every NIC must reach all others (without spines: those of its rail)"
            )
        self._check_background(dict(zip(self.nic_names, of_nic.ravel().tolist(), strict=True)))

    def _check_background(self, part: Mapping[str, int]) -> None:
        """`part` of the fabric in which each NIC is."""
        for traffic in self.fabric.background:
            if part[traffic.from_nic] != part[traffic.to_nic]:
                raise FabricError(
                    f"fabric.background: no route leads from {traffic.from_nic} to {traffic.to_nic}\n"
                    "  hint: rails without spines join NICs of one number only"
                )


def _pair(cable: Cable) -> frozenset[str]:
    return frozenset((cable.a, cable.b))


def _ends(changes: Sequence[LinkChange], *, failed: bool) -> set[frozenset[str]]:
    return {frozenset(change.between) for change in changes if change.failed == failed}
