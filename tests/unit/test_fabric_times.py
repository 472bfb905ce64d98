"""Each kind of fabric: how long a collective, a message and colliding messages take, calculated by hand.

Of two sizes the difference tells the bandwidth, since the latencies are the same. A NIC sends 100 Gb/s of which 96 %
are payload: N bytes/s. Alone, a message reaches PAIR of what its links could carry, and a ring RING of it; messages
that collide fill the link.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_rank import FakeEngine
from synthetic_job import SyntheticJob

from phantora_py.cluster import Cluster, load_cluster
from phantora_py.job import Job
from phantora_py.nccl.algorithm import Protocol
from phantora_py.nccl.timing import FITTED
from phantora_py.outbox import NullOutbox
from phantora_py.placement import Placement

N = 100e9 / 8 * 0.96
PORT = 370.8e9
"""NVLink of an H100, as collectives reach it."""
PAIR = FITTED.outside["infiniband"].pair_efficiency
RING = FITTED.outside["infiniband"].efficiency[Protocol.SIMPLE.number]
SIZE = 1 << 30

Sends = Sequence[tuple[int, int]]
"""Source and target of messages that start at once."""


def cluster(folder: Path, nodes: int, fabric: str, gpus: int = 1) -> Cluster:
    file = folder / "cluster.toml"
    file.write_text(
        f'name = "tested"\nnodes = {nodes}\n[gpu]\nmodel = "H100-SXM-80GB"\n[node]\ngpus = {gpus}\n'
        f"nics = {{ count = {gpus}, bandwidth_Gbps = 100 }}\n[fabric]\n{fabric}\n"
    )
    return load_cluster(str(file))


def simulated(cluster: Cluster, job: SyntheticJob) -> list[int]:
    """When each rank has synchronized, in ns; ranks fill the nodes in turn."""
    for rank in range(job.world_size):
        job.sync(rank)
    job.finish()
    gpus = cluster.node.gpus
    placements = [Placement(rank, rank // gpus, rank % gpus, 0) for rank in range(job.world_size)]
    core = Job(cluster, placements, FakeEngine(), NullOutbox())
    for rank in job.ranks:
        for kind, payload in rank.frames:
            core.frame(rank.rank, kind, payload)
    core.pump()
    core.finish()
    return [core.clock_ns(rank) for rank in range(job.world_size)]


def sent_ns(cluster: Cluster, sends: Sends, size_bytes: int) -> list[int]:
    """When each message has arrived."""
    job = SyntheticJob(cluster.nodes * cluster.node.gpus, cluster.node.gpus)
    for stream, (source, target) in enumerate(sends, start=1):
        job.transfer(source, target, size_bytes, stream=stream)
        for rank in (source, target):
            job.join(rank, stream, 0)
    ends = simulated(cluster, job)
    return [ends[target] for _, target in sends]


def rates(cluster: Cluster, sends: Sends) -> list[float]:
    """Bytes/s of each message; no target may receive two that differ."""
    short, long = (sent_ns(cluster, sends, size) for size in (SIZE, 2 * SIZE))
    return [SIZE / (b - a) * 1e9 for a, b in zip(short, long, strict=True)]


def all_reduce_ns(cluster: Cluster, size_bytes: int) -> int:
    job = SyntheticJob(cluster.nodes * cluster.node.gpus, cluster.node.gpus)
    job.collective(range(job.world_size), "all_reduce", size_bytes)
    (end,) = set(simulated(cluster, job))
    return end


def all_reduce_rate(cluster: Cluster) -> float:
    return SIZE / (all_reduce_ns(cluster, 2 * SIZE) - all_reduce_ns(cluster, SIZE)) * 1e9


LEAF_SPINE = 'kind = "leaf-spine"\nnodes_per_leaf = 2\nspines = 2\nflows_per_pair = 1\n'
FAT_TREE = (
    'kind = "fat-tree"\nrouting = "spray"\nnodes_per_leaf = 1\nleaves_per_pod = 2\nspines_per_pod = 2\n'
    "cores_per_spine = 2\ncore_oversubscription = 4\n"
)
DRAGONFLY = 'kind = "dragonfly"\nrouters_per_group = 2\nglobal_Gbps = 25\n'
GRAPH = 'kind = "graph"\ncables = [["node0", "left", 100], ["node1", "left", 100], ["node2", "right", 100],' + (
    '["node3", "right", 100], ["left", "right", 50]]\n'
)


@pytest.mark.parametrize(
    ("nodes", "fabric", "alone", "together", "rate"),
    [
        pytest.param(3, 'kind = "switch"', N * PAIR, [(0, 2), (1, 2)], N / 2, id="switch: into one NIC"),
        pytest.param(4, 'kind = "switch"', N * PAIR, [(0, 2), (1, 3)], N * PAIR, id="switch: apart"),
        pytest.param(
            4, 'kind = "rail"\nnodes_per_leaf = 2\nspines = 1\noversubscription = 2', N * PAIR, [(0, 2), (1, 3)], N / 2,
            id="rail: two NICs' traffic on an uplink of one",
        ),
        pytest.param(4, LEAF_SPINE + 'routing = "spray"', N * PAIR, [(0, 2), (1, 3)], N * PAIR, id="leaf-spine"),
        pytest.param(
            4, LEAF_SPINE + 'routing = "spray"\noversubscription = 4', N / 2 * PAIR, [(0, 2), (1, 3)], N / 4,
            id="leaf-spine, 4:1",
        ),
        # A pod has half a NIC's rate to the cores.
        pytest.param(4, FAT_TREE, N / 2 * PAIR, [(0, 2), (1, 3)], N / 4, id="fat-tree: the cores"),
        pytest.param(4, FAT_TREE, N / 2 * PAIR, [(0, 1), (2, 3)], N * PAIR, id="fat-tree: within pods"),
        # Groups 0 and 1 are joined by one cable of a quarter of a NIC's rate.
        pytest.param(4, DRAGONFLY, N / 4 * PAIR, [(0, 2), (1, 3)], N / 8, id="dragonfly"),
        # Both pass from router 1 to router 2.
        pytest.param(
            5, 'kind = "torus"\ndimensions = [5]\nlink_Gbps = 100', N * PAIR, [(0, 2), (1, 2)], N / 2, id="torus"
        ),
        pytest.param(4, GRAPH, N / 2 * PAIR, [(0, 2), (1, 3)], N / 4, id="graph"),
    ],
)  # fmt: skip
def test_colliding_messages_share_the_link(
    tmp_path: Path, nodes: int, fabric: str, alone: float, together: Sends, rate: float
) -> None:
    built = cluster(tmp_path, nodes, fabric)
    assert rates(built, [(0, 2)]) == pytest.approx([alone], rel=2e-3)
    assert rates(built, together) == pytest.approx([rate, rate], rel=2e-3)


@pytest.mark.parametrize(
    ("nodes", "fabric", "bottleneck", "step_ns"),
    [
        pytest.param(4, 'kind = "switch"\nlatency_us = 0.7', N, 700, id="switch"),
        pytest.param(4, 'kind = "rail"\nnodes_per_leaf = 2\nspines = 1\noversubscription = 2', N, 600, id="rail"),
        pytest.param(4, LEAF_SPINE + 'routing = "spray"\noversubscription = 4', N / 2, 600, id="leaf-spine, 4:1"),
        pytest.param(4, FAT_TREE, N / 2, 1200, id="fat-tree"),
        pytest.param(4, DRAGONFLY, N / 4, 600, id="dragonfly"),
        pytest.param(
            4, 'kind = "torus"\nrouting = "spray"\ndimensions = [2, 2]\nlink_Gbps = 100', N, 600, id="2D torus"
        ),
        pytest.param(4, GRAPH, N / 2, 300, id="graph"),
    ],
)  # fmt: skip
def test_an_all_reduce_goes_as_fast_as_its_worst_link_and_as_far_as_its_longest_step(
    tmp_path: Path, nodes: int, fabric: str, bottleneck: float, step_ns: int
) -> None:
    """A ring over the nodes in turn crosses from one half to the other once each way. A small one takes the trees of
    NCCL, of depth 2 for 4 nodes, up and down."""
    built = cluster(tmp_path, nodes, fabric)
    assert all_reduce_rate(built) == pytest.approx(bottleneck * RING / (2 * (nodes - 1) / nodes), rel=2e-3)
    nearest = cluster(tmp_path, nodes, 'kind = "switch"')
    later_ns = all_reduce_ns(built, 8) - all_reduce_ns(nearest, 8)
    assert later_ns == pytest.approx(2 * 2 * step_ns, abs=20)  # the bytes themselves take some


def test_rails_keep_the_groups_of_their_gpus_apart(tmp_path: Path) -> None:
    """GPUs of one number on two nodes meet on their own rail; those of different numbers change it over NVLink."""
    rails = cluster(tmp_path, 2, 'kind = "rail"', gpus=2)
    assert rates(rails, [(0, 2), (1, 3)]) == pytest.approx([N * PAIR] * 2, rel=2e-3)
    assert rates(rails, [(0, 3), (1, 3)]) == pytest.approx([N / 2] * 2, rel=2e-3)


def test_hashed_messages_collide_for_some_seeds_and_sprayed_ones_never(tmp_path: Path) -> None:
    """Uplinks are as fast as a NIC: two messages on one spine have half of it each."""
    alone = pytest.approx([N * PAIR] * 2, rel=2e-3)
    collided = set()
    for seed in range(6):
        hashed = rates(cluster(tmp_path, 4, f"{LEAF_SPINE}seed = {seed}"), [(0, 2), (1, 3)])
        assert hashed in (alone, pytest.approx([N / 2] * 2, rel=2e-3))
        collided.add(hashed != alone)
    assert collided == {False, True}
    assert rates(cluster(tmp_path, 4, LEAF_SPINE + 'routing = "spray"'), [(0, 2), (1, 3)]) == alone


def test_a_failed_spine_cable_slows_exactly_what_leaves_its_leaf(tmp_path: Path) -> None:
    sprayed = LEAF_SPINE + 'routing = "spray"\n'
    failed = cluster(tmp_path, 6, sprayed + '[[fabric.link]]\nbetween = ["leaf0", "spine1"]\nfailed = true')
    assert rates(failed, [(0, 2), (1, 4), (3, 5)]) == pytest.approx([N / 2, N / 2, N * PAIR], rel=2e-3)
    assert rates(cluster(tmp_path, 6, sprayed), [(0, 2), (1, 4), (3, 5)]) == pytest.approx([N * PAIR] * 3, rel=2e-3)


NODE = 'kind = "switch"\n[node.nvlink]\n'


@pytest.mark.parametrize(
    ("nodes", "gpus", "node", "together", "rate"),
    [
        pytest.param(1, 4, 'kind = "nvswitch"', [(0, 2), (1, 2)], PORT / 2, id="NVSwitch: into one port"),
        pytest.param(1, 4, 'kind = "nvswitch"', [(0, 3), (0, 2)], PORT / 2, id="NVSwitch: out of one port"),
        pytest.param(2, 2, 'kind = "nvswitch"\nnodes = 2', [(0, 2), (1, 2)], PORT / 2, id="NVLink of two nodes"),
        pytest.param(1, 4, 'kind = "none"\n[node.pcie]\nbandwidth_GBps = 20', [(0, 2), (1, 2)], 10e9, id="PCIe"),
    ],
)
def test_messages_within_a_node_share_its_ports(
    tmp_path: Path, nodes: int, gpus: int, node: str, together: Sends, rate: float
) -> None:
    built = cluster(tmp_path, nodes, NODE + node, gpus)
    assert rates(built, together) == pytest.approx([rate] * 2, rel=2e-3)
    assert rates(built, [(0, 2)])[0] > 1.5 * rate


def test_pairs_of_a_mesh_have_links_of_their_own(tmp_path: Path) -> None:
    mesh = cluster(tmp_path, 1, NODE + 'kind = "mesh"', gpus=4)
    (alone,) = rates(mesh, [(0, 2)])
    assert alone <= PORT / 3
    assert rates(mesh, [(0, 2), (1, 2)]) == pytest.approx([alone] * 2, rel=2e-3)


def test_nvls_adds_up_in_the_switch(tmp_path: Path) -> None:
    """A port carries S (1 + 1/k); a ring would carry 2 S (k-1)/k."""
    node = cluster(tmp_path, 1, NODE + 'kind = "nvswitch"', gpus=8)
    inside = FITTED.inside["hopper"]
    assert all_reduce_rate(node) == pytest.approx(PORT * inside.nvls_efficiency / (1 + 1 / 8), rel=2e-3)


def test_a_collective_and_others_traffic_share_a_nic_equally(tmp_path: Path) -> None:
    """Whatever the collective carries elsewhere: here a byte of it is an eighth on each NIC."""
    alone = cluster(tmp_path, 2, 'kind = "switch"', gpus=8)
    background = 'from = "node0.nic0"\nto = "node1.nic0"\nbandwidth_Gbps = 100\nfrom_ms = 0\nuntil_ms = 1e6'
    shared = cluster(tmp_path, 2, f'kind = "switch"\n[[fabric.background]]\n{background}', gpus=8)
    assert all_reduce_rate(shared) == pytest.approx(all_reduce_rate(alone) / RING / 2, rel=2e-3)


def test_a_cable_that_starts_slow_is_as_fast_as_others_when_it_recovers(tmp_path: Path) -> None:
    link = '[[fabric.link]]\nbetween = ["node0.nic0", "switch"]\nbandwidth_Gbps = '
    recovered = cluster(tmp_path, 2, f'kind = "switch"\n{link}10\n{link}100\nfrom_ms = 1')
    assert rates(recovered, [(0, 1)]) == pytest.approx([N * PAIR], rel=2e-3)
    assert rates(cluster(tmp_path, 2, f'kind = "switch"\n{link}10'), [(0, 1)]) == pytest.approx(
        [N / 10 * PAIR], rel=2e-3
    )


def test_a_nic_s_cable_is_no_faster_than_its_port(tmp_path: Path) -> None:
    fast = cluster(tmp_path, 2, 'kind = "graph"\ncables = [["node0", "s", 3200], ["node1", "s", 3200]]')
    assert rates(fast, [(0, 1)]) == pytest.approx([N * PAIR], rel=2e-3)
