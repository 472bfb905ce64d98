"""`phantora clusters`: the presets."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from phantora_py.cluster import load_cluster, preset_names


def add_to(app: typer.Typer) -> None:
    app.command("clusters")(clusters)


def clusters() -> None:
    """List the clusters that come with phantora (NAME:N gives N nodes)."""
    table = Table("name", "GPUs a node", "GPU", "memory", "NVLink", "NICs a node", box=None, header_style="bold")
    for name in preset_names():
        cluster = load_cluster(name)
        node = cluster.node
        table.add_row(
            name,
            str(node.gpus),
            cluster.gpu.device_name,
            f"{cluster.memory_bytes / 2**30:.1f} GiB",
            node.nvlink.kind,
            f"{node.nics.count} x {node.nics.bandwidth_Gbps:g} Gb/s",
        )
    Console().print(table)
