"""The cluster file: GPU model, node, NICs and fabric, read from one TOML file or a preset name.

A preset may be given a number of nodes: ``dgx-h100:2``. Every figure that the file leaves out comes from the GPU's data
sheet or from the default stated at the field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError, field_validator, model_validator

from phantora_py.fabric.cables import FabricError, Ports
from phantora_py.fabric.sections import Fabric, SwitchFabric
from phantora_py.fabric.wiring import Wiring
from phantora_py.gpus import Gpu, find_gpu
from phantora_py.nccl.generation import nvlink_bytes_per_s
from phantora_py.nccl.section import NcclSection
from phantora_py.nccl.settings import VARIABLES, SettingError, Settings
from phantora_py.overlap import OverlapSlowdown, overlap_slowdown
from phantora_py.toml_section import Gigabits, Gigabytes, Slowdown, TomlSection

MAX_NODES = 4096
MAX_GPUS_PER_NODE = 128


class ClusterError(ValueError):
    """A cluster name or file that cannot be used; the message ends in a hint."""


class Device(NamedTuple):
    """One GPU of the cluster."""

    node: int
    local: int


class Nvlink(TomlSection):
    """How the GPUs of a node reach one another."""

    kind: Literal["nvswitch", "mesh", "none"] = "nvswitch"
    """nvswitch: every GPU has one port at full rate; mesh: an own link for each pair; none: PCIe only."""
    bandwidth_GBps: Gigabytes | None = None
    """GB/s (10^9) a direction and GPU that collectives reach; None: NCCL's own figure for the GPU's links."""
    nodes: int = Field(default=1, ge=1, le=MAX_NODES, strict=True)
    """Nodes whose GPUs are joined by NVLink, with kind = "nvswitch": 18 in a GB200 NVL72."""


class Pcie(TomlSection):
    bandwidth_GBps: Gigabytes = 24.0
    """GB/s a direction and GPU; the default is NCCL's figure for PCIe Gen4 x16."""


class Nics(TomlSection):
    count: int = Field(default=8, ge=1, le=64, strict=True)
    """NICs a node. GPU i uses NIC i * count // gpus; with more NICs than GPUs, a multiple, each uses as many."""
    bandwidth_Gbps: Gigabits = 400.0
    """Gb/s (10^9 bits) of each NIC's port, a direction."""
    efficiency: float = Field(default=0.96, gt=0, le=1)
    """Share of the port rate left for payload; NCCL's topology search counts 12 GB/s for a 100 Gb/s port."""


class Overlap(TomlSection):
    """How kernels and communication slow each other on a GPU while they overlap; None: the GPU model's default."""

    compute_slowdown: Slowdown | None = None
    communication_slowdown: Slowdown | None = None


class Straggler(TomlSection):
    """A node, or one GPU of it, whose kernels take longer."""

    node: int = Field(ge=0, strict=True)
    gpu: int | None = Field(default=None, ge=0, strict=True)
    """Of the node; None: all."""
    slowdown: Slowdown


class GpuChoice(TomlSection):
    model: str
    memory_GiB: float | None = Field(default=None, gt=0, le=10_000)
    """Memory that the driver reports; None: the model's."""


class NodeSection(TomlSection):
    gpus: int = Field(default=8, ge=1, le=MAX_GPUS_PER_NODE, strict=True)
    nvlink: Nvlink = Nvlink()
    pcie: Pcie = Pcie()
    nics: Nics = Nics()


class Cluster(TomlSection):
    """A cluster as the simulator and the launcher see it."""

    name: str
    nodes: int = Field(default=1, ge=1, le=MAX_NODES, strict=True)
    gpu_choice: GpuChoice = Field(alias="gpu")
    node: NodeSection = NodeSection()
    fabric: Fabric = SwitchFabric()
    overlap: Overlap = Overlap()
    straggler: tuple[Straggler, ...] = ()
    nccl: NcclSection = NcclSection()

    @field_validator("gpu_choice")
    @classmethod
    def _known_model(cls, choice: GpuChoice) -> GpuChoice:
        find_gpu(choice.model)
        return choice

    @field_validator("fabric", mode="before")
    @classmethod
    def _switch_by_default(cls, section: object) -> object:
        return {"kind": "switch", **section} if isinstance(section, dict) else section

    @model_validator(mode="after")
    def _fits_together(self) -> Cluster:
        if self.node.nvlink.nodes > 1 and self.node.nvlink.kind != "nvswitch":
            raise ValueError('node.nvlink.nodes: only nvlink of kind "nvswitch" may join several nodes')
        if self.node.nics.count > self.node.gpus and self.node.nics.count % self.node.gpus:
            raise ValueError(
                f"node.nics.count: {self.node.nics.count} NICs cannot be shared out to {self.node.gpus} GPUs"
            )
        for straggler in self.straggler:
            if straggler.node >= self.nodes or (straggler.gpu or 0) >= self.node.gpus:
                raise ValueError(
                    f"straggler: there is no GPU {straggler.gpu or 0} on a node {straggler.node} "
                    f"({self.nodes} nodes of {self.node.gpus} GPUs)"
                )
        return self

    def in_environment(self, variables: Mapping[str, str]) -> Cluster:
        """The same cluster with the NCCL_... variables of a job's environment. Raises ClusterError."""
        chosen = {name: variables[name] for name in VARIABLES if name in variables}
        environment = {**self.nccl.environment, **chosen}
        try:
            Settings.read(environment)
        except SettingError as error:
            raise ClusterError(str(error)) from error
        return self.model_copy(update={"nccl": self.nccl.model_copy(update={"environment": environment})})

    @property
    def gpu(self) -> Gpu:
        return find_gpu(self.gpu_choice.model)

    @property
    def memory_bytes(self) -> int:
        """Device memory in bytes, as cudaMemGetInfo reports in total."""
        chosen = self.gpu_choice.memory_GiB
        return self.gpu.memory_bytes if chosen is None else round(chosen * 2**30)

    @property
    def overlap_slowdown(self) -> OverlapSlowdown:
        default, chosen = overlap_slowdown(self.gpu), self.overlap
        return OverlapSlowdown(
            chosen.compute_slowdown or default.compute, chosen.communication_slowdown or default.communication
        )

    @property
    def world_size(self) -> int:
        return self.nodes * self.node.gpus

    @property
    def nvlink_bytes_per_s(self) -> float:
        """What collectives reach over one GPU's NVLink port, a direction."""
        chosen = self.node.nvlink.bandwidth_GBps
        if chosen is not None:
            return chosen * 1e9
        return nvlink_bytes_per_s(self.gpu.compute_capability, self.gpu.nvlinks)

    @property
    def nic_bytes_per_s(self) -> float:
        return self.node.nics.bandwidth_Gbps * 1e9 / 8 * self.node.nics.efficiency

    @cached_property
    def wiring(self) -> Wiring:
        """The cables between the nodes. Raises FabricError."""
        nics = self.node.nics
        return Wiring(self.fabric, Ports(self.nodes, nics.count, self.nic_bytes_per_s, nics.efficiency))

    def nics_of(self, local: int) -> range:
        """The NICs that GPU `local` of a node uses."""
        nics, gpus = self.node.nics.count, self.node.gpus
        first = local * nics // gpus
        return range(first, max(first + 1, (local + 1) * nics // gpus))

    def slowdown(self, device: Device) -> float:
        """How many times longer its kernels take than the GPU model's."""
        return max(
            (
                straggler.slowdown
                for straggler in self.straggler
                if straggler.node == device.node and straggler.gpu in (None, device.local)
            ),
            default=1.0,
        )


def preset_names() -> list[str]:
    """Names of the cluster files that come with the project."""
    folder = resources.files("phantora_py") / "clusters"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_cluster(name_or_file: str) -> Cluster:
    """Reads ``NAME``, ``NAME:NODES``, ``FILE.toml`` or ``FILE.toml:NODES``. Raises ClusterError."""
    base, _, count = name_or_file.rpartition(":")
    if not base or not count.isdigit():
        return _parse(name_or_file, None)
    return _parse(base, int(count))


def _parse(source: str, nodes: int | None) -> Cluster:
    text = _read(source)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClusterError(f"{source}: not valid TOML: {error}\n  hint: see docs/clusters.md for an example") from error
    if nodes is not None:
        if not 1 <= nodes <= MAX_NODES:
            raise ClusterError(f"{source} with {nodes} nodes: a cluster has 1 to {MAX_NODES}\n  hint: {source}:2, say")
        table["nodes"] = nodes
    return read_cluster(table, source, text)


def read_cluster(table: object, source: str, text: str = "") -> Cluster:
    """The cluster that a file's table describes; `text` is that of the file. Raises ClusterError."""
    try:
        cluster = Cluster.model_validate(table, context={"folder": Path(source).parent})
        _ = cluster.wiring
    except ValidationError as error:
        raise ClusterError(_explain(source, text, error)) from error
    except FabricError as error:
        raise ClusterError(f"{source}: {error}") from error
    return cluster


def _read(source: str) -> str:
    if source in preset_names():
        return (resources.files("phantora_py") / "clusters" / f"{source}.toml").read_text()
    path = Path(source)
    if not source.endswith(".toml"):
        raise ClusterError(
            f"no cluster is named {source!r}\n  hint: one of {', '.join(preset_names())}, or a file that ends in .toml"
        )
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(f"cannot read cluster file {source!r}: {error}\n  hint: is the path right?") from error


def _explain(source: str, text: str, error: ValidationError) -> str:
    lines = []
    for item in error.errors():
        keys = tuple(str(part) for part in item["loc"])
        line = _line(text, keys)
        place = source if line is None else f"{source}:{line}"
        value = "" if isinstance(item["input"], dict) else f" (got {item['input']!r})"
        message = ": ".join(filter(None, (".".join(keys), item["msg"].removeprefix("Value error, "))))
        lines.append(f"{place}: {message}{value}")
    return "\n".join([*lines, "  hint: docs/clusters.md lists every key with its range"])


def _line(text: str, keys: tuple[str, ...]) -> int | None:
    """Number of the line on which a key stands, or else its section; None if neither does.

    `keys` may hold more than the file does: a section's index, the kind of a fabric.
    """
    section: list[str] = []
    best = None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?([^\[\]]+)\]\]?", line)
        if header:
            section = [part.strip() for part in header[1].split(".")]
        assignment = re.match(r"\s*([\w.-]+)\s*=", line)
        path = [*section, *assignment[1].split(".")] if assignment else section
        if path and path[-1:] == list(keys[-1:]) and all(part in keys for part in path):
            return number
        if header and best is None and section and all(part in keys for part in section):
            best = number
    return best
