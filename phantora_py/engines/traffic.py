"""Bytes that an op moves, from its name and its arguments' shapes, and which kind of kernel moves them.

A signature lists inputs and written arguments but not the results of functional ops; each rule here knows what its op
returns. A tensor that is modified in place is read and written; one that is only overwritten is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phantora_py.engines import indexing, resampling
from phantora_py.engines.shapes import broadcast, promoted_bytes
from phantora_py.signature import DTYPE_BYTES, Signature, Tensor


@dataclass(frozen=True, slots=True)
class Traffic:
    kind: str
    """elementwise, reduction, norm, softmax, embedding, gather, copy, fill, random, sort, optimizer, other."""
    bytes: float
    strided: bool = False
    """Some operand is walked out of order: short accesses, lower bandwidth."""
    launches: int = 1
    """Kernels that the op needs at least, for its floor."""


Rule = Callable[[Signature], Traffic]


def find_traffic(signature: Signature) -> Traffic | None:
    """What the op moves; None if the op is not known."""
    name = signature.base_op
    rule = _RULES.get(name)
    if rule is None and name.startswith("_foreach_"):
        rule = _foreach
    if rule is None and name.startswith("_fused_") and name.endswith("_"):
        rule = _fused_optimizer
    if rule is None and name.endswith("_"):
        rule = _RULES.get(name[:-1])
    return rule(signature) if rule else None


def visible_traffic(signature: Signature) -> Traffic:
    """For an op that no rule knows: every argument once, written ones twice, and a result like the largest input if
    nothing tells its size."""
    return Traffic("other", _arguments(signature) + _result(signature))


# --- shared arithmetic -----------------------------------------------------------------------------------------------


def _is_out_variant(signature: Signature) -> bool:
    """Whether the written arguments are results that the op does not read (`add.out`, `sort.values`)."""
    overload = signature.op.rpartition(".")[2] if "." in signature.op else ""
    return "out" in overload or overload in ("values", "output", "grad_input", "values_stable")


def _mutated(signature: Signature) -> list[Tensor]:
    return [tensor for tensor in signature.tensors if tensor.role == "mut"]


def _inputs(signature: Signature) -> list[Tensor]:
    return [tensor for tensor in signature.tensors if tensor.role == "in"]


def _arguments(signature: Signature) -> float:
    """Bytes of the arguments: read once, and written once where the op modifies them."""
    factor = 1 if _is_out_variant(signature) else 2
    return signature.read_bytes + factor * signature.mutated_bytes


def _result(signature: Signature) -> float:
    elements = resampling.find_elements(signature)
    if elements is None or signature.mutated_bytes:
        return _result_like_largest(signature)
    return float(elements * signature.tensors[0].element_bytes)


def _result_like_largest(signature: Signature) -> float:
    if any(tensor.numel for tensor in _mutated(signature)):
        return 0.0
    return float(max((tensor.bytes for tensor in signature.tensors), default=0))


def _is_strided(tensors: Sequence[Tensor]) -> bool:
    """Whether operands of one size lie in memory in different orders, or with gaps."""
    large = [t for t in tensors if t.numel > 1 and 0 not in t.strides]
    orders = {t.strides for t in large if t.is_dense}
    full = {t.shape for t in large}
    return any(not t.is_dense for t in large) or (len(full) == 1 and len(orders) > 1)


# --- rules by class --------------------------------------------------------------------------------------------------


def _elementwise(outputs: float = 1.0, out_bytes: int | None = None, launches: int = 1) -> Rule:
    """`outputs` results of the inputs' broadcast shape, `out_bytes` an element if not of the promoted size."""

    def rule(signature: Signature) -> Traffic:
        total = _arguments(signature)
        if not any(tensor.numel for tensor in _mutated(signature)):
            operands = _inputs(signature)
            width = out_bytes or promoted_bytes(operands)
            total += outputs * math.prod(broadcast(t.shape for t in operands)) * width
        return Traffic("elementwise", total, _is_strided(signature.tensors), launches)

    return rule


def _complex_to_real(signature: Signature) -> Traffic:
    """abs, angle: the result is half as wide as complex numbers."""
    is_complex = any(tensor.dtype.startswith("complex") for tensor in signature.tensors)
    return _elementwise(outputs=0.5 if is_complex else 1.0)(signature)


def _fourier(signature: Signature) -> Traffic:
    """Each transformed dimension is a pass over everything; a long one two, as it does not fit on an SM."""
    dims = next((scalar for scalar in signature.scalars if isinstance(scalar, tuple)), ())
    shape = signature.tensors[0].shape
    sides = [shape[dim] for dim in dims if isinstance(dim, int) and -len(shape) <= dim < len(shape)]
    passes = sum(math.ceil((side - 1).bit_length() / _TRANSFORM_BITS) for side in sides)
    return Traffic("other", max(passes, 1) * visible_traffic(signature).bytes, launches=max(passes, 1))


_TRANSFORM_BITS = 14
"""An SM transforms so many complex numbers, as a power of two, in its shared memory (128 KiB; assumed)."""


def _reduction(passes: float = 1.0) -> Rule:
    def rule(signature: Signature) -> Traffic:
        return Traffic("reduction", passes * signature.read_bytes + signature.mutated_bytes)

    return rule


def _scan(signature: Signature) -> Traffic:
    return Traffic("reduction", 2.0 * signature.read_bytes + _result_like_largest(signature))


def _norm_forward(signature: Signature) -> Traffic:
    """layer_norm, rms_norm: read x, write y; the weights stay in the cache."""
    x = signature.tensors[0].bytes if signature.tensors else 0
    return Traffic("norm", 2.0 * x)


def _norm_backward(signature: Signature) -> Traffic:
    """Reads dy and x and writes dx; then reads dy and x once more for the gradients of the weights."""
    if len(signature.tensors) < 2:
        return visible_traffic(signature)
    grad, x = signature.tensors[0], signature.tensors[1]
    has_weight = any(len(tensor.shape) == 1 for tensor in signature.tensors[2:])
    return Traffic("norm", (grad.bytes + x.bytes) * (2 if has_weight else 1) + x.bytes, launches=2 if has_weight else 1)


_ROW_IN_SHARED_BYTES = 48 * 1024
"""Softmax rows up to about this size stay on the SM between its passes."""


def _softmax(reads_when_long: int) -> Rule:
    """Rows that fit on the SM are read once; longer ones once a pass (maximum, sum, result)."""

    def rule(signature: Signature) -> Traffic:
        if not signature.tensors:
            return visible_traffic(signature)
        first = signature.tensors[0]
        width = max((DTYPE_BYTES["float32"] if any(s is True for s in signature.scalars) else 0), first.element_bytes)
        row = (first.shape[-1] if first.shape else 1) * first.element_bytes
        reads = reads_when_long if row > _ROW_IN_SHARED_BYTES else 1
        return Traffic("softmax", reads * signature.read_bytes + first.numel * width)

    return rule


def _nll_forward(signature: Signature) -> Traffic:
    """Reads one entry of each row."""
    rows = signature.tensors[1].numel if len(signature.tensors) > 1 else 0
    return Traffic("gather", rows * (indexing.SECTOR_BYTES + 8.0))


def _nll_backward(signature: Signature) -> Traffic:
    """Writes one entry of each row; the zeros come from a fill of its own."""
    rows = signature.tensors[2].numel if len(signature.tensors) > 2 else 0
    return Traffic("gather", rows * (indexing.SECTOR_BYTES + 8.0))


def _indexed(count: indexing.Bytes, tensors: int = 2) -> Rule:
    """Picks or stores by indices: `count` says what moves, of an op of at least so many `tensors`."""

    def rule(signature: Signature) -> Traffic:
        if len(signature.tensors) < tensors:
            return visible_traffic(signature)
        kind = "embedding" if "embedding" in signature.base_op else "gather"
        sorts = "index_put" in signature.base_op and indexing.accumulates(signature)
        return Traffic(kind, count(signature), launches=2 if sorts else 1)

    return rule


def _search(signature: Signature) -> Traffic:
    """bucketize, searchsorted: each value read, and an int64 or (the first bool) int32 written for it."""
    if len(signature.tensors) < 2:
        return visible_traffic(signature)
    values = signature.tensors[0 if signature.base_op == "bucketize" else 1]
    narrow = next((scalar for scalar in signature.scalars if isinstance(scalar, bool)), False)
    return Traffic("gather", signature.read_bytes + values.numel * DTYPE_BYTES["int32" if narrow else "int64"])


def _embedding_backward(signature: Signature) -> Traffic:
    """Sorts the indices, then adds each gradient row to its row of the table (zeroed by a fill of its own)."""
    grad = signature.tensors[0].bytes if signature.tensors else 0
    indices = signature.tensors[1].bytes if len(signature.tensors) > 1 else 0
    return Traffic("embedding", 2.0 * grad + _RADIX_PASSES * 4.0 * indices, launches=4)


def _slice_like_backward(signature: Signature) -> Traffic:
    """slice_backward, select_backward: copies the gradient into zeros made by other kernels."""
    return Traffic("copy", 2.0 * signature.read_bytes)


def _concatenate(signature: Signature) -> Traffic:
    """cat, stack: every input read and written. _chunk_cat.out and the copies of FSDP name what they write, which may
    be of another type."""
    written = signature.mutated_bytes or sum(tensor.bytes for tensor in _inputs(signature))
    return Traffic("copy", float(signature.read_bytes + written))


def _overwrite(kind: str) -> Rule:
    """fill_, zero_, normal_, …: writes its first argument, reads nothing."""

    def rule(signature: Signature) -> Traffic:
        written = signature.mutated_bytes or max((t.bytes for t in signature.tensors), default=0)
        return Traffic(kind, float(written))

    return rule


def _count(signature: Signature) -> Traffic:
    """arange: its result, of which the size is not known when the op begins, has an element for each thread."""
    threads = math.prod((*(signature.grid or ()), *(signature.block or ())))
    written = max((t.bytes or threads * t.element_bytes for t in _mutated(signature)), default=0)
    return Traffic("fill", float(written))


def _copy(signature: Signature) -> Traffic:
    """copy_, _to_copy, clone, contiguous: reads one tensor, writes another, possibly of another type or order."""
    target = _mutated(signature)[:1] or signature.tensors[:1]
    source = _inputs(signature)[:1] or target
    total = sum(t.stored_bytes for t in source) + sum(t.bytes for t in target)
    return Traffic("copy", float(total), _is_strided([*source, *target]))


_RADIX_PASSES = 4
"""Passes of a radix sort over 32-bit keys; each reads and writes keys and values."""


def _sort(signature: Signature) -> Traffic:
    keys = signature.tensors[0] if signature.tensors else None
    if keys is None:
        return visible_traffic(signature)
    passes = _RADIX_PASSES * max(keys.element_bytes / 4, 0.5)
    return Traffic("sort", passes * 2 * keys.numel * (keys.element_bytes + 8.0), launches=4)


def _select_top(signature: Signature) -> Traffic:
    """topk, kthvalue, median: a few counting passes over the input."""
    return Traffic("sort", 4.0 * signature.read_bytes, launches=2)


def _compact(signature: Signature) -> Traffic:
    """nonzero, masked_select: counts, then writes what is kept (at most everything)."""
    return Traffic("reduction", 2.0 * signature.read_bytes + _result_like_largest(signature), launches=3)


def _foreach(signature: Signature) -> Traffic:
    """One kernel over lists. Reductions read; in-place ops read and write the first list; others return lists."""
    name = signature.base_op
    if name in ("_foreach_norm", "_foreach_max"):
        return Traffic("reduction", float(signature.read_bytes))
    if name in ("_foreach_copy_", "_foreach_zero_"):
        return Traffic("optimizer", float(signature.read_bytes + signature.mutated_bytes))
    total = _arguments(signature)
    if not _mutated(signature):
        lists = 2 if name.rstrip("_").endswith(("add", "sub", "mul", "div", "lerp")) and "List" in signature.op else 1
        total += signature.read_bytes / lists
    return Traffic("optimizer", float(total))


def _fused_optimizer(signature: Signature) -> Traffic:
    """_fused_adamw_, _fused_sgd_, …: the schema marks the gradients as written, but they are only read."""
    written = _mutated(signature)
    steps = sum(1 for t in _inputs(signature) if t.numel == 1)
    lists = max(round(len(written) / steps), 2) if steps else max(4, 2)
    each = max(len(written) // lists, 1)
    gradients = sum(t.stored_bytes for t in written[each : 2 * each])
    return Traffic("optimizer", signature.read_bytes + 2.0 * signature.mutated_bytes - gradients)


def _unscale(signature: Signature) -> Traffic:
    return Traffic("optimizer", 2.0 * signature.mutated_bytes + signature.read_bytes)


def _resampled(signature: Signature) -> Traffic:
    """Scaling, pooling, padding: the input read, but of one that is far larger than the result a sector for each run of
    neighbours; the result written, for some with an int64 of where it came from."""
    elements = resampling.find_elements(signature)
    if elements is None:
        return visible_traffic(signature)
    read = signature.read_bytes
    if resampling.only_gives_shape(signature):
        read -= signature.tensors[1].stored_bytes
    if runs := resampling.runs(signature):
        image = signature.tensors[0].stored_bytes
        read += min(image, elements * runs * indexing.SECTOR_BYTES) - image
    width = signature.tensors[0].element_bytes
    if signature.base_op.endswith(("_with_indices", "adaptive_max_pool2d", "adaptive_max_pool3d")):
        width += DTYPE_BYTES["int64"]
    return Traffic("elementwise", read + elements * width)


def _batch_norm(passes: float) -> Rule:
    def rule(signature: Signature) -> Traffic:
        large = max((t.bytes for t in signature.tensors), default=0)
        return Traffic("norm", passes * large, launches=2)

    return rule


_UNARY = """
neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh sigmoid logit erf erfc erfinv lgamma digamma ceil floor round trunc frac sign sgn relu relu6 gelu
silu mish elu celu selu leaky_relu hardtanh hardswish hardsigmoid softplus softshrink hardshrink threshold clamp
clamp_min clamp_max clip nan_to_num bitwise_not conj_physical real imag view_as_real_copy polygamma rsub pow
float_power remainder fmod glu log_sigmoid_forward special_i0 sinc logical_not_ rot90 flip roll tril triu dropout
repeat repeat_interleave constant_pad_nd
"""
_BINARY = """
add sub mul div true_divide floor_divide maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2 copysign
nextafter bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__
__lshift__ __rshift__ addcmul addcdiv lerp where masked_fill xlogy mse_loss smooth_l1_loss huber_loss
binary_cross_entropy silu_backward gelu_backward sigmoid_backward tanh_backward threshold_backward elu_backward
leaky_relu_backward hardtanh_backward hardswish_backward hardsigmoid_backward softplus_backward mish_backward
logit_backward glu_backward native_dropout_backward mse_loss_backward smooth_l1_loss_backward
binary_cross_entropy_with_logits binary_cross_entropy_backward log_sigmoid_backward masked_scatter
_fused_dropout_backward
"""
_COMPARISONS = (
    "eq ne lt le gt ge isnan isinf isfinite isposinf isneginf logical_and logical_or logical_xor logical_not isclose"
)
_REDUCTIONS = """
sum mean prod nansum amax amin aminmax max min any all norm linalg_vector_norm argmax argmin logsumexp var std
var_mean std_mean _assert_async count_nonzero equal mode frobenius_norm sum_to_size _is_all_true _is_any_true
renorm dist histc bincount
"""
_OVERWRITES = {
    "fill": "fill zero zeros full ones linspace logspace eye new_zeros new_full zeros_like ones_like full_like",
    "random": "normal uniform random bernoulli exponential cauchy log_normal geometric rand randn randint rand_like "
    "randn_like randint_like multinomial",
}
_INDEXED = {
    indexing.index_bytes: "index _unsafe_index",
    indexing.index_put_bytes: "index_put _index_put_impl _unsafe_index_put",
    indexing.select_bytes: "embedding index_select",
    indexing.store_bytes: "index_add index_copy index_fill index_reduce",
    indexing.gather_bytes: "gather take",
    indexing.scatter_bytes: "scatter scatter_add scatter_reduce put",
}
_COPIES = "copy _to_copy clone contiguous _reshape_copy permute_copy t_copy expand_copy _copy_from _pin_memory"
_CONCATENATIONS = """
cat stack _chunk_cat all_gather_copy_in chunk_cat split_with_sizes_copy unbind_copy split_copy hstack vstack concat
block_diag
"""


def _table() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    rules.update(dict.fromkeys((_UNARY + _BINARY).split(), _elementwise()))
    rules.update(dict.fromkeys(_COMPARISONS.split(), _elementwise(out_bytes=1)))
    rules.update(dict.fromkeys(_REDUCTIONS.split(), _reduction()))
    for kind, names in _OVERWRITES.items():
        rules.update(dict.fromkeys(names.split(), _overwrite(kind)))
    rules.update(dict.fromkeys(_COPIES.split(), _copy))
    rules.update(dict.fromkeys(_CONCATENATIONS.split(), _concatenate))
    rules.update(dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), _scan))
    rules.update(dict.fromkeys(("native_layer_norm", "_fused_rms_norm", "rms_norm", "layer_norm"), _norm_forward))
    rules.update(dict.fromkeys(("native_layer_norm_backward", "_fused_rms_norm_backward"), _norm_backward))
    rules.update(dict.fromkeys(("native_group_norm",), _batch_norm(3)))
    rules.update(dict.fromkeys(("native_group_norm_backward",), _batch_norm(5)))
    rules.update(dict.fromkeys(("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit"), _batch_norm(3)))
    rules.update(dict.fromkeys(("native_batch_norm_backward", "cudnn_batch_norm_backward"), _batch_norm(5)))
    rules.update(dict.fromkeys(("_softmax", "_log_softmax", "_safe_softmax", "softmax", "log_softmax"), _softmax(3)))
    rules.update(dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), _softmax(2)))
    rules.update(dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _nll_forward))
    rules.update(dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), _nll_backward))
    for count, names in _INDEXED.items():
        rules.update(dict.fromkeys(names.split(), _indexed(count)))
    rules.update(dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _indexed(indexing.bag_bytes, 3)))
    rules.update(dict.fromkeys(("searchsorted", "bucketize"), _search))
    rules.update(dict.fromkeys(("embedding_dense_backward", "_embedding_bag_dense_backward"), _embedding_backward))
    rules.update(
        dict.fromkeys(("slice_backward", "select_backward", "slice_scatter", "select_scatter"), _slice_like_backward)
    )
    rules.update(dict.fromkeys(("sort", "argsort", "msort", "unique_consecutive", "_unique2", "unique_dim"), _sort))
    rules.update(dict.fromkeys(("topk", "kthvalue", "median", "nanmedian"), _select_top))
    rules.update(dict.fromkeys(("nonzero", "masked_select", "nonzero_static", "argwhere"), _compact))
    rules.update(dict.fromkeys(("_amp_foreach_non_finite_check_and_unscale",), _unscale))
    rules.update(dict.fromkeys(resampling.NAMES, _resampled))
    rules.update(dict.fromkeys(("arange", "range"), _count))
    rules["_thnn_fused_lstm_cell"] = _elementwise(outputs=1.5)  # four gates in; these, state and cell out
    rules["_thnn_fused_lstm_cell_backward_impl"] = _elementwise(outputs=1.25)
    rules["_thnn_fused_gru_cell"] = _elementwise(outputs=2)  # three gates in; five values and the state out
    rules["_thnn_fused_gru_cell_backward"] = _elementwise(outputs=1.4)
    rules["complex"] = rules["polar"] = _elementwise(outputs=2)
    rules.update(dict.fromkeys(("abs", "angle"), _complex_to_real))
    rules.update(dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), _fourier))
    rules["native_dropout"] = _elementwise(outputs=1.5)
    rules["_fused_dropout"] = _elementwise(outputs=1.5)
    rules["randperm"] = _sort
    return rules


_RULES = _table()
