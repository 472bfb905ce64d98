"""A picture of a fabric: nodes at the bottom, switches above by their distance from them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import networkx

from phantora_py.fabric.wiring import Wiring

FORMATS = (".svg", ".png", ".pdf")


def draw(wiring: Wiring, title: str, file: Path) -> None:
    """Writes the picture; its format is that of the file's name, one of FORMATS. Raises OSError."""
    from matplotlib.figure import Figure  # takes half a second to import

    graph = _graph(wiring)
    places = _places(graph)
    broadest = max(wiring.ports.nodes, len(wiring.switch_names) // 2)
    figure = Figure(figsize=(min(40, max(8, 0.8 * broadest)), 7), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, parse_math=False)
    axes.axis("off")
    nodes, switches = (
        [name for name, kind in graph.nodes(data="kind") if kind == wanted] for wanted in ("node", "switch")
    )
    widest = max(rate for *_, rate in graph.edges(data="rate"))
    networkx.draw_networkx_edges(
        graph,
        places,
        ax=axes,
        edge_color="0.6",
        width=[0.5 + 3 * rate / widest for *_, rate in graph.edges(data="rate")],
    )
    for names, shape, colour in ((nodes, "s", "#9ecae1"), (switches, "o", "#fdae6b")):
        networkx.draw_networkx_nodes(
            graph, places, names, ax=axes, node_shape=shape, node_color=colour, edgecolors="0.3", node_size=500
        )
    for label in networkx.draw_networkx_labels(graph, places, ax=axes, font_size=7).values():
        label.set_parse_math(False)
    figure.savefig(file)


def _graph(wiring: Wiring) -> networkx.Graph:
    """Nodes (not their NICs one by one) and switches; edges with the sum of their cables' rates."""
    rates: dict[tuple[str, str], float] = defaultdict(float)
    nics = set(wiring.nic_names)
    for cable in wiring.cables:
        a, b = (end.partition(".")[0] if end in nics else end for end in (cable.a, cable.b))
        rates[a, b] += cable.bytes_per_s
    graph = networkx.Graph()
    for node in range(wiring.ports.nodes):
        graph.add_node(f"node{node}", kind="node")
    for name in wiring.switch_names:
        graph.add_node(name, kind="switch")
    for (a, b), rate in rates.items():
        graph.add_edge(a, b, rate=rate)
    return graph


def _places(graph: networkx.Graph) -> dict[str, tuple[float, float]]:
    nodes = [name for name, kind in graph.nodes(data="kind") if kind == "node"]
    level = networkx.multi_source_dijkstra_path_length(graph, nodes, weight=None)
    if max(level.values()) == 1 and len(graph) - len(nodes) > 1 and networkx.is_connected(graph):
        return dict(networkx.kamada_kawai_layout(graph, weight=None))  # routers among themselves have no levels
    rows: dict[int, list[str]] = defaultdict(list)
    for name in sorted(graph, key=_numbers):
        rows[level[name]].append(name)
    return {
        name: ((place + 0.5) / len(row), float(height))
        for height, row in rows.items()
        for place, name in enumerate(row)
    }


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", name)))
