"""NCCL_... variables, as NCCL reads them."""

import pytest

from phantora_netsim import Network
from phantora_py.cluster import ClusterError, Device, load_cluster
from phantora_py.collectives import CollectivePlanner, Plan
from phantora_py.nccl.algorithm import Algorithm, Protocol
from phantora_py.nccl.settings import SettingError, Settings, not_modelled
from phantora_py.topology import Topology

GB = 10**9


def plan(cluster: str, op: str, per_node: int = 8, **variables: str) -> Plan:
    machine = load_cluster(cluster).in_environment(variables)
    members = tuple(Device(node, gpu) for node in range(machine.nodes) for gpu in range(per_node))
    return CollectivePlanner(Topology(machine, Network())).collective(members, op, GB)


def algbw(plan: Plan) -> float:
    """Bytes/s of the buffer, without the latency."""
    return GB * plan.max_rate_bytes_per_s / plan.volume_bytes


def test_lists_of_algorithms() -> None:
    settings = Settings.read({"NCCL_ALGO": "ring,collnetdirect;allreduce:^tree"})
    assert settings.algorithms["all_gather"] == {Algorithm.RING, Algorithm.COLLNET_DIRECT}
    assert settings.algorithms["all_reduce"] == set(Algorithm) - {Algorithm.TREE}
    assert settings.may_use("broadcast", Algorithm.RING, Protocol.LL)
    assert not settings.may_use("broadcast", Algorithm.TREE, Protocol.LL)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("NCCL_ALGO", "rings", "does not know 'rings'"),
        ("NCCL_PROTO", "LL,LL64", "does not know 'LL64'"),
        ("NCCL_ALGO", "allreduced:ring", "no collective 'allreduced'"),
        ("NCCL_PROTO", "LL;Simple", "every list but the first needs a collective"),
    ],
)
def test_what_nccl_refuses(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingError, match=message) as caught:
        Settings.read({name: value})
    assert name in str(caught.value)
    assert "\n  hint: " in str(caught.value)


def test_what_nccl_ignores() -> None:
    odd = {"NCCL_MAX_NCHANNELS": "many", "NCCL_MIN_CTAS": "-3", "NCCL_NTHREADS": "33", "NCCL_ALGO": ""}
    settings = Settings.read(odd)
    assert (settings.min_channels, settings.max_channels, settings.threads) == (None, None, 512)
    assert settings.algorithms == {}


def test_a_cluster_takes_the_environment_of_the_job_over_its_own() -> None:
    cluster = load_cluster("dgx-h100").in_environment({"NCCL_ALGO": "Ring", "NCCL_DEBUG": "INFO", "HOME": "/"})
    assert cluster.nccl.environment == {"NCCL_ALGO": "Ring"}
    assert cluster.in_environment({"NCCL_ALGO": "Tree"}).nccl.environment == {"NCCL_ALGO": "Tree"}
    with pytest.raises(ClusterError, match="hint"):
        cluster.in_environment({"NCCL_PROTO": "no"})


def test_one_nic_of_eight() -> None:
    """All traffic between the nodes goes by mlx5_3, whichever NIC a GPU is next to."""
    assert algbw(plan("dgx-h100:2", "all_gather")) > 300e9
    for names in ("mlx5_3", "=mlx5_3:1", "^mlx5_0,mlx5_1,mlx5_2,mlx5_4,mlx5_5,mlx5_6,mlx5_7"):
        one = plan("dgx-h100:2", "all_gather", NCCL_IB_HCA=names)
        assert algbw(one) == pytest.approx(48e9 / (15 / 16), rel=0.03)


def test_without_p2p_a_node_is_as_slow_as_pcie() -> None:
    slow = plan("dgx-h100", "all_gather", NCCL_P2P_DISABLE="1")
    assert algbw(slow) < 24e9 / (7 / 8)
    assert slow.protocol == "Simple"


def test_few_channels_cannot_fill_the_links() -> None:
    """Two channels of 21 GB/s."""
    two = plan("dgx-h100", "all_gather", NCCL_MAX_CTAS="2")
    assert two.max_rate_bytes_per_s == pytest.approx(42e9, rel=0.1)


def test_few_channels_cannot_fill_the_switch() -> None:
    whole, half = (plan("dgx-h100", "all_reduce", NCCL_MAX_CTAS=most) for most in ("16", "8"))
    assert half.algorithm == "nvls"
    assert algbw(half) == pytest.approx(algbw(whole) / 2)


def test_what_would_matter_and_is_not_modelled_is_named() -> None:
    variables = {"NCCL_CROSS_NIC": "1", "NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring", "NCCL_IB_HCA": "nope"}
    assert not_modelled(variables) == ["NCCL_CROSS_NIC", "NCCL_IB_HCA"]
    assert not_modelled({"NCCL_IB_HCA": "mlx5_3"}) == []
