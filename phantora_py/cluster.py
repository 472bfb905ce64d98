"""The cluster file: GPU model, node, NICs and fabric, read from one TOML file or a preset name.

A preset may be given a number of nodes: ``dgx-h100:2``. Every figure that the file leaves out comes from the GPU's data
sheet or from the default stated at the field.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from phantora_py import nccl
from phantora_py.gpus import Gpu, find_gpu
from phantora_py.overlap import OverlapSlowdown, overlap_slowdown

MAX_NODES = 4096
MAX_GPUS_PER_NODE = 128


class ClusterError(ValueError):
    """A cluster name or file that cannot be used; the message ends in a hint."""


class Device(NamedTuple):
    """One GPU of the cluster."""

    node: int
    local: int


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Gigabytes = Annotated[float, Field(ge=1e-3, le=100_000, allow_inf_nan=False)]
Microseconds = Annotated[float, Field(ge=0, le=1_000_000)]


class Nvlink(_Section):
    """How the GPUs of a node reach one another."""

    kind: Literal["nvswitch", "mesh", "none"] = "nvswitch"
    """nvswitch: every GPU has one port at full rate; mesh: an own link for each pair; none: PCIe only."""
    bandwidth_GBps: Gigabytes | None = None
    """GB/s (10^9) a direction and GPU that collectives reach; None: NCCL's own figure for the GPU's links."""


class Pcie(_Section):
    bandwidth_GBps: Gigabytes = 24.0
    """GB/s a direction and GPU; the default is NCCL's figure for PCIe Gen4 x16."""


class Nics(_Section):
    count: int = Field(default=8, ge=1, le=64, strict=True)
    """NICs a node; GPU i uses NIC i * count // gpus."""
    bandwidth_Gbps: Gigabytes = 400.0
    """Gb/s (10^9 bits) of each NIC's port, a direction."""
    efficiency: float = Field(default=0.96, gt=0, le=1)
    """Share of the port rate left for payload; NCCL's topology search counts 12 GB/s for a 100 Gb/s port."""


class Fabric(_Section):
    kind: Literal["switch"] = "switch"
    """switch: one non-blocking switch joins all NICs."""
    latency_us: Microseconds = 0.0
    """Added to each hop between nodes, over NCCL's own network latency (which includes one switch)."""


Slowdown = Annotated[float, Field(ge=1, le=100)]


class Overlap(_Section):
    """How kernels and communication slow each other on a GPU while they overlap; None: the GPU model's default."""

    compute_slowdown: Slowdown | None = None
    communication_slowdown: Slowdown | None = None


class GpuChoice(_Section):
    model: str
    memory_GiB: float | None = Field(default=None, gt=0, le=10_000)
    """Memory that the driver reports; None: the model's."""


class NodeSection(_Section):
    gpus: int = Field(default=8, ge=1, le=MAX_GPUS_PER_NODE, strict=True)
    nvlink: Nvlink = Nvlink()
    pcie: Pcie = Pcie()
    nics: Nics = Nics()


class Cluster(_Section):
    """A cluster as the simulator and the launcher see it."""

    name: str
    nodes: int = Field(default=1, ge=1, le=MAX_NODES, strict=True)
    gpu_choice: GpuChoice = Field(alias="gpu")
    node: NodeSection = NodeSection()
    fabric: Fabric = Fabric()
    overlap: Overlap = Overlap()

    @field_validator("gpu_choice")
    @classmethod
    def _known_model(cls, choice: GpuChoice) -> GpuChoice:
        find_gpu(choice.model)
        return choice

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
        return nccl.nvlink_bytes_per_s(self.gpu.compute_capability, self.gpu.nvlinks)

    @property
    def nic_bytes_per_s(self) -> float:
        return self.node.nics.bandwidth_Gbps * 1e9 / 8 * self.node.nics.efficiency

    def nic_of(self, local: int) -> int:
        """The NIC that GPU `local` of a node uses."""
        return local * self.node.nics.count // self.node.gpus


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
        table["nodes"] = nodes
    try:
        return Cluster.model_validate(table)
    except ValidationError as error:
        raise ClusterError(_explain(source, error)) from error


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


def _explain(source: str, error: ValidationError) -> str:
    lines = [
        f"{source}: {'.'.join(str(part) for part in item['loc'])}: {item['msg']} (got {item['input']!r})"
        for item in error.errors()
    ]
    return "\n".join([*lines, "  hint: docs/clusters.md lists every key with its range"])
