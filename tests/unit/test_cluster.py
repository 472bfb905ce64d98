"""Cluster files: presets, overrides and errors that say where."""

from pathlib import Path

import pytest

from phantora_py.cluster import ClusterError, load_cluster, preset_names


def test_every_preset_loads() -> None:
    for name in preset_names():
        cluster = load_cluster(name)
        assert cluster.name == name
        assert cluster.memory_bytes > 30 * 2**30


def test_the_presets_of_the_readme_exist() -> None:
    machines = "dgx-a100 dgx-h100 hgx-h100 hgx-h200 dgx-b200 gb200-nvl72 titan-h100 aws-p4d aws-p5 azure-nd-h100-v5"
    others = "gcp-a3-mega oci-bm-gpu-h100-8 l40s-pcie-8 a100-slingshot-4"
    assert f"{machines} {others}".split() == sorted(preset_names(), key=f"{machines} {others}".split().index)


def test_a_number_of_nodes_follows_the_name() -> None:
    cluster = load_cluster("dgx-h100:2")
    assert (cluster.nodes, cluster.world_size) == (2, 16)


@pytest.mark.parametrize("nodes", [0, 4097])
def test_a_number_of_nodes_that_cannot_be_is_told_as_given(nodes: int) -> None:
    with pytest.raises(ClusterError, match=f"^dgx-h100 with {nodes} nodes: a cluster has 1 to 4096\n  hint"):
        load_cluster(f"dgx-h100:{nodes}")


def test_a_file_overrides_memory_and_links(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(
        'name = "small"\n[gpu]\nmodel = "H100-SXM-80GB"\nmemory_GiB = 10\n'
        "[node]\ngpus = 2\n[node.nvlink]\nbandwidth_GBps = 37\n[node.nics]\ncount = 1\nbandwidth_Gbps = 40\n"
    )
    cluster = load_cluster(f"{file}:3")
    assert cluster.memory_bytes == 10 * 2**30
    assert cluster.nvlink_bytes_per_s == 37e9
    assert cluster.nic_bytes_per_s == pytest.approx(40e9 / 8 * 0.96)
    assert cluster.nodes == 3
    assert [cluster.nics_of(local) for local in range(2)] == [range(1), range(1)]


def test_hopper_links_follow_nccl() -> None:
    assert load_cluster("dgx-h100").nvlink_bytes_per_s == pytest.approx(370.8e9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "x"\n[gpu]\nmodel = "Voodoo 2"\n', "Voodoo 2"),
        ('name = "x"\n', "gpu"),
        ('name = "x"\nnodes = 0\n[gpu]\nmodel = "H100-SXM-80GB"\n', "nodes"),
        ('name = "x"\nspeed = 1\n[gpu]\nmodel = "H100-SXM-80GB"\n', "speed"),
        ('name = "x"\n[gpu]\nmodel = "H100-SXM-80GB"\n[node]\ngpus = "many"\n', "node.gpus"),
        ('name = "x"\n[gpu]\nmodel = "H100-SXM-80GB"\n[node.nics]\nbandwidth_Gbps = -1\n', "node.nics.bandwidth_Gbps"),
        ('name = "x"\n[gpu]\nmodel = "H100-SXM-80GB"\n[node]\ngpus = true\n', "node.gpus"),
        ('name = "x"\n[gpu]\nmodel = "H100-SXM-80GB"\n[node.nics]\nbandwidth_Gbps = 1e-300\n', "greater than or equal"),
        ('name = "x"\n[gpu]\nmodel = "H100-SXM-80GB"\n[node.nics]\nbandwidth_Gbps = nan\n', "finite number"),
        ("name = ", "not valid TOML"),
    ],
)
def test_a_bad_file_is_explained(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ClusterError, match="hint:") as caught:
        load_cluster(str(file))
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_an_unknown_name_lists_the_presets() -> None:
    with pytest.raises(ClusterError, match="dgx-h100"):
        load_cluster("dgx-h101")
    with pytest.raises(ClusterError, match="cannot read"):
        load_cluster("missing.toml")


def test_overlap_slows_by_the_gpus_factor_or_the_files(tmp_path: Path) -> None:
    assert load_cluster("dgx-h100").overlap_slowdown == pytest.approx((1.27, 1.0), rel=0.01)
    assert load_cluster("dgx-a100").overlap_slowdown == (1.189, 1.0)
    file = tmp_path / "alone.toml"
    file.write_text('name = "x"\n[gpu]\nmodel = "H100-SXM-80GB"\n[overlap]\ncompute_slowdown = 1\n')
    assert load_cluster(str(file)).overlap_slowdown == (1.0, 1.0)
    file.write_text('name = "x"\n[gpu]\nmodel = "H100-SXM-80GB"\n[overlap]\ncompute_slowdown = 0.9\n')
    with pytest.raises(ClusterError, match=r"overlap\.compute_slowdown"):
        load_cluster(str(file))
