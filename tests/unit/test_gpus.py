"""GPU models: names, and figures that must agree with one another."""

from __future__ import annotations

import pytest

from phantora_py.gpus import Gpu, find_gpu, gpu_names, with_power_limit

MODELS = [find_gpu(name) for name in gpu_names()]
GIB = 2**30


def test_the_brief_list_is_there() -> None:
    wanted = (
        "V100 A100-SXM-40GB A100-SXM-80GB A100-PCIE-80GB A800 H100-SXM H100-96GB-500W H200 H800 H20 L40S B200 GB200"
    )
    for part in wanted.split():
        assert any(name.startswith(part) for name in gpu_names()), part


def test_unknown_name_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"RTX 9000.*") as error:
        find_gpu("RTX 9000")
    assert "H100-SXM-80GB" in str(error.value)


def test_case_does_not_matter() -> None:
    assert find_gpu(" h100-sxm-80gb ") is find_gpu("H100-SXM-80GB")


@pytest.mark.parametrize("gpu", MODELS, ids=lambda gpu: gpu.name)
def test_figures_are_sane(gpu: Gpu) -> None:
    label = int("".join(c for c in gpu.name.split("-")[-1] if c.isdigit())) if gpu.name.endswith("GB") else None
    if label:
        assert 0.9 * label * 1e9 < gpu.memory_bytes < label * 2**30
    assert gpu.fp16_flops >= gpu.tf32_flops >= 0
    assert gpu.fp8_flops in (0, pytest.approx(2 * gpu.fp16_flops, rel=0.02))
    assert (gpu.nvlinks == 0) == (gpu.nvlink_bytes_per_s == 0)
    assert gpu.shared_per_block_optin <= gpu.shared_per_sm
    assert "NVIDIA" in gpu.device_name or "Tesla" in gpu.device_name


def test_device_names_hold_the_marketing_name() -> None:
    assert "H100" in find_gpu("H100-96GB-500W").device_name
    assert find_gpu("H100-SXM-80GB").device_name == "NVIDIA H100 80GB HBM3"
    assert "A100" in find_gpu("A100-SXM-80GB").device_name


def test_h100_reports_what_drivers_report() -> None:
    assert 79.1 <= find_gpu("H100-SXM-80GB").memory_bytes / GIB <= 79.6


def test_power_limit() -> None:
    assert with_power_limit(find_gpu("H100-SXM-80GB"), 500).power_limit_w == 500
    with pytest.raises(ValueError, match="power limit"):
        with_power_limit(find_gpu("H100-SXM-80GB"), 0)


def test_rates_by_type() -> None:
    h100, a100 = find_gpu("H100-SXM-80GB"), find_gpu("A100-SXM-80GB")
    assert (
        h100.tensor_flops("float8_e4m3fn") == 2 * h100.fp16_flops
        or h100.tensor_flops("float8_e4m3fn") > h100.fp16_flops
    )
    assert a100.tensor_flops("float8_e4m3fn") == a100.fp16_flops
    assert a100.tensor_flops("tf32") == 156e12
    assert find_gpu("V100-SXM2-32GB").tensor_flops("tf32") == 15.7e12
