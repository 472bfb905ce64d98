"""`phantora clusters`: the presets, and the GPU models that a cluster file may name."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from phantora_py.cluster import load_cluster, preset_names
from phantora_py.gpus import find_gpu, gpu_names
from phantora_py.plain_console import plain_console


def add_to(app: typer.Typer) -> None:
    app.command("clusters")(clusters)


def clusters(
    gpus: Annotated[bool, typer.Option("--gpus", help="List the GPU models for cluster files instead.")] = False,
) -> None:
    """List the clusters that come with phantora (NAME:N gives N nodes)."""
    plain_console().print(_gpu_models() if gpus else _presets())


def _presets() -> Table:
    table = Table("name", "nodes", "GPUs a node", "NVLink", "NICs a node", box=None, header_style="bold")
    for name in preset_names():
        cluster = load_cluster(name)
        node = cluster.node
        table.add_row(
            name,
            str(cluster.nodes),
            f"{node.gpus} x {cluster.gpu.name}",
            node.nvlink.kind,
            f"{node.nics.count} x {node.nics.bandwidth_Gbps:g} Gb/s",
        )
    return table


def _gpu_models() -> Table:
    table = Table("model", "name that scripts see", "memory", "bf16 TFLOP/s", "HBM", box=None, header_style="bold")
    for name in gpu_names():
        gpu = find_gpu(name)
        tera = f"{gpu.fp16_flops / 1e12:.0f}"
        table.add_row(name, gpu.device_name, _gib(gpu.memory_bytes), tera, f"{gpu.hbm_bytes_per_s / 1e9:.0f} GB/s")
    return table


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
