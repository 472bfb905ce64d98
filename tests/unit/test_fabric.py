"""Each kind of fabric against routes, bandwidths and latencies calculated by hand."""

from pathlib import Path

import pytest

from phantora_netsim import Network
from phantora_py.cluster import ClusterError, Device, load_cluster
from phantora_py.fabric.cables import FabricError
from phantora_py.topology import Load, Topology

NIC = 400e9 / 8 * 0.96
HEAD = """
name = "tested"
nodes = {nodes}
[gpu]
model = "H100-SXM-80GB"
[node]
gpus = {gpus}
nics = {{ count = {gpus} }}
[fabric]
{fabric}
"""


def topology(folder: Path, nodes: int, fabric: str, gpus: int = 1) -> Topology:
    file = folder / "cluster.toml"
    file.write_text(HEAD.format(nodes=nodes, gpus=gpus, fabric=fabric))
    return Topology(load_cluster(str(file)), Network())


def names(topology: Topology, load: Load) -> dict[str, float]:
    return {topology.name(link): pytest.approx(weight) for link, weight in load.items()}


def sent(topology: Topology, source: int, target: int) -> dict[str, float]:
    return names(topology, topology.path(Device(source, 0), Device(target, 0)))


def rates(topology: Topology, *loads: Load) -> list[float]:
    """Of transfers that run at once, each bound by its share of its worst link, as if all were equal."""
    total: Load = {}
    for load in loads:
        for link, weight in load.items():
            total[link] = total.get(link, 0) + weight
    return [min(topology.capacity(link) / total[link] for link in load) for load in loads]


def test_one_switch_costs_a_port_at_each_end(tmp_path: Path) -> None:
    switch = topology(tmp_path, 2, 'kind = "switch"\nlatency_us = 0.5')
    assert sent(switch, 0, 1) == {"node0.nic0 > switch": 1, "switch > node1.nic0": 1}
    assert switch.extra_latency_ns(Device(0, 0), Device(1, 0)) == 500


LEAF_SPINE = """
kind = "leaf-spine"
nodes_per_leaf = 2
spines = 2
flows_per_pair = 1
"""


def test_a_leaf_switches_for_itself_and_spines_between_leaves(tmp_path: Path) -> None:
    fabric = topology(tmp_path, 4, LEAF_SPINE + 'routing = "spray"')
    assert sent(fabric, 0, 1) == {"node0.nic0 > leaf0": 1, "leaf0 > node1.nic0": 1}
    assert sent(fabric, 0, 3) == {
        "node0.nic0 > leaf0": 1,
        "leaf0 > spine0": 0.5,
        "spine0 > leaf1": 0.5,
        "leaf0 > spine1": 0.5,
        "spine1 > leaf1": 0.5,
        "leaf1 > node3.nic0": 1,
    }
    assert fabric.extra_latency_ns(Device(0, 0), Device(1, 0)) == 0
    assert fabric.extra_latency_ns(Device(0, 0), Device(3, 0)) == 2 * 300  # two switches more


def test_hashed_flows_collide_where_sprayed_ones_do_not(tmp_path: Path) -> None:
    """Of two flows between the same leaves, each as fast as an uplink, some seeds put both on one spine."""
    collided = set()
    for seed in range(8):
        fabric = topology(tmp_path, 4, f"{LEAF_SPINE}seed = {seed}")
        loads = [fabric.path(Device(node, 0), Device(2 + node, 0)) for node in range(2)]
        assert all(len(load) == 4 for load in loads)
        slow, same = rates(fabric, *loads)
        assert slow == same
        assert slow in (pytest.approx(NIC), pytest.approx(NIC / 2))
        collided.add(slow < NIC * 0.9)
    assert collided == {False, True}
    fabric = topology(tmp_path, 4, LEAF_SPINE + 'routing = "spray"')
    loads = [fabric.path(Device(node, 0), Device(2 + node, 0)) for node in range(2)]
    assert rates(fabric, *loads) == pytest.approx([NIC, NIC])


def test_an_oversubscribed_leaf_halves_what_leaves_it(tmp_path: Path) -> None:
    fabric = topology(tmp_path, 4, LEAF_SPINE + 'routing = "spray"\noversubscription = 2')
    loads = [fabric.path(Device(node, 0), Device(2 + node, 0)) for node in range(2)]
    assert rates(fabric, *loads) == pytest.approx([NIC / 2, NIC / 2])
    assert rates(fabric, loads[0]) == pytest.approx([NIC])  # alone it has both uplinks


def test_a_failed_spine_cable_slows_exactly_the_flows_that_need_its_leaf(tmp_path: Path) -> None:
    failed = '[[fabric.link]]\nbetween = ["leaf0", "spine1"]\nfailed = true'
    fabric = topology(tmp_path, 6, f'{LEAF_SPINE}routing = "spray"\n{failed}')
    loads = [fabric.path(Device(source, 0), Device(target, 0)) for source, target in ((0, 2), (1, 4), (3, 5))]
    assert "leaf0 > spine1" not in names(fabric, loads[0])
    # Both flows from leaf 0 share its one uplink (2 NICs' worth over 2 spines: a NIC's rate each); the third has two.
    assert rates(fabric, *loads[:2]) == pytest.approx([NIC / 2, NIC / 2])
    assert rates(fabric, loads[2]) == pytest.approx([NIC])


def test_a_slower_cable_and_one_that_slows_later(tmp_path: Path) -> None:
    slow = '[[fabric.link]]\nbetween = ["spine0", "leaf0"]\nbandwidth_Gbps = 100'
    fabric = topology(tmp_path, 4, f'{LEAF_SPINE}routing = "spray"\n{slow}')
    # Half of the flow goes by the slow cable: twice its rate at the most.
    assert rates(fabric, fabric.path(Device(0, 0), Device(2, 0))) == pytest.approx([2 * NIC / 4])
    later = topology(tmp_path, 4, f'{LEAF_SPINE}routing = "spray"\n{slow}\nfrom_ms = 5')
    assert rates(later, later.path(Device(0, 0), Device(2, 0))) == pytest.approx([NIC])


def test_rails_without_a_spine_are_changed_over_nvlink(tmp_path: Path) -> None:
    rails = topology(tmp_path, 2, 'kind = "rail"', gpus=2)
    assert names(rails, rails.path(Device(0, 0), Device(1, 1))) == {
        "node0.gpu0 out": 1,
        "node0.gpu1 in": 1,
        "node0.nic1 > rail1.leaf0": 1,
        "rail1.leaf0 > node1.nic1": 1,
    }
    assert rails.extra_latency_ns(Device(0, 0), Device(1, 1)) == 0


def test_rails_without_a_spine_and_nvlink_end_at_their_rail(tmp_path: Path) -> None:
    rails = topology(tmp_path, 2, 'kind = "rail"\n[node.nvlink]\nkind = "none"', gpus=2)
    assert "node0.nic1 > rail1.leaf0" in names(rails, rails.path(Device(0, 1), Device(1, 1)))
    with pytest.raises(FabricError, match=r"no route leads from node0\.nic0 to node1\.nic1"):
        rails.path(Device(0, 0), Device(1, 1))


def test_rails_of_several_leaves_need_spines(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"node1\.nic0 is cut off from node0\.nic0"):
        topology(tmp_path, 2, 'kind = "rail"\nnodes_per_leaf = 1')
    rails = topology(tmp_path, 2, 'kind = "rail"\nnodes_per_leaf = 1\nspines = 1')
    assert list(sent(rails, 0, 1)) == [
        "node0.nic0 > rail0.leaf0",
        "rail0.leaf0 > spine0",
        "rail0.leaf1 > node1.nic0",
        "spine0 > rail0.leaf1",
    ]


FAT_TREE = """
kind = "fat-tree"
routing = "spray"
nodes_per_leaf = 1
leaves_per_pod = 2
spines_per_pod = 2
cores_per_spine = 2
core_oversubscription = 4
"""


def test_a_fat_tree_has_five_switches_between_pods(tmp_path: Path) -> None:
    tree = topology(tmp_path, 4, FAT_TREE)
    assert [tree.extra_latency_ns(Device(0, 0), Device(node, 0)) for node in (1, 2)] == [600, 1200]
    far = sent(tree, 0, 2)
    assert far["pod0.leaf0 > pod0.spine1"] == 0.5
    assert far["pod0.spine1 > core1.0"] == 0.25
    # Two nodes' worth a pod over 4 cables to the cores, oversubscribed 4:1: half a NIC's rate for the pod.
    loads = [tree.path(Device(node, 0), Device(2 + node, 0)) for node in range(2)]
    assert rates(tree, *loads) == pytest.approx([NIC / 4, NIC / 4])
    assert rates(tree, tree.path(Device(0, 0), Device(1, 0))) == pytest.approx([NIC])


def test_dragonfly_groups_are_one_cable_apart(tmp_path: Path) -> None:
    fabric = topology(tmp_path, 6, 'kind = "dragonfly"\nrouters_per_group = 2\nglobal_Gbps = 100')
    # Cables between groups go out from router 0 and 1 in turn: 0-1 by 0 and 0, 0-2 by 1 and 0, 1-2 by 1 and 1.
    assert sent(fabric, 0, 2) == {
        "node0.nic0 > group0.router0": 1,
        "group0.router0 > group1.router0": 1,
        "group1.router0 > node2.nic0": 1,
    }
    assert rates(fabric, fabric.path(Device(0, 0), Device(2, 0))) == pytest.approx([NIC / 4])
    assert fabric.extra_latency_ns(Device(0, 0), Device(5, 0)) == 3 * 300  # 0.0 > 0.1 > 2.0 > 2.1


def test_a_torus_is_as_far_as_its_shorter_ways(tmp_path: Path) -> None:
    torus = topology(tmp_path, 16, 'kind = "torus"\nrouting = "spray"\ndimensions = [4, 4]')
    assert torus.extra_latency_ns(Device(0, 0), Device(3, 0)) == 300  # a row closes to a ring
    far = sent(torus, 0, 10)  # two steps either way, along both axes
    assert far["router0.0 > router1.0"] == far["router0.0 > router3.0"] == far["router0.0 > router0.1"] == 0.25
    assert torus.extra_latency_ns(Device(0, 0), Device(10, 0)) == 4 * 300
    with pytest.raises(ClusterError, match="has room for 12 nodes, not 16"):
        topology(tmp_path, 16, 'kind = "torus"\ndimensions = [3, 4]')


def test_any_graph_and_a_graphml_file_of_it(tmp_path: Path) -> None:
    cables = 'cables = [["node0", "left", 400], ["node1", "right", 400], ["left", "right", 100]]'
    drawn = topology(tmp_path, 2, f'kind = "graph"\n{cables}')
    edges = "".join(
        f'<edge source="{a}" target="{b}"><data key="d">{rate}</data></edge>'
        for a, b, rate in (("node0", "left", 400), ("node1", "right", 400), ("left", "right", 100))
    )
    (tmp_path / "fabric.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d" for="edge" attr.name="bandwidth_Gbps" '
        f'attr.type="double"/><graph edgedefault="undirected">{edges}</graph></graphml>'
    )
    read = topology(tmp_path, 2, 'kind = "graph"\nfile = "fabric.graphml"')
    for fabric in (drawn, read):
        assert sent(fabric, 0, 1) == {"node0.nic0 > left": 1, "left > right": 1, "right > node1.nic0": 1}
        assert rates(fabric, fabric.path(Device(0, 0), Device(1, 0))) == pytest.approx([NIC / 4])


def test_all_pairs_is_the_sum_of_the_paths(tmp_path: Path) -> None:
    for fabric in (LEAF_SPINE, LEAF_SPINE + 'routing = "spray"', 'kind = "rail"', FAT_TREE):
        built = topology(tmp_path, 4, fabric, gpus=2)
        members = [Device(node, gpu) for node in range(4) for gpu in range(2)]
        total: Load = {}
        for source in members:
            for target in members:
                for link, weight in built.path(source, target).items():
                    total[link] = total.get(link, 0) + weight * 0.25
        assert built.all_pairs(members, 0.25) == pytest.approx(total)


def test_nvlink_may_join_several_nodes(tmp_path: Path) -> None:
    file = tmp_path / "rack.toml"
    file.write_text('name = "rack"\nnodes = 4\ngpu.model = "GB200"\nnode.gpus = 4\nnode.nvlink.nodes = 2')
    rack = Topology(load_cluster(str(file)), Network())
    assert names(rack, rack.path(Device(0, 3), Device(1, 0))) == {"node0.gpu3 out": 1, "node1.gpu0 in": 1}
    assert "node2.gpu0 in" not in names(rack, rack.path(Device(1, 3), Device(2, 0)))


def test_pcie_carries_what_goes_to_the_nic() -> None:
    pcie = Topology(load_cluster("l40s-pcie-8:2"), Network())
    assert names(pcie, pcie.path(Device(0, 1), Device(1, 0))) == {
        "node0.gpu1 out": 1,
        "node0.nic0 > switch": 1,
        "switch > node1.nic0": 1,
        "node1.gpu0 in": 1,
    }


def test_several_nics_of_a_gpu_share_its_traffic(tmp_path: Path) -> None:
    file = tmp_path / "nics.toml"
    file.write_text('name = "nics"\nnodes = 2\ngpu.model = "H100-SXM-80GB"\nnode.gpus = 2\nnode.nics.count = 4')
    nics = Topology(load_cluster(str(file)), Network())
    assert names(nics, nics.path(Device(0, 1), Device(1, 0))) == {
        "node0.nic2 > switch": 0.5,
        "node0.nic3 > switch": 0.5,
        "switch > node1.nic0": 0.5,
        "switch > node1.nic1": 0.5,
    }


BACKGROUND = '[[fabric.background]]\nfrom = "node0.nic0"\nto = "node1.nic0"\nbandwidth_Gbps = 1\n'
LINK = '\n[[fabric.link]]\nbetween = ["switch", "node0.nic0"]\n'
GRAPH = "kind = 'graph'\ncables = [['node0', 's', 1], ['node1', 's', 1], "


@pytest.mark.parametrize(
    ("fabric", "said"),
    [
        ('kind = "hypercube"', "cluster.toml:9: fabric: Input tag 'hypercube'"),
        ('kind = "leaf-spine"\nspines = 0', r"cluster.toml:11: fabric.leaf-spine.spines: .* than or equal to 1"),
        ('[[fabric.link]]\nbetween = ["switch", "x"]\nfailed = true', "no cable joins 'switch' and 'x'"),
        ('[[fabric.link]]\nbetween = ["switch", "node0.nic0"]\nfailed = true', "node0.nic0 has 0 cables"),
        ('[[fabric.link]]\nbetween = ["switch", "node0.nic0"]', "give either bandwidth_Gbps or failed"),
        ('[[fabric.background]]\nfrom = "nic"\nto = "node1.nic0"\nbandwidth_Gbps = 1', "there is no NIC 'nic'"),
        ('[[fabric.background]]\nfrom = "node0.nic0"\nto = "node0.nic0"\nbandwidth_Gbps = 1', "meets no link"),
        (f"{BACKGROUND}from_ms = 5\nuntil_ms = 4.9", "until_ms = 4.9 is not later than from_ms = 5.0"),
        (f"{BACKGROUND}from_ms = 10\nuntil_ms = 10.0000001", "is not later"),
        (f"{LINK}bandwidth_Gbps = 1\n{LINK}bandwidth_Gbps = 2", "number 1 and number 2 contradict .* from 0 ms on"),
        (f"{LINK}bandwidth_Gbps = 1\n{LINK}bandwidth_Gbps = 2\nfrom_ms = 1e-7", "number 1 and number 2 contradict"),
        (f"{LINK}bandwidth_Gbps = 1\nfrom_ms = 5\n{LINK}failed = true", "number 2 contradict .*, which has failed"),
        (f"{LINK}failed = true", r"NCCL_IB_HCA = ..=mlx5_0"),
        (f"{GRAPH}['node2', 's', 1]]", "a cable ends at 'node2', which is no node"),
        (f"{GRAPH}['node0.nic1', 's', 1]]", "a cable ends at 'node0.nic1', which is no node"),
        (f"{GRAPH}['node01', 's', 1]]", "a cable ends at 'node01', which is no node"),
        (f"{GRAPH}['node0.tor', 's', 1]]", "a cable ends at 'node0.tor', which is no node"),
        (f"{GRAPH}['', 's', 1]]", "a cable ends at ''"),
        (f"{GRAPH}['s', 's', 1]]", "a cable joins 's' to itself"),
        ("kind = 'graph'\ncables = [['node0', 's', 1]]", r"node1.nic0 has 0 cables\n  hint: each NIC needs"),
        ('[[straggler]]\nnode = 7\nslowdown = 2', "there is no GPU 0 on a node 7"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(tmp_path: Path, fabric: str, said: str) -> None:
    with pytest.raises(ClusterError, match=said) as caught:
        topology(tmp_path, 2, fabric)
    assert "hint:" in str(caught.value)


def test_traffic_of_others_needs_a_route(tmp_path: Path) -> None:
    apart = BACKGROUND.replace("node1.nic0", "node1.nic1")
    with pytest.raises(ClusterError, match=r"no route leads from node0\.nic0 to node1\.nic1"):
        topology(tmp_path, 2, f'kind = "rail"\n{apart}', gpus=2)


def test_nothing_has_failed_where_rails_end(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="is cut off from") as caught:
        topology(tmp_path, 2, 'kind = "rail"\nnodes_per_leaf = 1')
    assert "failed cables" not in str(caught.value)
