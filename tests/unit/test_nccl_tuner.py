"""What NCCL takes, as its own model decides, and the trees that it lays."""

import pytest

from phantora_netsim import Network
from phantora_py.cluster import Device, load_cluster
from phantora_py.nccl.group import Group
from phantora_py.nccl.layout import double_tree
from phantora_py.nccl.release import release
from phantora_py.nccl.settings import Settings
from phantora_py.nccl.tuner import Tuner
from phantora_py.topology import Topology


def tuner(cluster: str, per_node: int, version: str = "2.30", **variables: str) -> Tuner:
    machine = load_cluster(cluster)
    members = tuple(Device(node, gpu) for node in range(machine.nodes) for gpu in range(per_node))
    return Tuner(Group(members, Topology(machine, Network()), Settings.read(variables)), release(version))


def chosen(tuned: Tuner, op: str, size: int) -> str:
    choice = tuned.choose(op, size)
    return f"{choice.algorithm.value} {choice.protocol.value}"


def test_an_all_reduce_on_a_node() -> None:
    """LL: 6.6 + 14 x 0.6 = 15.0 us and S / (141 x 8/14 GB/s); NVLS: 25 us and S / 272 GB/s. They cross at 1.15 MB."""
    tuned = tuner("dgx-h100", 8)
    assert chosen(tuned, "all_reduce", 1024) == "Ring LL"
    assert chosen(tuned, "all_reduce", 1_140_000) == "Ring LL"
    assert chosen(tuned, "all_reduce", 1_160_000) == "NVLS Simple"


def test_an_all_gather_goes_through_all_protocols() -> None:
    """LL 10.8 us, S/161; LL128 27.3 us, S/390 (0.92 x 370.8 x 8/7); Simple 32.2 us, S/424: 4.5 MB and 23.8 MB."""
    tuned = tuner("dgx-h100", 8)
    found = [chosen(tuned, "all_gather", size) for size in (4_300_000, 4_700_000, 23_000_000, 25_000_000)]
    assert found == ["Ring LL", "Ring LL128", "Ring LL128", "Ring Simple"]


def test_few_gpus_of_a_node_do_not_fill_nvls() -> None:
    """Four channels of at most 60 GB/s: 4 x 60 x 0.85 x 3/4 x 2 = 306 GB/s, less than the ring's 370.8."""
    assert chosen(tuner("dgx-h100", 4), "all_reduce", 1 << 30) == "Ring Simple"


def test_ampere_has_no_nvls() -> None:
    assert chosen(tuner("dgx-a100", 8), "all_reduce", 1 << 30) == "Ring Simple"


def test_two_nodes_take_trees_and_hopper_nvls_trees() -> None:
    assert chosen(tuner("dgx-h100:2", 8), "all_reduce", 1 << 30) == "NVLSTree Simple"
    assert chosen(tuner("dgx-h100:2", 8), "all_reduce", 1024) == "Tree LL"
    # 4 NICs of 12 GB/s: trees 0.92 x 96 / 2 = 44 GB/s, rings 48 x 16/30 = 25.6 GB/s.
    assert chosen(tuner("aws-p4d:2", 8), "all_reduce", 1 << 30) == "Tree Simple"
    # 8 NICs of 24 GB/s: trees 8 x 23.6 / 2 = 94 GB/s, rings 192 x 16/30 = 102 GB/s.
    assert chosen(tuner("dgx-a100:2", 8), "all_reduce", 1 << 30) == "Ring Simple"


def test_pat_needs_one_gpu_a_node_and_a_release_that_has_it() -> None:
    """16 nodes, Simple. PAT: 8 + 4 x 14/3.5 + 16 x 2.8 = 68.8 us; ring: 8.4 + 15 x (14 + 3) = 263.4 us."""
    assert chosen(tuner("dgx-h100:16", 1, NCCL_PROTO="Simple"), "all_gather", 1 << 20) == "PAT Simple"
    assert chosen(tuner("dgx-h100:16", 1, "2.21", NCCL_PROTO="Simple"), "all_gather", 1 << 20) == "Ring Simple"
    assert chosen(tuner("dgx-h100:16", 2, NCCL_PROTO="Simple"), "all_gather", 1 << 20) == "Ring Simple"


def test_the_release_decides() -> None:
    """Trees with Simple: 8.4 + 2 (7 x 4 + 14) = 92 us in 2.30, 2 (7 x 28 + 28) = 448 us in 2.21; rings 195 us."""
    simple = {"NCCL_ALGO": "Ring,Tree", "NCCL_PROTO": "Simple"}
    assert chosen(tuner("dgx-h100:2", 8, "2.30", **simple), "all_reduce", 1 << 20) == "Tree Simple"
    assert chosen(tuner("dgx-h100:2", 8, "2.21", **simple), "all_reduce", 1 << 20) == "Ring Simple"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"NCCL_ALGO": "Ring"}, "Ring Simple"),
        ({"NCCL_ALGO": "ring;allreduce:tree"}, "Tree Simple"),
        ({"NCCL_PROTO": "^Simple"}, "Ring LL128"),
        ({"NCCL_NVLS_ENABLE": "0"}, "Ring Simple"),
    ],
)
def test_the_environment_decides(variables: dict[str, str], expected: str) -> None:
    assert chosen(tuner("dgx-h100", 8, **variables), "all_reduce", 1 << 30) == expected


def test_collnet_only_where_asked_for() -> None:
    assert "CollNet" not in chosen(tuner("dgx-h100:4", 8), "all_reduce", 1 << 26)
    only = {"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "CollNetDirect,CollNetChain"}
    assert chosen(tuner("dgx-h100:4", 8, **only), "all_reduce", 1 << 26).startswith("CollNet")


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(ValueError, match="NCCL_ALGO and NCCL_PROTO leave no algorithm for all_gather") as caught:
        tuner("dgx-h100", 8, NCCL_ALGO="Tree").choose("all_gather", 8)
    assert "hint:" in str(caught.value)


def test_small_messages_use_few_channels() -> None:
    """Ring LL: one for each 512 x 8 x 8 ranks = 32 KiB; Simple: one for each 32 KiB."""
    tuned = tuner("dgx-h100", 8, NCCL_ALGO="Ring", NCCL_PROTO="LL")
    assert [tuned.choose("all_reduce", size).channels for size in (8, 65536, 1 << 30)] == [1, 2, 24]
    tuned = tuner("dgx-h100", 8, NCCL_MAX_NCHANNELS="4")
    assert tuned.choose("all_gather", 1 << 30).channels == 4


def test_double_trees() -> None:
    first, second = double_tree(4)
    assert first == (None, 2, 0, 2)
    assert second == (1, 3, 1, None)
    assert double_tree(2) == ((None, 0), (1, None))
    for count in range(2, 40):
        for parents in double_tree(count):
            assert parents.count(None) == 1
        inner = [{parent for parent in parents if parent is not None} for parents in double_tree(count)]
        roots = {parents.index(None) for parents in double_tree(count)}
        assert inner[0] & inner[1] <= roots, "but for the roots, an inner node of one tree is a leaf of the other"


def test_unknown_releases_are_refused() -> None:
    for version in ("2.17", "3.0", "two", "2"):
        with pytest.raises(ValueError, match=r"hint: 2\.18 or later"):
            release(version)
