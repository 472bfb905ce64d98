"""Every fitted or published figure that the analytic engine rests on, with its source.

`python -m phantora_py.engines.calibrate` repeats the fits and prints the errors; docs/accuracy.md has them.

How the figures came about, by name in the comments below:
  silicon    bf16 GEMM and context-attention tables of aiconfigurator-core 0.12 (Apache-2.0), read from the package
  simumax    MooreThreads/SimuMax configs/system at 4dcaae5 (Apache-2.0): GEMM in training layouts, SDPA both ways
  vidur      microsoft/vidur data/profiling at 7d47513 (MIT): fp16 layers of inference, A100, H100, A40
  neusight   sitar-lab/NeuSight data/dataset at 6945927 (MIT): fp32 micro-benchmarks of PyTorch 2.1
  flash      Dao-AILab/flash-attention benchmarks (BSD-3) and its FlashAttention-3 paper, arXiv 2407.08608
  assumed    no measurement at hand: a reasoned guess, to be replaced by a profile
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class GemmConstants:
    """A matrix product as CTAs that each compute one tile of the result."""

    efficiency: float
    """Share of the tensor cores' peak that an infinitely large tile in an infinite product reaches."""
    tile_half: float
    """Tile intensity m·n/(m+n) at which a CTA reaches half of that."""
    cta_overhead_ns: float
    """Prologue and epilogue of a CTA."""
    quantisation: float
    """1: the last wave lasts as long as a full one; 0: it costs its share only (persistent, stream-K kernels)."""
    memory_efficiency: float
    """Share of the memory bandwidth that its compulsory traffic gets."""
    overlap_loss: float
    """Part of the shorter of compute and memory time that is not hidden behind the longer."""
    floor_ns: float
    """What the smallest product takes over its tile."""


@dataclass(frozen=True)
class AttentionConstants:
    """Fused attention as CTAs that each take 128 rows of one head."""

    efficiency: float
    """Share of the tensor peak at head dimension 128 and infinite length."""
    narrow: float
    """The same at head dimension 64, relative to 128."""
    wide: float
    """The same at head dimension 256, relative to 128."""
    cta_overhead_ns: float
    """Prologue and epilogue of a CTA."""
    backward: float
    """Rate of the backward pass (2.5 times the products), relative to the forward pass."""


@dataclass(frozen=True)
class MemoryConstants:
    """Kernels that are bound by memory."""

    floor_ns: float
    """The shortest a kernel ever takes on the stream, start to start of the next."""
    streaming: float
    """Share of the data-sheet bandwidth that long contiguous reads and writes get."""
    l2_gain: float
    """How many times faster than from memory the part that stays in the L2 cache is."""
    l2_share: float
    """Part of the L2 cache that holds a kernel's operands from the one before."""


@dataclass(frozen=True)
class ArchitectureConstants:
    gemm: GemmConstants
    attention: Mapping[str, AttentionConstants]
    memory: MemoryConstants
    joules_per_flop: float
    """Energy of one bf16 operation in a large product of random data, everything on the board included."""
    reference_power_w: float
    """Power limit at which that energy was found."""
    power_exponent: float
    """The sustained rate grows as (power limit / reference) to this power.

    With P = C·V²·f the rate grows as P at the voltage floor and as P^(1/3) where voltage follows frequency."""


FP8_ENERGY: Final = 0.6
"""Energy of an fp8 operation relative to bf16 (silicon: fp8 products of 10 ms and longer on H100 reach 1.6 to 1.7 times
the bf16 rate)."""

FP8_EFFICIENCY: Final = 0.65
"""Share of the doubled peak that fp8 products reach, relative to bf16 products (silicon, H100)."""

CONVOLUTION_RATE: Final = 0.75
"""Rate of an implicit product's arithmetic relative to a plain one (assumed)."""

L2_BYTES_A_SM: Final = 5.5e12 / 132
"""Bytes per second of the L2 cache for each SM, when all read at once. About 5.5 TB/s were measured on an H100 PCIe
(chipsandcheese.com, "Nvidia's H100: Funny L2, and Tons of Bandwidth", 2023); the SXM, with 132 SMs, has the same cache.
Other GPUs by their SMs (assumed)."""

DIRECT_FLOPS: Final = 32
"""Operations a cycle of an SM in a convolution without tensor cores: two loads for each multiply-add, of 32 values a
cycle (assumed)."""

SM_BYTES_A_CYCLE: Final = 64
"""That an SM gets from the L2 cache at most, from Volta on (Jia et al., arXiv 1804.06826, section 3.2)."""

FACTORISATION_RATE: Final = 0.3
"""Rate of factorisations and solves relative to a product of as many operations (assumed)."""

GROUPED_RATE: Final = 0.8
"""Rate of a grouped product relative to a plain batched one (between simumax's A100 PCIe, 0.93, and B200, 0.6)."""

FLEX: Final = 0.9
"""Rate of FlexAttention's Triton kernels relative to flash attention, both ways (what its authors say)."""

STRIDED: Final = 0.6
"""Bandwidth of kernels that walk an operand out of order, relative to contiguous ones (assumed)."""

TRANSFER: Final = 0.85
"""Share of a link's rate that copies between devices, or device and pinned host memory, reach (assumed)."""

PAGEABLE_BYTES_PER_S: Final = 9.7e9
"""Rate of copies between a device and host memory that is not pinned, which the driver copies piece by piece through
pinned memory of its own. It is the host's, not the link's: 9.7 GB/s against 51.5 pinned over PCIe 5.0 (RTX PRO 6000;
run-ai/runai-model-streamer issue 161), 9.6 against 32.4 (RTX 5090; kekzl/imp pull request 1409), 9 to 18 against 23 to
27 over PCIe 4.0 (RTX 4090; NVlabs/cuda-oxide pull request 976)."""

TRANSFER_LATENCY_NS: Final = 2_500
"""Least time of such a copy (assumed)."""

KIND_RATES: Final = MappingProxyType(
    {
        "elementwise": 1.0,
        "copy": 1.0,
        "fill": 1.0,
        "optimizer": 0.95,
        "reduction": 0.9,
        "norm": 0.68,
        "softmax": 0.85,
        "gather": 0.75,
        "embedding": 0.75,
        "random": 0.6,
        "sort": 0.5,
        "other": 0.8,
    }
)
"""Bandwidth of each kind of kernel relative to streaming (elementwise, norm, softmax: neusight; others assumed)."""

_AMPERE = ArchitectureConstants(
    gemm=GemmConstants(0.8427, 0.5956, 4769, 0.5145, 0.95, 0.1761, 662),
    attention=MappingProxyType(
        {
            "flash": AttentionConstants(0.679, 0.815, 0.982, 8102, 0.697),
            "cudnn": AttentionConstants(0.679, 0.815, 0.982, 8102, 0.697),
            "efficient": AttentionConstants(0.40, 0.9, 0.9, 8102, 0.7),
        }
    ),
    memory=MemoryConstants(2000, 0.87, 1.5, 0.4),
    joules_per_flop=1.556e-12,
    reference_power_w=400,
    power_exponent=0.39,
)
_HOPPER = ArchitectureConstants(
    gemm=GemmConstants(0.8158, 0.0209, 219, 0.4218, 0.7098, 0.0938, 2812),
    attention=MappingProxyType(
        {
            "flash": AttentionConstants(0.354, 0.938, 0.884, 2855, 0.803),
            "cudnn": AttentionConstants(0.584, 0.751, 0.961, 1956, 0.838),
            "efficient": AttentionConstants(0.22, 0.9, 0.9, 2855, 0.8),
        }
    ),
    memory=MemoryConstants(1500, 0.92, 1.5, 0.5),
    joules_per_flop=1.129e-12,
    reference_power_w=700,
    power_exponent=0.69,
)
_BLACKWELL = ArchitectureConstants(
    gemm=GemmConstants(0.8158, 11.32, 1060, 0.1008, 0.7692, 0.1469, 1387),
    attention=MappingProxyType(
        {
            "flash": AttentionConstants(0.17, 0.9, 0.9, 2955, 0.85),
            "cudnn": AttentionConstants(0.495, 0.75, 0.538, 2955, 0.838),
            "efficient": AttentionConstants(0.12, 0.9, 0.9, 2955, 0.8),
        }
    ),
    memory=MemoryConstants(1800, 0.90, 1.5, 0.4),
    joules_per_flop=0.905e-12,
    reference_power_w=1000,
    power_exponent=1.0,
)
_ADA = ArchitectureConstants(
    gemm=GemmConstants(0.5901, 1.032, 771, 0.3077, 0.9057, 0.0121, 1926),
    attention=MappingProxyType(
        {
            "flash": AttentionConstants(0.527, 0.929, 1.0, 9333, 0.756),
            "cudnn": AttentionConstants(0.527, 0.929, 1.0, 9333, 0.756),
            "efficient": AttentionConstants(0.3, 0.9, 0.9, 9333, 0.75),
        }
    ),
    memory=MemoryConstants(1800, 0.87, 1.5, 0.4),
    joules_per_flop=1.87e-12,
    reference_power_w=350,
    power_exponent=0.69,
)
_VOLTA = ArchitectureConstants(
    gemm=GemmConstants(0.75, 2.0, 2500, 0.9, 0.8, 0.46, 3000),
    attention=MappingProxyType(
        dict.fromkeys(("flash", "cudnn", "efficient"), AttentionConstants(0.35, 0.9, 0.9, 2500, 0.8))
    ),
    memory=MemoryConstants(2500, 0.85, 1.3, 0.4),
    joules_per_flop=3.2e-12,
    reference_power_w=300,
    power_exponent=0.69,
)


def _with_flex(architecture: ArchitectureConstants) -> ArchitectureConstants:
    flash = architecture.attention["flash"]
    flex = replace(flash, efficiency=flash.efficiency * FLEX)
    return replace(architecture, attention=MappingProxyType({**architecture.attention, "flex": flex}))


ARCHITECTURES: Final = MappingProxyType(
    {
        name: _with_flex(architecture)
        for name, architecture in (
            ("volta", _VOLTA),
            ("ampere", _AMPERE),
            ("ada", _ADA),
            ("hopper", _HOPPER),
            ("blackwell", _BLACKWELL),
        )
    }
)
