"""Kernels that a compiler generated (Inductor, Triton): what they do, from what it told of their source.

`Signature.code` has the sizes in the source, how often each argument is passed over, and how many products there are.
A tensor in the signature is all that its pointer reaches, in one dimension.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from phantora_py.engines.attention import Attention
from phantora_py.engines.gemm import Product
from phantora_py.engines.traffic import Traffic
from phantora_py.signature import Scalar, Signature, Tensor

_SPACE = re.compile(r"[xyz]numel|r[0-9]+_numel")
"""Sizes of Inductor's iteration space."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a generated kernel does: at most one product or attention, and bytes to move beside it."""

    moved: Traffic
    product: Product | None = None
    attention: Attention | None = None
    guessed: bool = False


def find_generated(signature: Signature) -> Work | None:
    """None if no compiler told anything."""
    if not signature.code:
        return None
    facts = dict(signature.code)
    moved = _traffic(signature, facts)
    if not facts.get("products"):
        return Work(moved, guessed=_iterations(facts) is None)
    if attention := _attention(signature, facts):
        return Work(Traffic("attention", 0.0, launches=0), attention=attention)
    if product := _product(signature, facts):
        beside = max(moved.bytes - product.traffic_bytes, 0.0) if _iterations(facts) is None else 0.0
        return Work(Traffic("elementwise", beside, launches=0), product=product)
    return Work(moved, guessed=True)


def _integer(facts: dict[str, Scalar], name: str, default: int = 0) -> int:
    value = facts.get(name, default)
    return value if isinstance(value, int) else default


def _sizes(facts: dict[str, Scalar], *names: str) -> list[int] | None:
    """All of these, if all are there and none is zero."""
    sizes = [_integer(facts, name) for name in names]
    return sizes if all(size > 0 for size in sizes) else None


def _iterations(facts: dict[str, Scalar]) -> int | None:
    """Elements that the kernel goes over, if it says so."""
    sizes = [_integer(facts, name) for name in facts if _SPACE.fullmatch(name)]
    return math.prod(sizes) if sizes else None


def _traffic(signature: Signature, facts: dict[str, Scalar]) -> Traffic:
    """A pass over an argument moves an element at each point of the iteration space, but no more than there are."""
    iterations = _iterations(facts)
    reads, writes = facts.get("reads"), facts.get("writes")
    passes = zip(reads, writes, strict=False) if isinstance(reads, tuple) and isinstance(writes, tuple) else ()
    total = 0.0
    for tensor, (read, write) in zip(signature.tensors, passes, strict=False):
        assert isinstance(read, int)
        assert isinstance(write, int)
        elements = tensor.numel if iterations is None else min(tensor.numel, iterations)
        total += (read + write) * elements * tensor.element_bytes
    reduces = any(name.startswith("r") and _SPACE.fullmatch(name) for name in facts)
    return Traffic("reduction" if reduces else "elementwise", total)


def _factor(signature: Signature) -> Tensor | None:
    """The first operand: what it is made of sets the rate."""
    return next((t for t in signature.tensors if t.role == "in" and "int" not in t.dtype), None)


def _product(signature: Signature, facts: dict[str, Scalar]) -> Product | None:
    """Inductor's templates name their sizes M, N, K, or those of a convolution; other kernels mostly do, too."""
    factor = _factor(signature)
    result = next((t for t in signature.tensors if t.role == "mut"), factor)
    if factor is None or result is None:
        return None
    dtype = "tf32" if factor.dtype == "float32" and facts.get("ALLOW_TF32") else factor.dtype
    if sizes := _sizes(facts, "M", "N", "K"):
        m, n, k = sizes
        batch = max(_integer(facts, "BATCH", 1), 1)
    elif sizes := _sizes(facts, "BATCH", "OUT_H", "OUT_W", "OUT_C", "KERNEL_H", "KERNEL_W"):
        images, height, width, filters, kernel_height, kernel_width = sizes
        groups = max(_integer(facts, "GROUPS", 1), 1)
        channels = _integer(facts, "GROUP_IN_C") or _integer(facts, "IN_C") // groups
        m, n, k, batch = images * height * width, filters // groups, channels * kernel_height * kernel_width, groups
    else:
        return None
    return Product(m, n, k, batch, dtype, factor.element_bytes, result.element_bytes)


def _attention(signature: Signature, facts: dict[str, Scalar]) -> Attention | None:
    """FlexAttention. A mask that compares positions is taken as causal."""
    sizes = _sizes(facts, "ZQ", "HQ", "Q_LEN", "KV_LEN", "QK_HEAD_DIM", "V_HEAD_DIM")
    factor = _factor(signature)
    if sizes is None or factor is None:
        return None
    batch, heads, queries, keys, dim_qk, dim_v = sizes
    backward, causal = "BLOCK_M1" in facts, bool(facts.get("ordered_mask"))
    return Attention("flex", backward, batch, heads, queries, keys, dim_qk, dim_v, causal, factor.dtype)
