"""Plans of collectives against figures calculated by hand."""

import pytest

from phantora_netsim import Network
from phantora_py.cluster import Device, load_cluster
from phantora_py.collectives import CollectivePlanner, Plan
from phantora_py.topology import Topology

GB = 10**9


def planner(cluster: str = "dgx-h100:2") -> CollectivePlanner:
    return CollectivePlanner(Topology(load_cluster(cluster), Network()))


def devices(nodes: int, per_node: int) -> tuple[Device, ...]:
    return tuple(Device(node, local) for node in range(nodes) for local in range(per_node))


def alone_ns(plan: Plan) -> float:
    return plan.latency_ns + plan.volume_bytes / plan.max_rate_bytes_per_s * 1e9


def test_all_gather_on_a_node_runs_at_the_port_rate() -> None:
    plan = planner().collective(devices(1, 8), "all_gather", GB)
    assert plan.volume_bytes == GB * 7 // 8
    assert plan.max_rate_bytes_per_s == pytest.approx(370.8e9)
    assert plan.protocol == "Simple"
    assert plan.latency_ns == 8400 + 7 * 3400
    assert len(plan.links) == 16
    assert all(weight == 1.0 for _, weight in plan.links)


def test_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    plans = planner()
    members = devices(1, 8)
    gather = plans.collective(members, "all_gather", GB)
    reduce = plans.collective(members, "all_reduce", GB)
    assert reduce.volume_bytes == 2 * gather.volume_bytes
    assert reduce.latency_ns == 8400 + 14 * 3400


def test_small_messages_take_the_low_latency_protocol() -> None:
    plan = planner().collective(devices(1, 8), "all_reduce", 1024)
    assert plan.protocol == "LL"
    assert plan.latency_ns == 6600 + 14 * 600


def test_two_full_nodes_use_all_nics() -> None:
    plan = planner().collective(devices(2, 8), "all_gather", GB)
    # 8 NICs of 48 GB/s take 384 GB/s; the ports carry 7/8 of the ring and would allow 370.8 / (7/8) = 423.8.
    assert plan.max_rate_bytes_per_s == pytest.approx(8 * 48e9)
    assert len(plan.links) == 2 * (16 + 16)


def test_one_gpu_a_node_is_bound_by_its_nic() -> None:
    plan = planner().collective((Device(0, 3), Device(1, 3)), "all_reduce", GB)
    assert plan.max_rate_bytes_per_s == pytest.approx(48e9)
    assert plan.volume_bytes == GB
    # Two steps, both between nodes: 14 µs, + 3 µs of network overhead for Simple; 1.4 for a Simple all-reduce.
    assert plan.latency_ns == round((8400 + 2 * 17000) * 1.4)


def test_a_slower_link_never_makes_a_collective_faster() -> None:
    fast = planner().collective(devices(2, 4), "all_reduce", 1 << 24)
    slow = planner("dgx-a100:2").collective(devices(2, 4), "all_reduce", 1 << 24)
    assert alone_ns(slow) > alone_ns(fast)


def test_all_to_all_sends_all_but_its_own_part() -> None:
    plan = planner().collective(devices(1, 8), "all_to_all", GB)
    assert plan.volume_bytes == GB * 7 // 8
    assert all(weight == pytest.approx(1.0) for _, weight in plan.links)


def test_gather_is_bound_by_the_root() -> None:
    plan = planner().collective(devices(1, 4), "gather", GB, root=2)
    assert plan.volume_bytes == GB * 3 // 4
    assert max(weight for _, weight in plan.links) == pytest.approx(1.0)
    assert plan.max_rate_bytes_per_s == pytest.approx(370.8e9)


def test_transfers_cross_ports_or_nics() -> None:
    plans = planner()
    inside = plans.transfer(Device(0, 0), Device(0, 1), GB)
    across = plans.transfer(Device(0, 0), Device(1, 0), GB)
    assert inside.max_rate_bytes_per_s == pytest.approx(370.8e9)
    assert across.max_rate_bytes_per_s == pytest.approx(48e9)
    assert across.latency_ns > inside.latency_ns


def test_one_member_is_a_copy_in_its_memory() -> None:
    plan = planner().collective((Device(0, 0),), "all_reduce", GB)
    assert plan.links == ()
    assert plan.max_rate_bytes_per_s > 1e12


def test_unknown_operations_are_refused() -> None:
    with pytest.raises(ValueError, match="hint: one of"):
        planner().collective(devices(1, 2), "all_scatter", 8)


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_time_grows_with_size(op: str, nodes: int) -> None:
    plans = planner()
    times = [alone_ns(plans.collective(devices(nodes, 8), op, 1 << power)) for power in range(3, 31)]
    assert times == sorted(times)
