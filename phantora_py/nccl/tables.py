"""Measured tables of collectives, each with the machine that it was measured on as a cluster file would describe it.

The tables are read where they lie and are no part of the project: nccl_collectives.csv of a data folder (its README
says what it is), and the NCCL tables of the installed package aiconfigurator-core ("silicon").
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from phantora_py.cluster import Cluster, Device

CSV_NAME = "nccl_collectives.csv"
_OPS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}


@dataclass(frozen=True)
class Row:
    size_bytes: int
    measured_us: float


@dataclass(frozen=True)
class Table:
    """One op over one set of GPUs."""

    name: str
    op: str
    """As the planner names it, or send_recv: each member sends to the next."""
    cluster: Cluster
    members: tuple[Device, ...]
    rows: tuple[Row, ...]
    fitted: str
    """Class of figures that is fitted to it; "" if the table is held out."""
    doubt: str
    """Why no description of its machine can suit it together with the others; "" if there is none."""


class NoTablesError(Exception):
    """Tables that are not there; the message says where they were looked for."""


@dataclass(frozen=True)
class _Machine:
    """Of all tables whose names begin so."""

    prefix: str
    gpu: str
    node: dict[str, Any]
    version: str
    network: str = "infiniband"
    fitted: str = ""
    doubt: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    gpus: int = 0
    """Only of tables of so many GPUs, if not 0."""

    def is_of(self, table: str, gpus: int) -> bool:
        return table.startswith(self.prefix) and self.gpus in (0, gpus)


def _node(gpus: int, nvlink: str = "nvswitch", nics: int = 8, rate_gbps: float = 200, **more: Any) -> dict[str, Any]:
    return {"gpus": gpus, "nvlink": {"kind": nvlink}, "nics": {"count": nics, "bandwidth_Gbps": rate_gbps}, **more}


def _pairs(rate_gbps: float) -> dict[str, Any]:
    """NVLink joins two GPUs, PCIe (here a NIC) the pairs."""
    return _node(2, "mesh", 1, rate_gbps)


def _cube(rings: int) -> dict[str, Any]:
    """A group in DGX-1's cube mesh of one or two NVLinks a pair: a switch at the rate of the rings that it finds."""
    return {"gpus": 8, "nvlink": {"kind": "nvswitch", "bandwidth_GBps": 22.5 * rings}}


_SETUPS = (
    "Polaris with the variables of set-up 5 is up to five times slower below 4 MiB than with those of 4, the same above"
)
_CUBE = "five GPUs of a cube mesh find no ring of NVLinks alone"
_SLOW_NICS = "out of a node one GPU gets 5.9 GB/s both ways but 7.8 one way, two 6 or 12, four 22, and eight 17"
_SENDER = "the sender's time, which ends before its receiver's: up to 276 GB/s over the A100's NVLinks of 240"
_COPIED = "the same figures, to the digit, stand for A100 and for H100"
_AS_ONE_NODE = {"NCCL_ALGO": "Ring"}
"""Two pairs are described as two nodes, but NCCL sees one, where it takes rings."""

_BY_TURNS = (
    "all-reduces of neighbouring sizes below 4 MiB take 10 and 60 us by turns, on the GPUs of other, steady tables"
)
_BY_TURNS_TABLES: tuple[tuple[str, str, dict[str, Any], dict[str, str], tuple[str, ...]], ...] = (
    ("a100_dgx", "A100-SXM-80GB", _node(8), {}, ("2w_2pn", "4w_4pn")),
    ("h100_dgx", "H100-SXM-80GB", _node(8, rate_gbps=400), {}, ("2w_2pn", "4w_4pn")),
    ("a100_pairwise_nvlink", "A100-SXM-80GB", _pairs(200), _AS_ONE_NODE, ("2w_2pn",)),
    ("h100_pairwise_nvlink", "H100-PCIE-80GB", _pairs(400), _AS_ONE_NODE, ("2w_2pn",)),
)

_SLOW = _node(8, rate_gbps=50)
"""Nodes whose NICs are nowhere described and give one GPU 6 GB/s."""

_MACHINES = (
    _Machine("dgxc_h100", "H100-SXM-80GB", _node(8, rate_gbps=400), "2.27"),
    _Machine("aws_p4de", "A100-SXM-80GB", _node(8, nics=4, rate_gbps=100), "2.18", "efa-1", "efa-1"),
    _Machine("aws_p5_h100_16", "H100-SXM-80GB", _node(8, nics=32, rate_gbps=100), "2.27", "efa", "efa"),
    _Machine("aws_p5_h100_8", "H100-SXM-80GB", _node(8, nics=32, rate_gbps=100), "2.27", "efa"),
    *(
        _Machine(
            f"alcf_polaris_nccl_2_21_n2.g4.2024-04-29-19-08-14_{op}_s{setup}",
            "A100-SXM-40GB",
            _node(4, "mesh", 2, 200),
            "2.21",
            "slingshot",
            fitted="slingshot" if setup == 4 else "",
            doubt=_SETUPS if setup == 5 else "",
        )
        for op in ("all_gather", "all_reduce", "alltoall")
        for setup in (4, 5)
    ),
    _Machine("xxrjun_h100_N1G8", "H100-SXM-80GB", _node(8, rate_gbps=400), "2.29", fitted="hopper"),
    _Machine("xxrjun_h100_N10G1", "H100-SXM-80GB", _node(8, rate_gbps=400), "2.29", fitted="infiniband"),
    _Machine("xxrjun_h100", "H100-SXM-80GB", _node(8, rate_gbps=400), "2.29"),
    _Machine("vtrain_a100", "A100-SXM-80GB", _node(8), "2.18"),
    *(
        _Machine(f"vtrain_v100_{gpus}", "V100-SXM2-32GB", _cube(rings), "2.18", fitted="volta" if gpus == 8 else "")
        for gpus, rings in ((2, 1), (3, 2), (4, 4), (6, 2), (7, 4), (8, 6))
    ),
    _Machine("vtrain_v100_5", "V100-SXM2-32GB", _cube(2), "2.18", doubt=_CUBE),
    _Machine("vidur_a100_dgx_all_reduce_16w", "A100-SXM-80GB", _SLOW, "2.18", "ethernet", doubt=_SLOW_NICS),
    _Machine("vidur_a100_dgx_all_reduce_8w_4pn", "A100-SXM-80GB", _SLOW, "2.18", "ethernet", doubt=_SLOW_NICS),
    _Machine("vidur_a100_dgx_all_reduce_4w_2pn", "A100-SXM-80GB", _SLOW, "2.18", "ethernet", doubt=_SLOW_NICS),
    *(
        _Machine(f"vidur_{gpu}_all_reduce_{size}", model, node, "2.18", doubt=_BY_TURNS, environment=environment)
        for gpu, model, node, environment, sizes in _BY_TURNS_TABLES
        for size in sizes
    ),
    _Machine("vidur_a100_dgx_send_recv_2w_2pn", "A100-SXM-80GB", _node(8), "2.18", doubt=_SENDER),
    _Machine("vidur_h100_dgx_send_recv_2w_2pn", "H100-SXM-80GB", _node(8), "2.18", fitted="hopper"),
    _Machine("vidur_a100_dgx_send_recv_2w_1pn", "A100-SXM-80GB", _SLOW, "2.18", "ethernet", doubt=_SLOW_NICS),
    _Machine("vidur_h100_dgx_send_recv_2w_1pn", "H100-SXM-80GB", _node(8, rate_gbps=400), "2.18", fitted="infiniband"),
    _Machine("vidur_a100_dgx_all_reduce_2w_1pn", "A100-SXM-80GB", _SLOW, "2.18", "ethernet", "ethernet"),
    _Machine("vidur_a100_dgx", "A100-SXM-80GB", _SLOW, "2.18", "ethernet"),
    _Machine("vidur_h100_dgx", "H100-SXM-80GB", _node(8, rate_gbps=400), "2.18"),
    _Machine("vidur_a100_pairwise_nvlink_send_recv", "A100-SXM-80GB", _pairs(200), "2.18", doubt=_COPIED),
    _Machine("vidur_h100_pairwise_nvlink_send_recv", "H100-PCIE-80GB", _pairs(400), "2.18", doubt=_COPIED),
    _Machine("vidur_a100_pairwise", "A100-SXM-80GB", _pairs(200), "2.18", environment=_AS_ONE_NODE),
    _Machine("vidur_h100_pairwise", "H100-PCIE-80GB", _pairs(400), "2.18", environment=_AS_ONE_NODE),
)


def load(folder: Path | None, tell: Callable[[str], None] = lambda message: None) -> list[Table]:
    """All tables that are there: the package's, and those of a folder; `tell` hears what is not.

    Raises NoTablesError if none is.
    """
    found: list[Table] = []
    missing: list[str] = []
    sources: list[Callable[[], Iterator[Table]]] = [_silicon, *([partial(_csv, folder)] if folder else [])]
    for source in sources:
        try:
            found += source()
        except NoTablesError as error:
            missing.append(str(error))
    if not found:
        raise NoTablesError("; ".join(missing))
    for message in missing:
        tell(f"left out: {message}")
    return found


def _csv(folder: Path) -> Iterator[Table]:
    path = folder / CSV_NAME
    if not path.is_file():
        raise NoTablesError(f"no {CSV_NAME} in {folder}")
    rows: dict[tuple[str, str, int, int], list[Row]] = defaultdict(list)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            key = (line["table"], line["op"], int(line["n_gpus"]), int(line["n_nodes"]))
            size, time_us = int(line["size_bytes"]), float(line["time_us_oop"])
            if size >= int(line["n_gpus"]) and time_us > 0:
                rows[key].append(Row(size, time_us))
    for (name, op, gpus, nodes), measured in rows.items():
        machine = next((machine for machine in _MACHINES if machine.is_of(name, gpus)), None)
        if machine is not None:
            yield _table(machine, name, op, gpus, nodes, measured)


def _table(machine: _Machine, name: str, op: str, gpus: int, nodes: int, rows: list[Row]) -> Table:
    per_node = gpus // nodes
    if machine.node["gpus"] < per_node:  # A node for each pair that NVLink joins.
        nodes, per_node = gpus // machine.node["gpus"], machine.node["gpus"]
    cluster = Cluster.model_validate(
        {
            "name": name,
            "nodes": nodes,
            "gpu": {"model": machine.gpu},
            "node": machine.node,
            "nccl": {"version": machine.version, "network": machine.network, "environment": machine.environment},
        }
    )
    members = tuple(Device(node, local) for node in range(nodes) for local in range(per_node))
    return Table(name, _OPS.get(op, op), cluster, members, tuple(rows), machine.fitted, machine.doubt)


_NOISE = "neighbouring sizes below 1 MiB take 11 and 21 us by turns; later releases are steady at 7 to 15"
_PCIE = "eight of these GPUs reach 1.2 to 4 GB/s over PCIe, twice as much or half at the next size"

_SILICON = (
    _Machine("a100_sxm", "A100-SXM-80GB", _node(8), "2.27", fitted="ampere"),
    _Machine("h100_sxm 2.23 alltoall 8", "H100-SXM-80GB", _node(8), "2.23", doubt=_NOISE),
    _Machine("h200_sxm 2.23 alltoall 8", "H200-SXM", _node(8), "2.23", doubt=_NOISE),
    _Machine("h100_sxm 2.29", "H100-SXM-80GB", _node(8), "2.29", fitted="hopper"),
    _Machine("h100_sxm", "H100-SXM-80GB", _node(8), "2.23"),
    _Machine("h200_sxm 2.29", "H200-SXM", _node(8), "2.29"),
    _Machine("h200_sxm", "H200-SXM", _node(8), "2.23"),
    _Machine("b200_sxm 2.29", "B200-SXM", _node(8), "2.29", fitted="blackwell"),
    _Machine("b200_sxm", "B200-SXM", _node(8), "2.28"),
    _Machine("b300_sxm", "B200-SXM", _node(8), "2.29"),
    _Machine("gb", "GB200", _node(4), "2.29"),
    *(
        _Machine(
            name,
            "L40S",
            _node(8, "none", pcie={"bandwidth_GBps": rate}),
            version,
            fitted=fitted,
            doubt=doubt,
            gpus=gpus,
        )
        for name, version, fitted, doubt, rates in (
            ("rtx_pro_6000", "2.29", "pcie", "", {2: 38, 4: 26, 8: 26}),
            ("l40s", "2.27", "", _PCIE, {2: 22, 4: 5.2, 8: 1.8}),
        )
        for gpus, rate in rates.items()
    ),
)
"""PCIe nodes are described by the rate that the slowest hop among the GPUs has: two below one switch, more across."""


def _silicon() -> Iterator[Table]:
    folder = _silicon_folder()
    from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]  # heavy, and only needed here

    found: dict[tuple[str, str, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*/comm/nccl/*/nccl_perf.parquet")):
        system = path.parts[-5]
        for line in parquet.read_table(path).to_pylist():
            version = line.get("version") or path.parts[-2]
            size = line["message_size"] * (2 if line["nccl_dtype"] == "half" else 1)
            name = f"{system} {version}"
            found[name, line["op_name"], line["num_gpus"]][size].append(line["latency"] * 1e3)
    for (name, op, gpus), times in found.items():
        machine = next((machine for machine in _SILICON if machine.is_of(f"{name} {op} {gpus}", gpus)), None)
        if machine is not None:
            rows = [Row(size, _median(times[size])) for size in sorted(times)]
            yield _table(machine, f"{name} {op} {gpus}", op, gpus, 1, rows)


def _silicon_folder() -> Path:
    spec = find_spec("aiconfigurator_core")
    if spec is None or not spec.submodule_search_locations or find_spec("pyarrow") is None:
        raise NoTablesError("the packages aiconfigurator-core and pyarrow are not installed")
    return Path(spec.submodule_search_locations[0]) / "systems" / "data"


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
