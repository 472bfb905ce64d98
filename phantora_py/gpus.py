"""GPU models by name: what drivers report of them and what their data sheets promise.

Rates are dense (no sparsity), per second, at the boost clock of the data sheet. Sources: NVIDIA's data sheets and
architecture white papers (V100 2017, A100 2020 and 2021, A40 2021, H100 2022 and 2023, H200 2024, L40S 2023, Blackwell
2024 and 2025), and for `H100-96GB-500W` TorchTitan's benchmarks/llama3_h100_202412_torchtitan.md. `memory_bytes` is
what cudaMemGetInfo reports in total, which is below the label: part of the memory holds ECC data and firmware.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

MIB = 2**20
KIB = 2**10
TERA = 10**12


@dataclass(frozen=True)
class Gpu:
    """One GPU model. Rates in units per second, sizes in bytes."""

    name: str
    """Name in cluster files."""
    device_name: str
    """Name that scripts see; frameworks look for the marketing name in it."""
    memory_bytes: int
    hbm_bytes_per_s: float
    fp16_flops: float
    """Tensor cores, bf16 and fp16 with fp32 accumulation (V100: fp16 only)."""
    tf32_flops: float
    """0: no TF32 tensor cores; fp32 then runs on CUDA cores."""
    fp32_flops: float
    fp64_flops: float
    """The faster of CUDA and tensor cores, as cuBLAS chooses."""
    fp8_flops: float
    """0: no FP8 tensor cores."""
    sm_count: int
    compute_capability: tuple[int, int]
    l2_bytes: int
    clock_khz: int
    """Boost clock that the driver reports."""
    shared_per_block_optin: int
    shared_per_sm: int
    nvlinks: int
    nvlink_bytes_per_s: float
    """A direction, over all links; 0: none."""
    pcie_bytes_per_s: float
    """A direction, of the slot (x16)."""
    power_limit_w: float
    context_bytes: int = 520 * MIB
    """Taken by the CUDA context before the first allocation."""

    @property
    def architecture(self) -> str:
        """Name of the generation: volta, ampere, ada, hopper, blackwell."""
        major, minor = self.compute_capability
        if major == 8:
            return "ada" if minor == 9 else "ampere"
        return {7: "volta", 9: "hopper"}.get(major, "blackwell")

    def tensor_flops(self, dtype: str) -> float:
        """Dense matrix rate of an input type, in operations on real numbers; "tf32" and "complex-tf32" are float32 and
        complex64 multiplied in TF32. fp8 falls back to fp16."""
        if dtype in ("float16", "bfloat16"):
            return self.fp16_flops
        if dtype.startswith("float8"):
            return self.fp8_flops or self.fp16_flops
        if dtype.startswith("float4"):
            return 2 * self.fp8_flops or self.fp16_flops
        if dtype in ("tf32", "complex-tf32"):
            return self.tf32_flops or self.fp32_flops
        if dtype in ("float64", "complex128"):
            return self.fp64_flops
        if dtype == "int8":
            return self.fp8_flops or 2 * self.fp16_flops
        return self.fp32_flops


_V100 = Gpu(
    name="V100-SXM2-32GB",
    device_name="Tesla V100-SXM2-32GB",
    memory_bytes=32_501 * MIB,
    hbm_bytes_per_s=900e9,
    fp16_flops=125 * TERA,
    tf32_flops=0,
    fp32_flops=15.7 * TERA,
    fp64_flops=7.8 * TERA,
    fp8_flops=0,
    sm_count=80,
    compute_capability=(7, 0),
    l2_bytes=6 * MIB,
    clock_khz=1_530_000,
    shared_per_block_optin=96 * KIB,
    shared_per_sm=96 * KIB,
    nvlinks=6,
    nvlink_bytes_per_s=150e9,
    pcie_bytes_per_s=15.75e9,
    power_limit_w=300,
    context_bytes=310 * MIB,
)

_A100_80 = Gpu(
    name="A100-SXM-80GB",
    device_name="NVIDIA A100-SXM4-80GB",
    memory_bytes=81_251 * MIB,
    hbm_bytes_per_s=2039e9,
    fp16_flops=312 * TERA,
    tf32_flops=156 * TERA,
    fp32_flops=19.5 * TERA,
    fp64_flops=19.5 * TERA,
    fp8_flops=0,
    sm_count=108,
    compute_capability=(8, 0),
    l2_bytes=40 * MIB,
    clock_khz=1_410_000,
    shared_per_block_optin=163 * KIB,
    shared_per_sm=164 * KIB,
    nvlinks=12,
    nvlink_bytes_per_s=300e9,
    pcie_bytes_per_s=31.5e9,
    power_limit_w=400,
    context_bytes=430 * MIB,
)

_H100 = Gpu(
    name="H100-SXM-80GB",
    device_name="NVIDIA H100 80GB HBM3",
    memory_bytes=81_090 * MIB,
    hbm_bytes_per_s=3350e9,
    fp16_flops=989.4 * TERA,
    tf32_flops=494.7 * TERA,
    fp32_flops=66.9 * TERA,
    fp64_flops=66.9 * TERA,
    fp8_flops=1978.9 * TERA,
    sm_count=132,
    compute_capability=(9, 0),
    l2_bytes=50 * MIB,
    clock_khz=1_980_000,
    shared_per_block_optin=227 * KIB,
    shared_per_sm=228 * KIB,
    nvlinks=18,
    nvlink_bytes_per_s=450e9,
    pcie_bytes_per_s=63e9,
    power_limit_w=700,
)

_L40S = Gpu(
    name="L40S",
    device_name="NVIDIA L40S",
    memory_bytes=45_373 * MIB,
    hbm_bytes_per_s=864e9,
    fp16_flops=362.05 * TERA,
    tf32_flops=183 * TERA,
    fp32_flops=91.6 * TERA,
    fp64_flops=1.43 * TERA,
    fp8_flops=733 * TERA,
    sm_count=142,
    compute_capability=(8, 9),
    l2_bytes=96 * MIB,
    clock_khz=2_520_000,
    shared_per_block_optin=99 * KIB,
    shared_per_sm=100 * KIB,
    nvlinks=0,
    nvlink_bytes_per_s=0.0,
    pcie_bytes_per_s=31.5e9,
    power_limit_w=350,
)

_B200 = Gpu(
    name="B200-SXM",
    device_name="NVIDIA B200",
    memory_bytes=182_642 * MIB,
    hbm_bytes_per_s=8000e9,
    fp16_flops=2250 * TERA,
    tf32_flops=1100 * TERA,
    fp32_flops=80 * TERA,
    fp64_flops=40 * TERA,
    fp8_flops=4500 * TERA,
    sm_count=148,
    compute_capability=(10, 0),
    l2_bytes=126 * MIB,
    clock_khz=1_965_000,
    shared_per_block_optin=227 * KIB,
    shared_per_sm=228 * KIB,
    nvlinks=18,
    nvlink_bytes_per_s=900e9,
    pcie_bytes_per_s=63e9,
    power_limit_w=1000,
)

_MODELS = (
    _V100,
    replace(
        _A100_80,
        name="A100-SXM-40GB",
        device_name="NVIDIA A100-SXM4-40GB",
        memory_bytes=40_326 * MIB,
        hbm_bytes_per_s=1555e9,
    ),
    _A100_80,
    replace(
        _A100_80,
        name="A100-PCIE-40GB",
        device_name="NVIDIA A100-PCIE-40GB",
        memory_bytes=40_370 * MIB,
        hbm_bytes_per_s=1555e9,
        power_limit_w=250,
    ),
    replace(
        _A100_80,
        name="A100-PCIE-80GB",
        device_name="NVIDIA A100 80GB PCIe",
        memory_bytes=81_037 * MIB,
        hbm_bytes_per_s=1935e9,
        power_limit_w=300,
    ),
    replace(
        _A100_80,
        name="A40",
        device_name="NVIDIA A40",
        memory_bytes=45_416 * MIB,
        hbm_bytes_per_s=696e9,
        fp16_flops=149.7 * TERA,
        tf32_flops=74.8 * TERA,
        fp32_flops=37.4 * TERA,
        fp64_flops=0.58 * TERA,
        sm_count=84,
        compute_capability=(8, 6),
        l2_bytes=6 * MIB,
        clock_khz=1_740_000,
        shared_per_block_optin=99 * KIB,
        shared_per_sm=100 * KIB,
        nvlinks=4,
        nvlink_bytes_per_s=56.25e9,
        power_limit_w=300,
    ),
    replace(_A100_80, name="A800-SXM-80GB", device_name="NVIDIA A800-SXM4-80GB", nvlinks=8, nvlink_bytes_per_s=200e9),
    _H100,
    replace(
        _H100,
        name="H100-96GB-500W",
        device_name="NVIDIA H100",
        memory_bytes=97_321 * MIB,
        hbm_bytes_per_s=2400e9,
        power_limit_w=500,
    ),
    replace(
        _H100,
        name="H100-PCIE-80GB",
        device_name="NVIDIA H100 PCIe",
        memory_bytes=81_007 * MIB,
        hbm_bytes_per_s=2039e9,
        fp16_flops=756.4 * TERA,
        tf32_flops=378.2 * TERA,
        fp32_flops=51.2 * TERA,
        fp64_flops=51.2 * TERA,
        fp8_flops=1512.9 * TERA,
        sm_count=114,
        clock_khz=1_755_000,
        nvlinks=12,
        nvlink_bytes_per_s=300e9,
        power_limit_w=350,
    ),
    replace(_H100, name="H800-SXM-80GB", device_name="NVIDIA H800", nvlinks=8, nvlink_bytes_per_s=200e9),
    replace(
        _H100,
        name="H200-SXM",
        device_name="NVIDIA H200",
        memory_bytes=143_156 * MIB,
        hbm_bytes_per_s=4800e9,
    ),
    replace(
        _H100,
        name="H20",
        device_name="NVIDIA H20",
        memory_bytes=97_280 * MIB,
        hbm_bytes_per_s=4000e9,
        fp16_flops=148 * TERA,
        tf32_flops=74 * TERA,
        fp32_flops=44 * TERA,
        fp64_flops=1 * TERA,
        fp8_flops=296 * TERA,
        sm_count=78,
        l2_bytes=60 * MIB,
        power_limit_w=400,
    ),
    _L40S,
    _B200,
    replace(
        _B200,
        name="GB200",
        device_name="NVIDIA GB200",
        memory_bytes=188_416 * MIB,
        fp16_flops=2500 * TERA,
        tf32_flops=1250 * TERA,
        fp8_flops=5000 * TERA,
        sm_count=152,
        clock_khz=2_062_000,
        power_limit_w=1200,
    ),
)

_BY_NAME = {gpu.name.lower(): gpu for gpu in _MODELS}


def gpu_names() -> list[str]:
    """Every model's name, oldest first."""
    return [gpu.name for gpu in _MODELS]


def find_gpu(name: str) -> Gpu:
    """The model called `name` (case does not matter). Raises ValueError with the list of names."""
    try:
        return _BY_NAME[name.strip().lower()]
    except KeyError:
        raise ValueError(f"no GPU model is named {name!r}\n  hint: one of {', '.join(gpu_names())}") from None


def with_power_limit(gpu: Gpu, watts: float) -> Gpu:
    """The same GPU under another power limit, as `nvidia-smi -pl` sets it."""
    if not (math.isfinite(watts) and watts > 0):
        raise ValueError(f"power limit of {watts} W\n  hint: a number of watts above 0")
    return replace(gpu, power_limit_w=watts)
