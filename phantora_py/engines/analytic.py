"""The analytic engine: a calibrated roofline for every launch, so that nothing is without a cost.

In this order: host functions take no device time; copies go by their bytes and link; generated kernels by what their
compiler told; products and attention by tiles and waves; known ops by the bytes they move; unknown ops by the bytes
they show and raw launches by their grid, both guessed.

Large products are limited by power rather than by peak rates (see `sustained_flops`), because training runs them back
to back; `sustained=False` gives the time of a short burst, as micro-benchmarks measure it.
"""

from __future__ import annotations

import math

from phantora_py.engines import attention, convolution, gemm, generated, recurrent, roofline, traffic
from phantora_py.engines.constants import (
    ARCHITECTURES,
    CONVOLUTION_RATE,
    DIRECT_FLOPS,
    FACTORISATION_RATE,
    FP8_ENERGY,
    GROUPED_RATE,
    KIND_RATES,
    ArchitectureConstants,
)
from phantora_py.engines.engine import Cost
from phantora_py.gpus import Gpu
from phantora_py.signature import Signature

_CONDITION_SETTER = "29set_conditional_handle_kernelEyPKb"
"""PyTorch's, for conditional nodes of CUDA graphs: one thread that reads a byte."""


class AnalyticEngine:
    """Costs of every launch on one GPU model."""

    name = "analytic"

    def __init__(self, gpu: Gpu, *, sustained: bool = True, constants: ArchitectureConstants | None = None) -> None:
        self._gpu = gpu
        self._constants = constants or ARCHITECTURES[gpu.architecture]
        self._sustained = sustained

    @property
    def floor_ns(self) -> int:
        """The least that any kernel takes; also the cost of a later launch of an op that is already counted."""
        return round(self._constants.memory.floor_ns)

    def cost(self, signature: Signature) -> Cost:
        """Never None: this engine is the last one asked."""
        if signature.node == "host_func":
            return Cost(0, self.name, "host_func")
        kind, time_ns, guessed = self._estimate(signature)
        return Cost(max(math.ceil(time_ns), self.floor_ns), self.name, kind, guessed)

    def _estimate(self, signature: Signature) -> tuple[str, float, bool]:
        if signature.copy is not None:
            return "copy", roofline.copy_ns(signature.copy, self._gpu, self._constants.memory), False
        if signature.kernel.endswith(_CONDITION_SETTER):
            return "launch", 0.0, False
        if cycles := generated.cycles(signature):
            return "launch", cycles / self._gpu.clock_khz * 1e6, False
        if work := generated.find_generated(signature):
            return self._generated(work)
        if convolved := convolution.find_convolution(signature):
            return "convolution", self._convolution_ns(convolved), False
        if network := recurrent.find_recurrent(signature):
            return "recurrent", sum(times * self._product_ns(each, 1.0) for times, each in network.products()), False
        if product := gemm.find_product(signature):
            return "gemm", self._product_ns(product, _relative_rate(signature)), False
        if attended := attention.find_attention(signature):
            return _kind(attended), self._attention_ns(attended), False
        if moved := traffic.find_traffic(signature):
            return moved.kind, self._memory_ns(moved), False
        return self._guess(signature)

    def _generated(self, work: generated.Work) -> tuple[str, float, bool]:
        beside_ns = self._memory_ns(work.moved)
        if work.attention is not None:
            return _kind(work.attention), self._attention_ns(work.attention) + beside_ns, work.guessed
        if template := work.template:
            return template.kind, self._product_ns(template.product, template.rate) + beside_ns, work.guessed
        return work.moved.kind, beside_ns, work.guessed

    def _product_ns(self, product: gemm.Product, relative_rate: float) -> float:
        if not product.flops:
            return self._constants.gemm.floor_ns
        burst_ns = gemm.burst_ns(product, self._gpu, self._constants.gemm)
        return self._limited(burst_ns, product.flops, product.dtype) / relative_rate

    def _convolution_ns(self, work: convolution.Convolution) -> float:
        """Groups may be so narrow that tiles of products would mostly be empty: depthwise, above all."""
        product_ns = self._product_ns(work.product, CONVOLUTION_RATE)
        return min(product_ns, self._direct_ns(work)) if work.groups > 1 else product_ns

    def _direct_ns(self, work: convolution.Convolution) -> float:
        """Value by value on CUDA cores, which load or issue for as long as it takes."""
        moved = traffic.Traffic("elementwise", work.passes * work.pass_bytes, launches=max(work.passes, 1))
        rate = self._gpu.sm_count * self._gpu.clock_khz * 1e3 * DIRECT_FLOPS / 1e9
        return max(self._memory_ns(moved), work.flops / rate)

    def _attention_ns(self, work: attention.Attention) -> float:
        constants = self._constants.attention[work.implementation]
        time_ns = attention.burst_ns(work, self._gpu, constants, self._constants.memory.floor_ns)
        return self._limited(time_ns, work.flops, work.dtype)

    def _limited(self, burst_ns: float, flops: float, dtype: str) -> float:
        """The burst's time, or that in which the power limit lets so many operations through."""
        if not self._sustained:
            return burst_ns
        return max(burst_ns, flops / self.sustained_flops(dtype) * 1e9)

    def sustained_flops(self, dtype: str) -> float:
        """Operations per second that the power limit allows for long.

        An operation costs energy E on the whole board at the rated limit P₀, so the rate is P₀ / E there, and
        (P / P₀) ** power_exponent of that under a limit P. Types other than bf16 are taken to need energy in proportion
        to the time they keep the tensor cores busy, fp8 a measured share.
        """
        constants = self._constants
        rated = constants.reference_power_w / constants.joules_per_flop
        rate = rated * math.pow(self._gpu.power_limit_w / constants.reference_power_w, constants.power_exponent)
        if dtype.startswith("float8"):
            return rate / FP8_ENERGY
        return rate * self._gpu.tensor_flops(dtype) / self._gpu.fp16_flops

    def _memory_ns(self, moved: traffic.Traffic) -> float:
        memory = self._constants.memory
        share = memory.streaming * KIND_RATES.get(moved.kind, 1.0)
        return roofline.memory_ns(moved, self._gpu, memory, share)

    def _guess(self, signature: Signature) -> tuple[str, float, bool]:
        if signature.tensors:
            return "other", self._memory_ns(traffic.visible_traffic(signature)), True
        moved = traffic.Traffic("other", roofline.launch_bytes(signature))
        return "launch", self._memory_ns(moved), True


def _kind(work: attention.Attention) -> str:
    return "attention_backward" if work.backward else "attention"


def _relative_rate(signature: Signature) -> float:
    """Rate of kernels that are like a plain product, but slower."""
    if signature.kernel.endswith(gemm.WORK):
        return FACTORISATION_RATE
    return GROUPED_RATE if signature.base_op in gemm.GROUPED else 1.0
