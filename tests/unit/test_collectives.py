"""Plans of collectives against figures calculated by hand."""

from pathlib import Path

import pytest

from phantora_netsim import Network
from phantora_py.cluster import Cluster, Device, load_cluster
from phantora_py.collectives import Asked, CollectivePlanner, Plan
from phantora_py.nccl.fitted import INSIDE, OUTSIDE
from phantora_py.topology import Topology

GB = 10**9
HOPPER, NETWORK = INSIDE["hopper"], OUTSIDE["infiniband"]
PORT = 18 * 20.6e9
NIC = 48e9


def planner(cluster: str = "dgx-h100:2", **environment: str) -> CollectivePlanner:
    return planner_of(load_cluster(cluster).in_environment(environment))


def planner_of(cluster: Cluster) -> CollectivePlanner:
    return CollectivePlanner(Topology(cluster, Network()))


def devices(nodes: int, per_node: int) -> tuple[Device, ...]:
    return tuple(Device(node, local) for node in range(nodes) for local in range(per_node))


def filled(fill_us: float, size: int, half_mib: int) -> float:
    """Chunks have grown to that part of their full size, and the pipeline's fill with them."""
    return fill_us * size / (size + (half_mib << 20))


def test_all_gather_on_a_node_runs_at_the_port_rate() -> None:
    plan = planner().collective(devices(1, 8), "all_gather", GB)
    assert (plan.algorithm, plan.protocol) == ("ring", "Simple")
    assert plan.volume_bytes == GB * 7 // 8
    # Seven steps; in `edge` of an eighth one a GPU only sends or only receives.
    assert plan.max_rate_bytes_per_s == pytest.approx(PORT * HOPPER.efficiency[2] / (1 + HOPPER.edge / 7))
    expected = HOPPER.launch_us + 7 * HOPPER.hop_us[2] + filled(HOPPER.fill_us, GB, 16)
    assert plan.latency_ns == pytest.approx(expected * 1000, abs=1)
    assert len(plan.links) == 16
    assert all(weight == pytest.approx(1.0) for _, weight in plan.links)


def test_a_store_takes_a_hop_and_its_bytes() -> None:
    plans, (here, there, *_) = planner(), devices(1, 8)
    signal = plans.store(here, here, 0)
    assert (signal.volume_bytes, signal.links) == (0, ())
    assert signal.latency_ns == round(HOPPER.hop_us[0] * 1000)
    plan = plans.store(here, there, GB)
    assert plan.latency_ns == signal.latency_ns
    assert plan.alone_ns == pytest.approx(signal.latency_ns + 1e9 * GB / (PORT * HOPPER.pair_efficiency))
    assert len(plan.links) == 2


def test_all_reduce_in_rings_is_a_reduce_scatter_and_an_all_gather() -> None:
    plans = planner(NCCL_ALGO="Ring", NCCL_PROTO="Simple")
    gather = plans.collective(devices(1, 8), "all_gather", GB)
    reduce = plans.collective(devices(1, 8), "all_reduce", GB)
    assert reduce.volume_bytes == 2 * gather.volume_bytes
    assert reduce.latency_ns - gather.latency_ns == pytest.approx(7 * HOPPER.hop_us[2] * 1000, abs=1)


def test_nvswitches_add_up_a_large_all_reduce() -> None:
    plan = planner().collective(devices(1, 8), "all_reduce", GB)
    assert (plan.algorithm, plan.protocol) == ("nvls", "Simple")
    # Each port sends all of its buffer to be added up, and its eighth of the sum to all: 9/8 of it; so it receives.
    seconds = GB * 9 / 8 / (PORT * HOPPER.nvls_efficiency)
    assert plan.volume_bytes / plan.max_rate_bytes_per_s == pytest.approx(seconds)
    assert all(weight == pytest.approx(1.0) for _, weight in plan.links)
    # As published for DGX H100: 480 GB/s of bus bandwidth.
    assert 2 * 7 / 8 * GB / plan.alone_ns == pytest.approx(480, rel=0.05)


def test_small_messages_take_the_low_latency_protocol() -> None:
    plan = planner().collective(devices(1, 8), "all_reduce", 1024)
    assert (plan.algorithm, plan.protocol) == ("ring", "LL")
    assert plan.latency_ns == pytest.approx((HOPPER.launch_us + 14 * HOPPER.hop_us[0]) * 1000, abs=1)


def test_two_full_nodes_use_all_nics() -> None:
    plan = planner().collective(devices(2, 8), "all_gather", GB)
    # 8 NICs of 48 GB/s take 384 GB/s; the ports carry 7/8 of the ring and would allow 370.8 / (7/8) = 423.8. So NICs
    # are the worst links, by which the plan counts: each carries an eighth of the ring, and ports seven times that.
    inside = PORT / 7 * HOPPER.efficiency[2] / (1 + HOPPER.edge / 15)
    assert plan.max_rate_bytes_per_s == pytest.approx(min(inside, NIC * NETWORK.efficiency[2]))
    assert plan.volume_bytes == GB * 15 // 16 // 8
    assert len(plan.links) == 2 * (16 + 16)
    assert {round(weight, 6) for _, weight in plan.links} == {1, 7}


def test_one_gpu_a_node_is_bound_by_its_nic() -> None:
    plan = planner(NCCL_ALGO="Ring", NCCL_PROTO="Simple").collective((Device(0, 3), Device(1, 3)), "all_reduce", GB)
    assert plan.max_rate_bytes_per_s == pytest.approx(NIC * NETWORK.efficiency[2])
    assert plan.volume_bytes == GB
    expected = HOPPER.launch_us + 2 * NETWORK.hop_us[2] + filled(NETWORK.fill_us, GB, 48)
    expected += filled(HOPPER.fill_us, GB, 16)
    assert plan.latency_ns == pytest.approx(expected * 1000, abs=1)


def test_a_tree_over_two_nodes_crosses_the_network_once() -> None:
    plans = planner("dgx-a100:2", NCCL_ALGO="Tree", NCCL_PROTO="Simple")
    plan = plans.collective(devices(2, 8), "all_reduce", GB)
    assert (plan.algorithm, plan.protocol) == ("tree", "Simple")
    # Two trees of one half each, up and down: S each way over 8 NICs of 24 GB/s, where rings send 15/8 S.
    seconds = max(GB / (8 * 24e9 * NETWORK.efficiency[2]), 2 * 7 / 8 * GB / (240e9 * INSIDE["ampere"].efficiency[2]))
    assert plan.volume_bytes / plan.max_rate_bytes_per_s == pytest.approx(seconds)


def test_a_tree_over_many_nodes_sends_as_much_as_a_ring() -> None:
    plans = planner("dgx-a100:8", NCCL_ALGO="Tree", NCCL_PROTO="Simple")
    plan = plans.collective(devices(8, 8), "all_reduce", GB)
    # A node is inner in one tree (one half from and to each of two children and its parent) and a leaf in the other.
    seconds = 2 * GB / (8 * 24e9 * NETWORK.efficiency[2])
    assert plan.volume_bytes / plan.max_rate_bytes_per_s == pytest.approx(seconds)
    # The deeper tree has three levels above its leaves; the chain in a node has seven hops; up and down.
    ampere = INSIDE["ampere"]
    expected = ampere.launch_us + 14 * ampere.hop_us[2] + 2 * 3 * NETWORK.hop_us[2]
    expected += filled(ampere.fill_us, GB, 16) + filled(NETWORK.fill_us, GB, 48)
    assert plan.latency_ns == pytest.approx(expected * 1000, abs=1)


def test_a_slower_link_never_makes_a_collective_faster() -> None:
    fast = planner().collective(devices(2, 4), "all_reduce", 1 << 24)
    slow = planner("dgx-a100:2").collective(devices(2, 4), "all_reduce", 1 << 24)
    assert slow.alone_ns > fast.alone_ns


def test_all_to_all_sends_all_but_its_own_part() -> None:
    plan = planner().collective(devices(1, 8), "all_to_all", GB)
    assert plan.volume_bytes == GB * 7 // 8
    assert all(weight == pytest.approx(1.0) for _, weight in plan.links)


def test_gather_is_bound_by_the_root() -> None:
    plan = planner().collective(devices(1, 4), "gather", GB, root=2)
    assert plan.volume_bytes == GB * 3 // 4
    assert max(weight for _, weight in plan.links) == pytest.approx(1.0)
    assert plan.max_rate_bytes_per_s == pytest.approx(PORT * HOPPER.pair_efficiency)


def test_transfers_cross_ports_or_nics() -> None:
    plans = planner()
    inside = plans.transfer(Device(0, 0), Device(0, 1), GB)
    across = plans.transfer(Device(0, 0), Device(1, 0), GB)
    assert inside.max_rate_bytes_per_s == pytest.approx(PORT * HOPPER.pair_efficiency)
    assert across.max_rate_bytes_per_s == pytest.approx(NIC * NETWORK.pair_efficiency)
    assert across.latency_ns - inside.latency_ns == pytest.approx(NETWORK.pair_us * 1000, abs=1)


def test_a_send_has_fewer_channels_in_a_large_communicator() -> None:
    """32 channels for 8 ranks: four for a pair, up to 16 MiB each; then twice as many. Measured: 80 and 163 GB/s."""
    plans, members = planner(), devices(1, 8)
    four = plans.transfer(Device(0, 0), Device(0, 1), 64 << 20, members)
    eight = plans.transfer(Device(0, 0), Device(0, 1), 128 << 20, members)
    assert four.max_rate_bytes_per_s == pytest.approx(4 * HOPPER.channel_GBps * 1e9)
    assert eight.max_rate_bytes_per_s == pytest.approx(8 * HOPPER.channel_GBps * 1e9)


def test_one_member_is_a_copy_in_its_memory() -> None:
    plan = planner().collective((Device(0, 0),), "all_reduce", GB)
    assert plan.links == ()
    assert plan.max_rate_bytes_per_s > 1e12


def test_unknown_operations_are_refused() -> None:
    with pytest.raises(ValueError, match="hint: one of"):
        planner().collective(devices(1, 2), "all_scatter", 8)


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"])
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
def test_time_grows_with_size(op: str, nodes: int, protocol: str) -> None:
    """Of one algorithm and protocol; where NCCL changes them it may get faster."""
    plans = planner(NCCL_ALGO="Ring", NCCL_PROTO=protocol)
    times = [plans.collective(devices(nodes, 8), op, 1 << power).alone_ns for power in range(3, 31)]
    assert times == sorted(times)


@pytest.mark.parametrize("nodes", [1, 2, 3, 16])
def test_no_plan_is_faster_than_its_links(nodes: int) -> None:
    """Else a collective that is alone would take longer than its plan says."""
    topology = Topology(load_cluster(f"dgx-h100:{nodes}"), Network())
    plans = CollectivePlanner(topology)
    for op in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "gather"):
        for size in (8, 1 << 16, 1 << 22, 1 << 30):
            assert_within_links(plans.collective(devices(nodes, 8), op, size), topology)


def assert_within_links(plan: Plan, topology: Topology) -> None:
    for link, weight in plan.links:
        if plan.volume_bytes:
            assert plan.max_rate_bytes_per_s * weight <= topology.capacity(link) * (1 + 1e-6)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_less_than_a_byte_for_each_member_still_takes_its_time(size: int) -> None:
    for op in ("all_reduce", "all_gather", "broadcast", "all_to_all", "scatter"):
        plan = planner().collective(devices(2, 2), op, size)
        assert plan.latency_ns > 0
        assert plan.max_rate_bytes_per_s > 0


def test_a_fabric_adds_its_latency_to_each_hop_between_nodes(tmp_path: Path) -> None:
    (tmp_path / "far.toml").write_text(
        'name = "far"\nnodes = 2\ngpu.model = "H100-SXM-80GB"\n[fabric]\nkind = "switch"\nlatency_us = 100\n'
    )
    near, far = planner("dgx-h100:2"), planner(str(tmp_path / "far.toml"))
    ends = (Device(0, 0), Device(1, 0))
    for op, hops in (("all_gather", 1), ("all_reduce", 2), ("all_to_all", 1), ("scatter", 1)):
        added = far.collective(ends, op, 64).latency_ns - near.collective(ends, op, 64).latency_ns
        assert added == pytest.approx(hops * 100_000, abs=1)
    assert far.transfer(*ends, 64).latency_ns - near.transfer(*ends, 64).latency_ns == 100_000


def test_an_all_to_all_of_1024_gpus_is_bound_by_the_nics() -> None:
    """A GPU sends 1,016 of 1,024 parts by its NIC: 1.065 GB at 48 GB/s, less what NCCL leaves of it."""
    plan = planner("dgx-h100:128").collective(devices(128, 8), "all_to_all", 1 << 30)
    seconds = (1 << 30) * 1016 / 1024 / (NIC * NETWORK.pair_efficiency)
    assert plan.volume_bytes / plan.max_rate_bytes_per_s == pytest.approx(seconds)
    assert plan.latency_ns < 1_000_000


def test_data_parallel_groups_of_tensor_parallel_nodes_have_no_link_in_common() -> None:
    """TP 8 x DP 128: eight groups at the same time, each on the NICs of its own GPUs."""
    plans = planner("dgx-h100:128")
    groups = [tuple(Device(node, gpu) for node in range(128)) for gpu in range(8)]
    links = [{link for link, _ in plans.collective(group, "all_reduce", 1 << 28).links} for group in groups]
    assert all(len(own) == 2 * 128 for own in links)
    assert len(set().union(*links)) == 8 * 2 * 128


def test_like_operations_of_one_launch_are_one() -> None:
    plans = planner()
    parts = [Asked("all_gather", 3 << 20), Asked("all_gather", 1 << 20)]
    assert plans.several(devices(1, 8), parts) == plans.collective(devices(1, 8), "all_gather", 4 << 20)


def test_unlike_operations_of_one_launch_start_together() -> None:
    """Four times the size is another decision of the tuner's, in the same kernel."""
    plans = planner()
    small, large = (plans.collective(devices(1, 8), "all_gather", size) for size in (1 << 20, 64 << 20))
    both = plans.several(devices(1, 8), [Asked("all_gather", 1 << 20), Asked("all_gather", 64 << 20)])
    assert both.latency_ns == max(small.latency_ns, large.latency_ns)
    transfers_ns = small.alone_ns - small.latency_ns + large.alone_ns - large.latency_ns
    assert both.alone_ns - both.latency_ns == pytest.approx(transfers_ns, abs=2)
    carried, by_small, by_large = (
        {link: weight * plan.volume_bytes for link, weight in plan.links} for plan in (both, small, large)
    )
    assert carried == pytest.approx({link: by_small[link] + by_large[link] for link in by_small})
