"""Fused attention: what a signature attends over, and how long a tiled kernel takes for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from phantora_py.engines.constants import AttentionConstants
from phantora_py.gpus import Gpu
from phantora_py.signature import Signature, Tensor

_ROWS = 128
"""Query rows (keys in the backward pass) of a CTA."""


@dataclass(frozen=True, slots=True)
class Attention:
    """softmax(Q·Kᵀ)·V for `batch` sequences. Dense, or causal with the last query aligned to the last key."""

    implementation: str
    """flash, cudnn, efficient, flex."""
    backward: bool
    batch: int
    heads: int
    queries: int
    keys: int
    dim_qk: int
    dim_v: int
    causal: bool
    dtype: str
    window: int | None = None
    """If causal, the last so many keys at most that a query sees; None: all."""

    @property
    def most_keys(self) -> int:
        """That any query sees."""
        return self.keys if self.window is None else min(self.window, self.keys)

    @property
    def kept(self) -> float:
        """Query-key pairs of a head that the mask leaves."""
        pairs = float(self.queries) * self.most_keys
        if not self.causal:
            return pairs
        short = max(self.most_keys - max(self.keys - self.queries, 0), 0)  # queries that see fewer
        return pairs - short * (short - 1) / 2

    @property
    def flops(self) -> float:
        """Two products forward; backward five (Q·Kᵀ again, and four for the gradients)."""
        forward = 2 * self.kept * (self.dim_qk + self.dim_v)
        if not self.backward:
            return self.batch * self.heads * forward
        return self.batch * self.heads * 2 * self.kept * (3 * self.dim_qk + 2 * self.dim_v)


def burst_ns(work: Attention, gpu: Gpu, constants: AttentionConstants, floor_ns: float) -> float:
    """A CTA owns 128 rows of a head and passes over the keys that the mask leaves them.

    CTAs fill the SMs in waves, but nothing ends before the longest CTA, which under a causal mask does nearly twice the
    mean: that is what limits few heads.
    """
    rate = gpu.tensor_flops(work.dtype) * constants.efficiency * _width(work, constants) / gpu.sm_count / 1e9
    if work.backward:
        rate *= constants.backward
    rows = work.keys if work.backward else work.queries
    blocks = max(math.ceil(rows / _ROWS), 1)
    ctas = blocks * work.heads * work.batch
    # Tiles on the edge are computed whole: the last rows, and those of the mask.
    padded = work.flops * blocks * _ROWS / max(rows, 1)
    padded *= 1 + _edges(work)
    mean_ns = padded / max(ctas, 1) / rate
    longest_ns = mean_ns * (2 - 1 / blocks if work.causal else 1.0)
    if work.window is not None:
        longest_ns = min(longest_ns, mean_ns * work.most_keys * work.queries / max(work.kept, 1.0))
    waves = ctas / gpu.sm_count
    return floor_ns + max(waves * mean_ns, longest_ns) + max(waves, 1.0) * constants.cta_overhead_ns


def _edges(work: Attention) -> float:
    """What a mask leaves out but tiles on its edge compute, relative to what it leaves: half a tile for each block on
    the diagonal, and as much where a window begins."""
    if not work.causal:
        return 0.0
    if work.window is None:
        return _ROWS / (work.keys + _ROWS)
    edges = 2 - work.most_keys / max(work.keys, 1)
    return edges * _ROWS / 2 * work.queries / max(work.kept, 1.0)


def _width(work: Attention, constants: AttentionConstants) -> float:
    """Relative rate by head dimension: piecewise linear in its logarithm between 64, 128 and 256."""
    position = math.log2(min(max((work.dim_qk + work.dim_v) / 2, 32), 512) / 128)
    edge = constants.wide if position > 0 else constants.narrow
    return max(1 + (edge - 1) * min(abs(position), 2.0), 0.1)


# --- which attention a signature is ----------------------------------------------------------------------------------

_IMPLEMENTATIONS = {
    "_scaled_dot_product_flash_attention": "flash",
    "_flash_attention": "flash",
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_cudnn_attention": "cudnn",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_efficient_attention": "efficient",
    "_scaled_dot_product_fused_attention_overrideable": "flash",
}
_ROWS_FIRST = ("_flash_attention", "_efficient_attention")
"""These take [batch, sequence, heads, dim] (or [tokens, heads, dim]); the others [batch, heads, sequence, dim]."""


def find_attention(signature: Signature) -> Attention | None:
    """The attention of a fused op; None for anything else, or if its shapes make no sense."""
    name = signature.base_op
    backward = name.endswith("_backward")
    stem = name.removesuffix("_backward").removesuffix("_forward")
    implementation = _IMPLEMENTATIONS.get(stem)
    if not implementation:
        return None
    tensors = [t for t in signature.tensors if len(t.shape) >= 3][backward:][:3]
    if len(tensors) < 3:
        return None
    query, key, value = (_heads_first(t, stem in _ROWS_FIRST) for t in tensors)
    packed = _packed(signature, tensors[0])
    batch, queries = packed or (query[0], query[2])
    keys = queries if packed else key[2]
    causal = _is_causal(signature, stem, backward)
    return Attention(
        implementation, backward, batch, query[1], queries, keys, query[3], value[3], causal, tensors[0].dtype
    )


def _is_causal(signature: Signature, stem: str, backward: bool) -> bool:
    """Where each schema keeps it: an int behind dropout_p (0: none), or the first or second bool."""
    if stem == "_efficient_attention":
        after_dropout = [b for a, b in pairwise(signature.scalars) if isinstance(a, float)]
        return bool(after_dropout and after_dropout[0])
    flags = [s for s in signature.scalars if isinstance(s, bool)]
    position = 1 if _IMPLEMENTATIONS[stem] in ("cudnn", "efficient") and not backward else 0
    return len(flags) > position and flags[position]


def _heads_first(tensor: Tensor, rows_first: bool) -> tuple[int, int, int, int]:
    """[batch, heads, sequence, dim] of one operand."""
    shape = tensor.shape if len(tensor.shape) >= 4 else (1, *tensor.shape)
    batch, second, third, dim = shape[-4:]
    return (batch, third, second, dim) if rows_first else (batch, second, third, dim)


def _packed(signature: Signature, query: Tensor) -> tuple[int, int] | None:
    """(sequences, mean length) of variable-length input: [tokens, heads, dim] with cumulative lengths beside it."""
    if len(query.shape) != 3:
        return None
    lengths = [t for t in signature.tensors if len(t.shape) == 1 and t.dtype == "int32" and t.numel >= 2]
    if not lengths:
        return None
    sequences = lengths[0].numel - 1
    return sequences, max(math.ceil(query.shape[0] / sequences), 1)
