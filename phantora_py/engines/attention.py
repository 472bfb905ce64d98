"""Fused attention: what a signature attends over, and how long a tiled kernel takes for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from phantora_py.engines.constants import AttentionConstants
from phantora_py.gpus import Gpu
from phantora_py.signature import DTYPE_BYTES, Scalar, Signature, Tensor

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
    """So many keys at most that a query sees: the last ones if causal, else those around it. None: all."""
    shared: int = 1
    """Heads of queries that share one of keys and values."""

    @property
    def bytes(self) -> float:
        """That must move at least: each operand once, in the backward pass with the gradients."""
        keys = min(self.keys, self.most_keys + self.queries)
        rows = self.heads * self.queries + self.heads / self.shared * keys
        passes = 2 if self.backward else 1
        return self.batch * rows * (self.dim_qk + self.dim_v) * DTYPE_BYTES.get(self.dtype, 2) * passes

    @property
    def most_keys(self) -> int:
        """That any query sees."""
        return self.keys if self.window is None else min(self.window, self.keys)

    @property
    def kept(self) -> float:
        """Query-key pairs of a head that the mask leaves."""
        pairs = float(self.queries) * self.most_keys
        if not self.causal:
            reach = min((self.window - 1) // 2, self.keys - 1) if self.window and self.queries == self.keys else 0
            return self.queries * (2 * reach + 1) - reach * (reach + 1) if reach else pairs
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

    Heads that share their keys are rows of one CTA where each has a single query; where all rows are in one CTA a head,
    the keys are split until the SMs are full (PyTorch's flash_api.cpp: seqlenq_ngroups_swapped, set_params_splitkv).

    CTAs fill the SMs in waves, but nothing ends before the longest CTA, which under a causal mask does nearly twice the
    mean: that is what limits few heads.
    """
    rate = gpu.tensor_flops(work.dtype) * constants.efficiency * _width(work, constants) / gpu.sm_count / 1e9
    if work.backward:
        rate *= constants.backward
    together = work.shared if work.queries == 1 and not work.backward else 1
    rows = work.keys if work.backward else work.queries * together
    blocks = max(math.ceil(rows / _ROWS), 1)
    ctas = blocks * (work.heads // together) * work.batch
    if blocks == 1 and not work.backward:
        ctas *= max(min(gpu.sm_count // max(ctas, 1), work.most_keys // _ROWS), 1)
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
    if not work.causal and work.window is None:
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
    packed = _packed(signature, tensors[0])
    query, key, value = (_heads_first(t, packed is not None or stem in _ROWS_FIRST) for t in tensors)
    batch, queries = packed or (query[0], query[2])
    keys = queries if packed else key[2]
    causal, window = _mask(signature, stem, backward)
    return Attention(
        implementation=implementation,
        backward=backward,
        batch=batch,
        heads=query[1],
        queries=queries,
        keys=keys,
        dim_qk=query[3],
        dim_v=value[3],
        causal=causal,
        dtype=tensors[0].dtype,
        window=window,
        shared=max(query[1] // max(key[1], 1), 1),
    )


def _mask(signature: Signature, stem: str, backward: bool) -> tuple[bool, int | None]:
    """Whether it is causal, and its window: behind the last flag of the schema are scale, left and right extent."""
    causal = _is_causal(signature, stem, backward)
    if stem != "_flash_attention":
        return causal, None
    flags = [position for position, scalar in enumerate(signature.scalars) if isinstance(scalar, bool)]
    behind = signature.scalars[flags[-1] + 1 :] if flags else ()
    left, right = (_extent(behind[side]) if len(behind) > side else None for side in (1, 2))
    if causal or right == 0:
        return True, None if left is None else left + 1
    return False, None if left is None or right is None else left + right + 1


def _extent(scalar: Scalar) -> int | None:
    """Of one side of a window, in keys; None: open."""
    return scalar if isinstance(scalar, int) and scalar >= 0 else None


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
