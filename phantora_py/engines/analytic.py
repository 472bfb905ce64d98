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
    SM_BYTES_A_CYCLE,
    ArchitectureConstants,
)
from phantora_py.engines.engine import Cost
from phantora_py.engines.roofline import Time
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
        kind, time, guessed = self._estimate(signature)
        duration_ns = max(math.ceil(time.ns), self.floor_ns)
        busy_ns = min(math.ceil(time.busy_ns), duration_ns)
        doubt = generated.find_doubt(signature)
        return Cost(duration_ns, self.name, kind, guessed or bool(doubt), busy_ns, doubt)

    def _estimate(self, signature: Signature) -> tuple[str, Time, bool]:
        if signature.copy is not None:
            return "copy", roofline.copy_time(signature.copy, self._gpu, self._constants.memory), False
        if signature.kernel.endswith(_CONDITION_SETTER):
            return "launch", Time(), False
        if cycles := generated.cycles(signature):
            return "launch", Time(cycles / self._gpu.clock_khz * 1e6), False
        if work := generated.find_generated(signature):
            return self._generated(signature, work)
        if convolved := convolution.find_convolution(signature):
            return "convolution", self._convolution(convolved), False
        if network := recurrent.find_recurrent(signature):
            return (
                "recurrent",
                sum((self._product(each, 1.0) * times for times, each in network.products()), Time()),
                False,
            )
        if product := gemm.find_product(signature):
            return "gemm", self._product(product, _relative_rate(signature)), signature.kernel.endswith(gemm.WORK)
        if attended := attention.find_attention(signature):
            return _kind(attended), self._attention(attended), False
        if moved := traffic.find_traffic(signature):
            return moved.kind, self._memory(moved), False
        return self._guess(signature)

    def _generated(self, signature: Signature, work: generated.Work) -> tuple[str, Time, bool]:
        beside = self._memory(work.moved)
        if work.attention is not None:
            return _kind(work.attention), self._attention(work.attention) + beside, work.guessed
        if (template := work.template) and template.kind == "convolution":
            return template.kind, self._implicit(template.product, template.bytes) + beside, work.guessed
        if template:
            return template.kind, self._product(template.product, template.rate) + beside, work.guessed
        return work.moved.kind, max(beside, self._through_blocks(signature, work.moved)), work.guessed

    def _through_blocks(self, signature: Signature, moved: traffic.Traffic) -> Time:
        """What the SMs that a kernel has blocks for can load and store: one block does not get the GPU's bandwidth."""
        blocks = min(math.prod(signature.grid or (self._gpu.sm_count,)), self._gpu.sm_count)
        rate = max(blocks, 1) * SM_BYTES_A_CYCLE * self._gpu.clock_khz * 1e3 / 1e9
        return Time(moved.bytes / rate)

    def _product(self, product: gemm.Product, relative_rate: float) -> Time:
        if not product.flops:
            return Time(self._constants.gemm.floor_ns)
        if product.is_narrow:
            return self._narrow(product) * (1 / relative_rate)
        time_ns = self._limited(gemm.burst_ns(product, self._gpu, self._constants.gemm), product.flops, product.dtype)
        busy_ns = max(
            gemm.memory_ns(product.traffic_bytes, self._gpu, self._constants.gemm),
            self._least_ns(product.flops, product.dtype),
        )
        return Time(time_ns, busy_ns) * (1 / relative_rate)

    def _narrow(self, product: gemm.Product) -> Time:
        """All SMs read the matrix as it comes, like a reduction; there is too little arithmetic to wait for."""
        rate = self._gpu.hbm_bytes_per_s * self._constants.memory.streaming * KIND_RATES["reduction"]
        busy_ns = product.traffic_bytes / rate * 1e9
        return Time(self._constants.gemm.floor_ns + self._constants.gemm.cta_overhead_ns + busy_ns, busy_ns)

    def _convolution(self, work: convolution.Convolution) -> Time:
        """Groups may be so narrow that tiles of products would mostly be empty: depthwise, above all."""
        implicit = sum((self._implicit(product, work.pass_bytes) for product in work.products), Time())
        return min(implicit, self._direct(work)) if work.groups > 1 else implicit

    def _implicit(self, product: gemm.Product, moved_bytes: float) -> Time:
        """Memory sees images, filters and results once, however much their windows overlap."""
        if not product.flops:
            return Time(self._constants.gemm.floor_ns)
        least_ns = self._least_ns(product.flops, product.dtype)
        moving_ns = gemm.memory_ns(moved_bytes, self._gpu, self._constants.gemm)
        time_ns = gemm.implicit_ns(product, moved_bytes, self._gpu, self._constants.gemm)
        if self._sustained:
            time_ns = max(time_ns, least_ns / CONVOLUTION_RATE)
        return Time(time_ns, max(moving_ns, least_ns))

    def _direct(self, work: convolution.Convolution) -> Time:
        """Value by value on CUDA cores, which load or issue for as long as it takes."""
        passes = len(work.made)
        moved = traffic.Traffic("elementwise", passes * work.pass_bytes, launches=max(passes, 1))
        rate = self._gpu.sm_count * self._gpu.clock_khz * 1e3 * DIRECT_FLOPS / 1e9
        issuing_ns = work.flops / rate
        return max(self._memory(moved), Time(issuing_ns, issuing_ns))

    def _attention(self, work: attention.Attention) -> Time:
        constants = self._constants.attention[work.implementation]
        burst_ns = attention.burst_ns(work, self._gpu, constants, self._constants.memory.floor_ns)
        time_ns = self._limited(burst_ns, work.flops, work.dtype)
        moving = self._memory(traffic.Traffic("attention", work.bytes))
        return Time(max(time_ns, moving.ns), max(self._least_ns(work.flops, work.dtype), moving.busy_ns))

    def _limited(self, burst_ns: float, flops: float, dtype: str) -> float:
        """The burst's time, or that in which the power limit lets so many operations through."""
        return max(burst_ns, self._least_ns(flops, dtype)) if self._sustained else burst_ns

    def _least_ns(self, flops: float, dtype: str) -> float:
        """In which the power limit lets so many operations through."""
        return flops / self.sustained_flops(dtype) * 1e9

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

    def _memory(self, moved: traffic.Traffic) -> Time:
        memory = self._constants.memory
        share = memory.streaming * KIND_RATES.get(moved.kind, 1.0)
        return roofline.memory_time(moved, self._gpu, memory, share)

    def _guess(self, signature: Signature) -> tuple[str, Time, bool]:
        if signature.tensors:
            return "other", self._memory(traffic.visible_traffic(signature)), True
        moved = traffic.Traffic("other", roofline.launch_bytes(signature))
        return "launch", self._memory(moved), True


def _kind(work: attention.Attention) -> str:
    return "attention_backward" if work.backward else "attention"


def _relative_rate(signature: Signature) -> float:
    """Rate of kernels that are like a plain product, but slower."""
    if signature.kernel.endswith(gemm.WORK):
        return FACTORISATION_RATE
    return GROUPED_RATE if signature.base_op in gemm.GROUPED else 1.0
