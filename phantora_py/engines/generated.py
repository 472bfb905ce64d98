"""Kernels that a compiler generated (Inductor, Triton): what they do, from what it told of their source.

`Signature.code` has the sizes in the source, how often each argument is passed over, and how many products there are.
A tensor in the signature is all that its pointer reaches, in one dimension.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from phantora_py.engines.attention import Attention
from phantora_py.engines.templates import Template, find_template, first_operand, integer, sizes
from phantora_py.engines.traffic import Traffic
from phantora_py.signature import Scalar, Signature

_SPACE = re.compile(r"[xyz]numel|r[0-9]+_numel")
"""Sizes of Inductor's iteration space."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a generated kernel does: at most one product or attention, and bytes to move beside it."""

    moved: Traffic
    template: Template | None = None
    attention: Attention | None = None
    guessed: bool = False


def cycles(signature: Signature) -> int:
    """For how long the kernel does nothing, if that is all it does; else 0."""
    return integer(dict(signature.code), "cycles")


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
    if template := find_template(signature, facts):
        beside = max(moved.bytes - template.bytes, 0.0) if _iterations(facts) is None else 0.0
        return Work(Traffic("elementwise", beside, launches=0), template=template)
    return Work(moved, guessed=True)


def find_doubt(signature: Signature) -> str:
    """What is guessed of a kernel whose work is known: FlexAttention skips the blocks that a mask leaves out, and which
    ones is in the mask's tensors alone unless its source tells."""
    facts = dict(signature.code)
    block, keys = integer(facts, "SPARSE_KV_BLOCK_SIZE"), integer(facts, "KV_LEN")
    return "flex_attention: block mask taken as dense" if 0 < block < keys and not facts.get("ordered_mask") else ""


def _iterations(facts: dict[str, Scalar]) -> int | None:
    """Elements that the kernel goes over, if it says so."""
    extents = [integer(facts, name) for name in facts if _SPACE.fullmatch(name)]
    return math.prod(extents) if extents else None


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


def _attention(signature: Signature, facts: dict[str, Scalar]) -> Attention | None:
    """FlexAttention. A mask that orders positions is taken as causal, within a window if it has one."""
    extents = sizes(facts, "ZQ", "HQ", "Q_LEN", "KV_LEN", "QK_HEAD_DIM", "V_HEAD_DIM")
    factor = first_operand(signature)
    if extents is None or factor is None:
        return None
    batch, heads, queries, keys, dim_qk, dim_v = extents
    backward, causal = "BLOCK_M1" in facts, bool(facts.get("ordered_mask"))
    window, shared = integer(facts, "mask_window") or None, integer(facts, "GQA_SHARED_HEADS") or 1
    return Attention("flex", backward, batch, heads, queries, keys, dim_qk, dim_v, causal, factor.dtype, window, shared)
