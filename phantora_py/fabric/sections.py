"""The `[fabric]` section of a cluster file. All rates are a direction; those left out follow from the NICs'."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from phantora_py.toml_section import Count, Gigabits, Microseconds, Milliseconds, TomlSection, nanoseconds

Oversubscription = Annotated[float, Field(ge=0.01, le=1000)]


class LinkChange(TomlSection):
    """A cable that is not as the kind of fabric has it."""

    between: tuple[str, str]
    """Names of its ends, as `phantora topology` shows them: node0.nic0, leaf0, spine1."""
    bandwidth_Gbps: Gigabits | None = None
    failed: bool = False
    """Traffic goes around it."""
    from_ms: Milliseconds = 0.0
    """Of simulated time, since the start of the job. A cable cannot fail in the middle of a job."""

    @property
    def from_ns(self) -> int:
        return nanoseconds(self.from_ms)

    @model_validator(mode="after")
    def _says_something(self) -> LinkChange:
        if self.failed == (self.bandwidth_Gbps is not None):
            raise ValueError("give either bandwidth_Gbps or failed = true")
        if self.failed and self.from_ms > 0:
            raise ValueError("from_ms goes with bandwidth_Gbps: a cable has failed from the start or not at all")
        return self


class Background(TomlSection):
    """Traffic of others between two NICs; it takes its fair share of what it meets, and no more than its rate."""

    from_nic: str = Field(alias="from")
    to_nic: str = Field(alias="to")
    bandwidth_Gbps: Gigabits
    from_ms: Milliseconds = 0.0
    until_ms: Milliseconds = 1e9

    @property
    def from_ns(self) -> int:
        return nanoseconds(self.from_ms)

    @property
    def until_ns(self) -> int:
        return nanoseconds(self.until_ms)

    @model_validator(mode="after")
    def _flows(self) -> Background:
        if self.until_ns <= self.from_ns:
            raise ValueError(
                f"until_ms = {self.until_ms!r} is not later than from_ms = {self.from_ms!r} by a nanosecond or more"
            )
        if self.from_nic == self.to_nic:
            raise ValueError(f"from and to are both {self.from_nic!r}: such traffic meets no link")
        return self


class _Fabric(TomlSection):
    latency_us: Microseconds = 0.0
    """Added to each hop between nodes, over NCCL's own network latency (which includes one switch)."""
    switch_latency_us: Microseconds = 0.3
    """Added for each switch on a route after the first."""
    routing: Literal["ecmp", "spray"] = "ecmp"
    """Among routes of equal length: each flow keeps to one that its hash chooses, or is spread evenly over all."""
    seed: int = Field(default=0, ge=0, strict=True)
    """Of the hash."""
    flows_per_pair: int = Field(default=2, ge=1, le=64, strict=True)
    """Into how many flows, each with a hash of its own, the traffic between two NICs is split: NCCL opens a connection
    for each channel, and lays at least two channels over a NIC."""
    link: tuple[LinkChange, ...] = ()
    background: tuple[Background, ...] = ()

    @model_validator(mode="after")
    def _changes_agree(self) -> _Fabric:
        """A cable has one state at a time."""
        said: defaultdict[frozenset[str], list[tuple[int, LinkChange]]] = defaultdict(list)
        for number, change in enumerate(self.link, 1):
            ends = frozenset(change.between)
            for earlier, other in said[ends]:
                if other.failed or change.failed or other.from_ns == change.from_ns:
                    raise ValueError(
                        f"[[fabric.link]] number {earlier} and number {number} contradict one another: both are about "
                        f"{' - '.join(change.between)}, "
                        + ("which has failed" if other.failed or change.failed else f"from {change.from_ms:g} ms on")
                    )
            said[ends].append((number, change))
        return self


class SwitchFabric(_Fabric):
    """One non-blocking switch joins all NICs."""

    kind: Literal["switch"] = "switch"


class RailFabric(_Fabric):
    """NIC i of all nodes meets at the switches of rail i; between rails goes NVLink, and spines if there are any."""

    kind: Literal["rail"]
    nodes_per_leaf: Count = 4096
    """Nodes whose NICs of a rail meet at one switch."""
    spines: int = Field(default=0, ge=0, le=4096, strict=True)
    oversubscription: Oversubscription = 1.0
    """What the NICs of a leaf may send, over what its links to the spines carry."""


class LeafSpineFabric(_Fabric):
    """All NICs of a node are at one leaf; every leaf is joined to every spine."""

    kind: Literal["leaf-spine"]
    nodes_per_leaf: Count = 4
    spines: Count = 4
    oversubscription: Oversubscription = 1.0


class FatTreeFabric(_Fabric):
    """Three levels: leaves and spines in pods, cores between the pods. Spine i of every pod is joined to the i-th group
    of cores."""

    kind: Literal["fat-tree"]
    nodes_per_leaf: Count = 4
    leaves_per_pod: Count = 4
    spines_per_pod: Count = 4
    cores_per_spine: Count = 4
    oversubscription: Oversubscription = 1.0
    """Of the leaves."""
    core_oversubscription: Oversubscription = 1.0
    """Of the pods' spines."""


class DragonflyFabric(_Fabric):
    """Routers in groups; all of a group are joined to one another, and every two groups by cables of their own, which
    the routers of a group take in turn."""

    kind: Literal["dragonfly"]
    nodes_per_router: Count = 1
    routers_per_group: Count = 4
    local_Gbps: Gigabits | None = None
    """Of a cable within a group; None: what the NICs of a router send."""
    global_Gbps: Gigabits | None = None
    """Of a cable between groups; None: what the NICs of a router send."""
    cables_per_group_pair: Count = 1


class TorusFabric(_Fabric):
    """One router a node, in a grid whose rows close to rings."""

    kind: Literal["torus"]
    dimensions: tuple[Count, ...] = Field(min_length=1, max_length=4)
    """Nodes along each; their product is the number of nodes, or more."""
    link_Gbps: Gigabits | None = None
    """Of a cable between neighbours; None: what the NICs of a node send."""


class GraphFabric(_Fabric):
    """Any graph. NICs are named node0.nic0; `node0` alone stands for all of its NICs; every other name is a switch."""

    kind: Literal["graph"]
    cables: tuple[tuple[str, str, Gigabits], ...] = ()
    """Two ends and the rate in Gb/s. A NIC's own rate bounds it as well."""
    file: str | None = None
    """GraphML instead, beside the cluster file; edges have the attribute `bandwidth_Gbps`."""

    @field_validator("file")
    @classmethod
    def _beside_the_cluster_file(cls, file: str | None, info: ValidationInfo) -> str | None:
        return None if file is None else str(Path((info.context or {}).get("folder", ".")).absolute() / file)

    @model_validator(mode="after")
    def _has_one_source(self) -> GraphFabric:
        if bool(self.cables) == (self.file is not None):
            raise ValueError("give either cables or file")
        return self


Fabric = Annotated[
    SwitchFabric | RailFabric | LeafSpineFabric | FatTreeFabric | DragonflyFabric | TorusFabric | GraphFabric,
    Field(discriminator="kind"),
]
