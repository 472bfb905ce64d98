"""`phantora topology`: what a cluster's links are, and a picture of its fabric."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from phantora_launcher.errors import LaunchError
from phantora_py.cluster import Cluster, ClusterError, load_cluster
from phantora_py.fabric.drawing import FORMATS, draw
from phantora_py.fabric.summary import Summary
from phantora_py.plain_console import plain_console


def add_to(app: typer.Typer) -> None:
    app.command("topology")(topology)


def topology(
    cluster: Annotated[str, typer.Argument(metavar="NAME[:NODES]|FILE", help="A preset or a cluster file.")],
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the fabric as SVG, PNG or PDF.")] = None,
) -> None:
    """Show a cluster's links, or what is wrong with its file.

    \b
    Examples:
      phantora topology dgx-h100:16
      phantora topology mine.toml --plot fabric.svg
    """
    try:
        found = load_cluster(cluster)
    except ClusterError as error:
        what, _, hint = str(error).partition("\n  hint: ")
        raise LaunchError(what, hint) from error
    plain_console().print(_table(found, Summary.of(found.wiring)))
    if plot is not None:
        _draw(found, plot)


def _draw(cluster: Cluster, file: Path) -> None:
    if file.suffix not in FORMATS:
        raise LaunchError(f"cannot draw {str(file)!r}", f"its name must end in {', '.join(FORMATS)}")
    try:
        draw(cluster.wiring, f"{cluster.name}: {_count(cluster.nodes, 'node')}, {cluster.fabric.kind}", file)
    except OSError as error:
        raise LaunchError(
            f"cannot write {str(file)!r}: {error.strerror or error}", "is there such a folder?"
        ) from error


def _table(cluster: Cluster, summary: Summary) -> Table:
    node, fabric = cluster.node, cluster.fabric
    table = Table(title=cluster.name, show_header=False)
    table.add_row(
        "GPUs", f"{cluster.world_size} x {cluster.gpu.device_name}: {_count(cluster.nodes, 'node')} of {node.gpus}"
    )
    table.add_row("within a node", _inside(cluster))
    table.add_row("NICs", f"{node.nics.count} a node, {node.nics.bandwidth_Gbps:g} Gb/s each")
    table.add_row("fabric", f"{fabric.kind}, {_count(summary.switches, 'switch')}, {_routing(cluster, summary)}")
    for (joined, rate), count in summary.cables.items():
        table.add_row(f"cables of {joined}", f"{count} x {_gigabytes(rate)} a direction")
    failed = [" - ".join(change.between) for change in fabric.link if change.failed]
    if failed:
        table.add_row("failed", ", ".join(failed))
    if cluster.nodes > 1:
        far = ", ".join(f"{hops} for {pairs} pairs" for hops, pairs in summary.switches_on_the_way.items())
        table.add_row("switches between nodes", far)
        share = summary.bisection_bytes_per_s / summary.halves_bytes_per_s
        table.add_row(
            "bisection",
            f"{_gigabytes(summary.bisection_bytes_per_s)} a direction, {share:.0%} of what half of the NICs send",
        )
    return table


def _inside(cluster: Cluster) -> str:
    nvlink = cluster.node.nvlink
    if nvlink.kind == "none":
        return f"PCIe, {cluster.node.pcie.bandwidth_GBps:g} GB/s a GPU and direction"
    nodes = f", {nvlink.nodes} nodes together" if nvlink.nodes > 1 else ""
    return f"NVLink ({nvlink.kind}), {_gigabytes(cluster.nvlink_bytes_per_s)} a GPU and direction{nodes}"


def _routing(cluster: Cluster, summary: Summary) -> str:
    fabric = cluster.fabric
    if summary.switches == 1:
        return "which does not block"
    if fabric.routing == "spray":
        return "traffic spread over all shortest routes"
    return f"ECMP, {fabric.flows_per_pair} flows between two NICs, seed {fabric.seed}"


def _count(number: int, thing: str) -> str:
    plural = f"{thing}es" if thing.endswith("h") else f"{thing}s"
    return f"{number} {thing if number == 1 else plural}"


def _gigabytes(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:,.1f} GB/s"
