"""Templates of products that Inductor fills in: which product one is, from the sizes that its source names.

Kernels that people write in Triton mostly name the sizes of a matrix product in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from phantora_py.engines.constants import GROUPED_RATE
from phantora_py.engines.gemm import Product
from phantora_py.signature import Scalar, Signature, Tensor


@dataclass(frozen=True, slots=True)
class Template:
    """A product, and what it is like."""

    product: Product
    bytes: float
    """That move for the product itself, not for what is fused with it."""
    kind: str = "gemm"
    rate: float = 1.0
    """Relative to a plain product: that of the op which it stands for."""


def find_template(signature: Signature, facts: dict[str, Scalar]) -> Template | None:
    """None if the sizes are not those of a product."""
    return _grouped(signature, facts) or _matrices(signature, facts) or _convolution(signature, facts)


def integer(facts: dict[str, Scalar], name: str, default: int = 0) -> int:
    value = facts.get(name, default)
    return value if isinstance(value, int) else default


def sizes(facts: dict[str, Scalar], *names: str) -> list[int] | None:
    """All of these, if all are there and none is zero."""
    values = [integer(facts, name) for name in names]
    return values if all(value > 0 for value in values) else None


def first_operand(signature: Signature) -> Tensor | None:
    """What it is made of sets the rate."""
    return next((t for t in signature.tensors if t.role == "in" and "int" not in t.dtype), None)


def _product(signature: Signature, facts: dict[str, Scalar], m: int, n: int, k: int, batch: int) -> Product | None:
    factor = first_operand(signature)
    if factor is None:
        return None
    result = next((t for t in signature.tensors if t.role == "mut"), factor)
    dtype = "tf32" if factor.dtype == "float32" and facts.get("ALLOW_TF32") else factor.dtype
    return Product(m, n, k, batch, dtype, factor.element_bytes, result.element_bytes)


def _matrices(signature: Signature, facts: dict[str, Scalar]) -> Template | None:
    """M, N, K; or K1, the depth of each of several products whose sum is wanted."""
    if extents := sizes(facts, "M", "N", "K"):
        m, n, k = extents
    elif extents := sizes(facts, "M", "N", "K1", "products"):
        m, n, k = extents[0], extents[1], extents[2] * extents[3]
    else:
        return None
    product = _product(signature, facts, m, n, k, max(integer(facts, "BATCH", 1), 1))
    return Template(product, product.traffic_bytes) if product else None


def _grouped(signature: Signature, facts: dict[str, Scalar]) -> Template | None:
    """Products of G groups. An operand of two dimensions holds the parts of all groups, taken to be equal: of the rows,
    of the columns, or, if both do, of the depth."""
    extents = sizes(facts, "M", "N", "K", "G")
    if extents is None or "A_IS_2D" not in facts or "B_IS_2D" not in facts:
        return None
    m, n, k, groups = extents
    match bool(facts["A_IS_2D"]), bool(facts["B_IS_2D"]):
        case True, False:
            m = math.ceil(m / groups)
        case False, True:
            n = math.ceil(n / groups)
        case True, True:
            k = math.ceil(k / groups)
    product = _product(signature, facts, m, n, k, groups)
    return Template(product, product.traffic_bytes, rate=GROUPED_RATE) if product else None


def _convolution(signature: Signature, facts: dict[str, Scalar]) -> Template | None:
    """In two dimensions or three, forward, or the gradient of either operand: the same operations."""
    extents = sizes(facts, "BATCH", "OUT_H", "OUT_W", "OUT_C", "KERNEL_H", "KERNEL_W")
    if extents is None:
        return None
    images, height, width, filters, kernel_height, kernel_width = extents
    groups = max(integer(facts, "GROUPS", 1), 1)
    channels = integer(facts, "GROUP_IN_C") or integer(facts, "IN_C") // groups
    outputs = images * integer(facts, "OUT_D", 1) * height * width
    depth = channels * integer(facts, "KERNEL_D", 1) * kernel_height * kernel_width
    product = _product(signature, facts, outputs, filters // groups, depth, groups)
    if product is None:
        return None
    inputs = images * integer(facts, "IN_D", 1) * integer(facts, "IN_H") * integer(facts, "IN_W")
    read = inputs * channels * groups + filters * depth
    moved = read * product.in_bytes + outputs * filters * product.out_bytes
    return Template(product, moved, "convolution")
