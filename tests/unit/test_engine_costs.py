"""The analytic engine: every kind of launch has a cost, the right kind, and sane proportions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phantora_py.engines import AnalyticEngine, FusedEngine
from phantora_py.engines.attention import Attention, find_attention
from phantora_py.engines.convolution import find_convolution
from phantora_py.engines.engine import Cost
from phantora_py.engines.gemm import find_product
from phantora_py.engines.measured import product, tensor
from phantora_py.engines.recurrent import find_recurrent
from phantora_py.gpus import find_gpu, gpu_names, with_power_limit
from phantora_py.signature import Copy, Gemm, Scalar, Signature, Tensor

H100 = find_gpu("H100-SXM-80GB")
ENGINE = AnalyticEngine(H100)

X = tensor("bfloat16", 4096, 4096)
ROWS = tensor("float32", 8192, 32000)
INDEX = tensor("int64", 8192)
QUERY = tensor("bfloat16", 2, 32, 4096, 128)
KEY = tensor("bfloat16", 2, 8, 4096, 128)
PARAMETERS = tuple(tensor("float32", 1024, 1024, role="mut") for _ in range(8))


def op(name: str, *tensors: Tensor, scalars: tuple[Scalar, ...] = ()) -> Signature:
    return Signature(f"aten::{name}", tensors=tensors, scalars=scalars)


def mut(like: Tensor) -> Tensor:
    return Tensor("mut", like.dtype, like.shape, like.strides)


SIGNATURES = {
    "gemm": [
        op("mm", X, X),
        op("addmm", tensor("bfloat16", 4096), X, X, scalars=(1, 1)),
        op("bmm", tensor("bfloat16", 16, 512, 512), tensor("bfloat16", 16, 512, 512)),
        op("baddbmm", *[tensor("bfloat16", 16, 512, 512)] * 3),
        op("linear", tensor("bfloat16", 2, 128, 4096), tensor("bfloat16", 1024, 4096)),
        op("_scaled_mm", tensor("float8_e4m3fn", 4096, 4096), tensor("float8_e4m3fn", 4096, 4096)),
        op("_grouped_mm", tensor("bfloat16", 8192, 1024), tensor("bfloat16", 8, 1024, 512), tensor("int32", 8)),
        Signature(kernel="cublasGemmEx", gemm=Gemm(64, 64, 64, 4, "float16", "float16", True, False)),
        Signature(kernel="cublasSgemm_v2/tf32", gemm=Gemm(64, 64, 64, 1, "float32", "float32", True, False)),
    ],
    "convolution": [
        op(
            "cudnn_convolution",
            tensor("float16", 32, 64, 56, 56),
            tensor("float16", 64, 64, 3, 3),
            scalars=((1, 1), (1, 1), (1, 1), 1, False, False, True),
        ),
        op(
            "convolution_backward",
            *[tensor("float16", 32, 64, 56, 56)] * 2,
            tensor("float16", 64, 64, 3, 3),
            scalars=((1, 1),) * 3,
        ),
    ],
    "attention": [
        op("_scaled_dot_product_flash_attention", QUERY, KEY, KEY, scalars=(0.0, True, False, None)),
        op("_cudnn_attention_forward", QUERY, KEY, KEY, scalars=(None, None, None, 4096, 4096, True, 0.0, True, False)),
        op("_efficient_attention_forward", QUERY, QUERY, QUERY, scalars=(None, None, None, None, None, 0.0, 1, True)),
    ],
    "attention_backward": [
        op("_scaled_dot_product_flash_attention_backward", QUERY, QUERY, KEY, KEY, scalars=(4096, 4096, 0.0, True)),
        op("_scaled_dot_product_cudnn_attention_backward", QUERY, QUERY, KEY, KEY, scalars=(4096, 4096, 0.0, True)),
    ],
    "elementwise": [
        op("add.Tensor", X, X, scalars=(1,)),
        op("mul_.Tensor", mut(X), X),
        op("silu", X),
        op("silu_backward", X, X),
        op("where.self", tensor("bool", 4096, 4096), X, X),
        op("gt.Scalar", X, scalars=(0,)),
        op("native_dropout", X, scalars=(0.1, True)),
        op("_thnn_fused_lstm_cell", X, X, tensor("bfloat16", 4096, 1024), scalars=(None, None)),
    ],
    "norm": [
        op("native_layer_norm", X, tensor("bfloat16", 4096), tensor("bfloat16", 4096), scalars=((4096,), 1e-5)),
        op("native_layer_norm_backward", X, X, *[tensor("float32", 4096, 1)] * 2, tensor("bfloat16", 4096)),
        op("_fused_rms_norm", X, tensor("bfloat16", 4096), scalars=((4096,), 1e-5)),
        op("_fused_rms_norm_backward", X, X, tensor("float32", 4096, 1), tensor("bfloat16", 4096)),
    ],
    "softmax": [
        op("_softmax", ROWS, scalars=(-1, False)),
        op("_log_softmax", ROWS, scalars=(1, False)),
        op("_log_softmax_backward_data", ROWS, ROWS, scalars=(1, 6)),
    ],
    "reduction": [
        op("sum.dim_IntList", ROWS, scalars=((1,), False)),
        op("cumsum", INDEX, scalars=(0,)),
        op("nonzero", X),
    ],
    "embedding": [
        op("embedding", tensor("bfloat16", 128256, 4096), INDEX, scalars=(-1, False, False)),
        op("embedding_dense_backward", tensor("bfloat16", 8192, 4096), INDEX, scalars=(128256, -1, False)),
    ],
    "gather": [
        op("index_select", X, tensor("int64", 512), scalars=(0,)),
        op("index.Tensor", X, tensor("int64", 512)),
        op("index_put_", mut(X), tensor("int64", 512), tensor("bfloat16", 512, 4096), scalars=(True,)),
        op("gather", ROWS, tensor("int64", 8192, 1), scalars=(1, False)),
        op("scatter_add_", mut(X), tensor("int64", 4096, 8), tensor("bfloat16", 4096, 8), scalars=(1,)),
        op("nll_loss_forward", ROWS, INDEX, scalars=(None, 1, -100)),
        op("nll_loss_backward", tensor("float32"), ROWS, INDEX, scalars=(None, 1, -100)),
    ],
    "copy": [
        op("cat", X, X, scalars=(0,)),
        op("copy_", tensor("float32", 4096, 4096, role="mut"), X, scalars=(False,)),
        Signature("fsdp::chunk_cat", tensors=(X, X, tensor("float32", 8192, 4096, role="mut"))),
        *[Signature(copy=Copy(kind, 2**24)) for kind in ("h2d", "d2h", "d2d", "memset", "p2p", "h2h")],
    ],
    "launch": [Signature(kernel="_ZN1_29set_conditional_handle_kernelEyPKb", grid=(1, 1, 1), block=(1, 1, 1))],
    "fill": [op("zero_", mut(X)), op("fill_.Scalar", mut(X), scalars=(1,)), op("arange.start_out", mut(INDEX))],
    "random": [op("normal_", mut(X), scalars=(0.0, 1.0, None)), op("bernoulli_.float", mut(X), scalars=(0.5, None))],
    "sort": [op("sort", INDEX, scalars=(0, False)), op("topk", ROWS, scalars=(8, -1, True, True))],
    "optimizer": [
        op("_fused_adamw_", *PARAMETERS, tensor("float32"), tensor("float32"), scalars=(1e-3,)),
        op("_foreach_add_.List", *PARAMETERS[:4], *[tensor("float32", 1024, 1024)] * 4, scalars=(1,)),
        op("_foreach_mul_.Scalar", *PARAMETERS, scalars=(0.9,)),
        op("_foreach_sqrt", *[tensor("float32", 1024, 1024)] * 4),
    ],
}
GUESSES = [
    op("some_op_of_tomorrow", X),
    Signature("my::op", tensors=(X, mut(X))),
    Signature(kernel="triton_poi_fused_0", grid=(1024, 1, 1), block=(128, 1, 1)),
    Signature(kernel="no_idea"),
]
ALL = [signature for group in SIGNATURES.values() for signature in group]


@pytest.mark.parametrize(
    ("kind", "signature"),
    [(kind, signature) for kind, group in SIGNATURES.items() for signature in group],
    ids=lambda value: value if isinstance(value, str) else value.op or value.kernel or value.copy.kind,
)
def test_each_known_launch_has_a_cost_of_its_kind(kind: str, signature: Signature) -> None:
    cost = ENGINE.cost(signature)
    assert (cost.engine, cost.kind, cost.guessed) == ("analytic", kind, False)
    assert cost.duration_ns >= ENGINE.floor_ns


@pytest.mark.parametrize("signature", GUESSES, ids=lambda signature: signature.op or signature.kernel)
def test_unknown_launches_are_guessed(signature: Signature) -> None:
    cost = ENGINE.cost(signature)
    assert cost.guessed
    assert cost.duration_ns >= ENGINE.floor_ns


def test_host_functions_take_no_device_time() -> None:
    assert ENGINE.cost(Signature(node="host_func")) == Cost(0, "analytic", "host_func")


@pytest.mark.parametrize("name", gpu_names())
def test_every_gpu_has_costs(name: str) -> None:
    engine = AnalyticEngine(find_gpu(name))
    for signature in (*ALL, *GUESSES):
        cost = engine.cost(signature)
        assert isinstance(cost.duration_ns, int)
        assert engine.floor_ns <= cost.duration_ns < 10**10


def test_empty_tensors_cost_the_floor() -> None:
    empty = tensor("bfloat16", 0, 4096)
    for signature in (op("add.Tensor", empty, empty), op("mm", empty, X), op("sum", empty), op("cat", empty)):
        assert ENGINE.cost(signature).duration_ns <= 3 * ENGINE.floor_ns


# --- products --------------------------------------------------------------------------------------------------------


def duration(signature: Signature, gpu: str = "H100-SXM-80GB", *, sustained: bool = True) -> int:
    return AnalyticEngine(find_gpu(gpu), sustained=sustained).cost(signature).duration_ns


def test_the_call_and_the_op_tell_the_same_product() -> None:
    from_op = find_product(op("mm", tensor("bfloat16", 512, 256), tensor("bfloat16", 256, 1024)))
    from_call = find_product(product(512, 1024, 256, "bfloat16"))
    assert from_op is not None
    assert from_call is not None
    assert from_op.flops == from_call.flops == 2 * 512 * 1024 * 256
    assert from_op.traffic_bytes == from_call.traffic_bytes


def test_wider_types_take_longer() -> None:
    times = [duration(product(4096, 4096, 4096, dtype)) for dtype in ("float8_e4m3fn", "bfloat16", "float32")]
    assert times == sorted(times)
    tf32 = Signature(kernel="cublasSgemm_v2/tf32", gemm=Gemm(4096, 4096, 4096, 1, "float32", "float32", True, False))
    assert times[1] < duration(tf32) < times[2]


def test_accumulation_reads_the_result() -> None:
    thin = (8192, 8192, 64)
    assert duration(product(*thin, "bfloat16", accumulate_dtype="float32")) > duration(product(*thin, "bfloat16"))


def test_a_matrix_scaled_by_beta_of_0_is_not_read() -> None:
    scores, query, key = (
        tensor("float16", 64, 1024, 1024),
        tensor("float16", 64, 1024, 8),
        tensor("float16", 64, 8, 1024),
    )
    for call in (None, Gemm(1024, 1024, 8, 64, "float16", "float16", True, False)):
        ignored, added = (
            Signature("aten::baddbmm", tensors=(scores, query, key), scalars=(beta, 1.0), gemm=call)
            for beta in (0.0, 1.0)
        )
        assert duration(ignored) == duration(replace(ignored, op="aten::bmm", tensors=(query, key), scalars=()))
        assert duration(added) > 1.8 * duration(ignored)


def test_power_limits_large_products_only() -> None:
    large, small = product(16384, 14336, 4096, "bfloat16"), product(256, 4096, 4096, "bfloat16")
    low = AnalyticEngine(with_power_limit(H100, 500))
    assert low.cost(large).duration_ns > 1.2 * duration(large)
    assert low.cost(small).duration_ns == duration(small)
    assert duration(large) > duration(large, sustained=False)


def test_sustained_rate_of_an_h100_is_as_published() -> None:
    flops = 2 * 16384 * 14336 * 4096
    assert 600e12 < flops / duration(product(16384, 14336, 4096, "bfloat16")) * 1e9 < 790e12


def test_grouped_products_share_rows() -> None:
    work = find_product(op("_grouped_mm", tensor("bfloat16", 4096, 512), tensor("bfloat16", 16, 512, 256)))
    assert work is not None
    assert (work.m, work.n, work.k, work.batch) == (256, 256, 512, 16)


IMAGES = tensor("float16", 8, 64, 56, 56)
FILTERS = tensor("float16", 128, 64, 5, 5)


@pytest.mark.parametrize(
    "signature",
    [
        op("convolution", IMAGES, FILTERS, scalars=(None, (2, 2), (3, 3), (1, 1), False, (0, 0), 1)),
        op("cudnn_convolution", IMAGES, FILTERS, scalars=((3, 3), (2, 2), (1, 1), 1, False, False, True)),
        op("_conv_depthwise2d", IMAGES, FILTERS, scalars=((5, 5), None, (2, 2), (3, 3), (1, 1))),
    ],
)
def test_convolutions_count_output_positions(signature: Signature) -> None:
    work = find_convolution(signature)
    assert work is not None
    side = (56 + 2 * 3 - 5) // 2 + 1
    (forward,) = work.products
    assert (forward.m, forward.n, forward.k) == (8 * side * side, 128, 64 * 25)


def test_a_transposed_convolution_does_what_a_gradient_does() -> None:
    lists = (1, 1), (2, 2), (1, 1)
    narrow, wide = tensor("float16", 8, 128, 27, 27), tensor("float16", 8, 64, 55, 55)
    mask = (True, False, False)
    ops = (
        op("convolution_backward", narrow, wide, FILTERS, scalars=(None, *lists, False, (0, 0), 1, mask)),
        op("cudnn_convolution_transpose", narrow, FILTERS, scalars=((1, 1), (0, 0), (2, 2), (1, 1), 1, False, False)),
        op("convolution", narrow, FILTERS, scalars=((2, 2), (1, 1), (1, 1), True, (0, 0), 1)),
        op("convolution_backward", wide, narrow, FILTERS, scalars=(None, *lists, True, (0, 0), 1, mask)),
    )
    flops = 2 * 8 * 27 * 27 * 128 * 64 * 25
    read_and_written = 2 * (narrow.numel + wide.numel + FILTERS.numel)
    for each in ops:
        work = find_convolution(each)
        assert work is not None
        assert (work.flops, work.pass_bytes) == (flops, read_and_written)


def depthwise(taps: int, mask: tuple[bool, ...] = (), name: str = "cudnn_convolution", dtype: str = "bfloat16") -> int:
    """Nanoseconds for 64 images of 512 channels, 56 by 56."""
    images, weight = tensor(dtype, 64, 512, 56, 56), tensor(dtype, 512, 1, taps, taps)
    padding = (taps // 2, taps // 2)
    if mask:
        scalars: tuple[Scalar, ...] = (None, (1, 1), padding, (1, 1), False, (0, 0), 512, mask)
        return duration(op("convolution_backward", images, images, weight, scalars=scalars))
    if name == "_conv_depthwise2d":
        return duration(op(name, images, weight, scalars=((taps, taps), None, (1, 1), padding, (1, 1))))
    return duration(op(name, images, weight, scalars=(padding, (1, 1), (1, 1), 512, False, False, True)))


def test_depthwise_convolutions_cost_their_bytes_or_their_operations() -> None:
    values = 64 * 512 * 56 * 56
    bytes_ns = 2 * values * 2 / H100.hbm_bytes_per_s * 1e9
    assert bytes_ns < depthwise(1) < 1.2 * bytes_ns
    assert depthwise(1, dtype="float32") == pytest.approx(2 * depthwise(1), rel=0.1)
    for taps in (3, 5, 7):
        operations_ns = 2 * values * taps**2 / (132 * 1.98 * 32)
        assert bytes_ns < depthwise(taps) == pytest.approx(operations_ns, rel=0.01)
        assert depthwise(taps) == depthwise(taps, name="_conv_depthwise2d")
        assert depthwise(taps, (True, False, False)) == depthwise(taps)
        assert depthwise(taps, (True, True, False)) == pytest.approx(2 * depthwise(taps), rel=0.01)


@pytest.mark.parametrize("backward", [False, True])
def test_convolutions_follow_the_precision_of_their_call(backward: bool) -> None:
    images, weight = tensor("float32", 64, 512, 56, 56), tensor("float32", 512, 512, 3, 3)
    scalars = (None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1) if backward else ((1, 1), (1, 1), (1, 1), 1)
    tensors = (images, images, weight) if backward else (images, weight)
    named = op("convolution_backward" if backward else "cudnn_convolution", *tensors, scalars=scalars)
    exact, tf32 = (replace(named, kernel=f"cudnnBackendExecute:CONVOLUTION{end}") for end in ("", "/tf32"))
    flops = (4 if backward else 2) * 64 * 56 * 56 * 512 * 512 * 9
    assert 0.3 < flops / duration(exact) * 1e9 / H100.fp32_flops < 0.6
    assert 0.3 < flops / duration(tf32) * 1e9 / H100.tf32_flops < 0.6
    half = replace(tf32, tensors=tuple(replace(each, dtype="bfloat16") for each in tensors))
    assert duration(half) == duration(replace(half, kernel=exact.kernel))


# --- recurrent networks ----------------------------------------------------------------------------------------------

LSTM, GRU = 2, 3


def network(
    mode: int,
    x: Tensor,
    hidden: int,
    layers: int = 1,
    *,
    projected: int = 0,
    batch_first: bool = False,
    bidirectional: bool = False,
    batch_sizes: tuple[int, ...] = (),
    backward: bool = False,
) -> Signature:
    """A GRU has no cell: None is among its scalars then, as for a buffer of weights and dropout's state."""
    absent = (None, None) if mode == GRU else (None,)
    sizes = (mode, hidden, projected, layers, batch_first, 0.0, True, bidirectional, batch_sizes, None)
    scalars = (4, *absent, *sizes, *([(True, True, True, True)] if backward else []))
    weight = tensor(x.dtype, 4 * hidden, x.shape[-1])
    return op("_cudnn_rnn_backward" if backward else "_cudnn_rnn", x, weight, scalars=scalars)


def network_flops(signature: Signature) -> int:
    work = find_recurrent(signature)
    assert work is not None
    return sum(times * product.flops for times, product in work.products())


def test_networks_count_all_their_products() -> None:
    x = tensor("bfloat16", 100, 32, 48)
    step = 2 * 100 * 32 * 4 * 64
    assert network_flops(network(LSTM, x, 64)) == step * (48 + 64)
    assert network_flops(network(GRU, x, 64)) == step * (48 + 64) * 3 // 4
    assert network_flops(network(LSTM, x, 64, 3)) == step * (48 + 64 + 2 * (64 + 64))
    assert network_flops(network(LSTM, x, 64, 2, bidirectional=True)) == 2 * step * (48 + 64 + 128 + 64)
    assert network_flops(network(LSTM, x, 64, projected=16)) == step * (48 + 16) + 2 * 100 * 32 * 64 * 16
    forward, backward = (network(LSTM, x, 64, 3, backward=back) for back in (False, True))
    assert network_flops(backward) == 2 * network_flops(forward)
    swapped = network(LSTM, tensor("bfloat16", 32, 100, 48), 64, batch_first=True)
    packed = network(LSTM, tensor("bfloat16", 100 * 32, 48), 64, batch_sizes=(32,) * 100)
    assert find_recurrent(swapped) == find_recurrent(packed) == find_recurrent(network(LSTM, x, 64))


def test_large_networks_cost_their_operations() -> None:
    x = tensor("bfloat16", 1024, 128, 2048)
    forward, backward = (network(LSTM, x, 2048, 2, backward=back) for back in (False, True))
    flops = 2 * 1024 * 128 * 4 * 2048 * (2 * 2 * 2048)
    assert 0.3 < flops / duration(forward) * 1e9 / H100.fp16_flops < 0.6
    assert duration(backward) == pytest.approx(2 * duration(forward), rel=0.25)
    cost = ENGINE.cost(forward)
    assert (cost.kind, cost.guessed) == ("recurrent", False)
    exact = network(LSTM, tensor("float32", 1024, 128, 2048), 2048, 2)
    assert duration(exact) > 3 * duration(replace(exact, kernel="cudnnRNNForward/tf32"))


def test_steps_of_small_networks_wait_for_one_another_and_layers_overlap() -> None:
    step_ns = duration(op("mm", tensor("bfloat16", 1, 64), tensor("bfloat16", 64, 256)))
    assert step_ns > ENGINE.floor_ns
    one, four = (duration(network(LSTM, tensor("bfloat16", 1000, 1, 64), 64, layers)) for layers in (1, 4))
    assert one == pytest.approx(1001 * step_ns, rel=0.05)
    assert four == pytest.approx(1007 * step_ns, rel=0.05)


def test_a_factorisation_is_a_guess() -> None:
    """At a rate relative to a product's, which nothing measured is behind."""
    call = Signature(kernel="cusolverDnXpotrf/work", gemm=Gemm(64, 64, 64, 1, "float32", "float32", True, False))
    assert (ENGINE.cost(call).kind, ENGINE.cost(call).guessed) == ("gemm", True)


# --- attention -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "causal"),
    [
        (op("_scaled_dot_product_flash_attention", QUERY, KEY, KEY, scalars=(0.0, True, False, None)), True),
        (op("_scaled_dot_product_flash_attention", QUERY, KEY, KEY, scalars=(0.0, False, True, None)), False),
        (op("_scaled_dot_product_cudnn_attention", QUERY, KEY, KEY, scalars=(None, True, 0.0, False, False)), False),
        (op("_scaled_dot_product_cudnn_attention", QUERY, KEY, KEY, scalars=(None, False, 0.0, True, False)), True),
        (op("_scaled_dot_product_efficient_attention", QUERY, KEY, KEY, scalars=(None, True, 0.0, True)), True),
        (op("_efficient_attention_forward", QUERY, KEY, KEY, scalars=(None, 0.0, 0, True)), False),
        (op("_efficient_attention_backward", QUERY, QUERY, KEY, KEY, scalars=(128, 128, 0.0, 1, False)), True),
    ],
)
def test_reads_the_causal_flag_of_each_schema(signature: Signature, causal: bool) -> None:
    work = find_attention(signature)
    assert work is not None
    assert work.causal is causal


def test_rows_first_and_heads_first_are_the_same_work() -> None:
    rows_first = tensor("bfloat16", 2, 4096, 32, 128)
    one = find_attention(op("_flash_attention_forward", rows_first, rows_first, rows_first, scalars=(0.0, True, False)))
    other = find_attention(op("_scaled_dot_product_flash_attention", QUERY, QUERY, QUERY, scalars=(0.0, True, False)))
    assert one == other


def test_packed_sequences_attend_within_themselves() -> None:
    packed, lengths = tensor("bfloat16", 8192, 16, 128), tensor("int32", 9)
    work = find_attention(op("_flash_attention_forward", packed, packed, packed, lengths, lengths, scalars=(0.0, True)))
    assert work is not None
    assert (work.batch, work.queries, work.keys) == (8, 1024, 1024)


def test_a_window_leaves_the_last_keys() -> None:
    def kept(queries: int, keys: int, window: int | None) -> float:
        return Attention("flex", False, 1, 1, queries, keys, 64, 64, True, "bfloat16", window).kept

    for queries, keys, window in ((6, 6, 2), (3, 6, 2), (3, 6, 5), (6, 6, 6), (6, 6, 9)):
        seen = [min(keys - queries + i + 1, window) for i in range(queries)]
        assert kept(queries, keys, window) == sum(seen)
    assert kept(6, 6, None) == 21


def test_causal_is_about_half() -> None:
    full, half = (
        op("_scaled_dot_product_flash_attention", QUERY, QUERY, QUERY, scalars=(0.0, causal, False))
        for causal in (False, True)
    )
    assert 0.45 < duration(half) / duration(full) < 0.65


def test_backward_is_dearer_than_forward() -> None:
    forward = op("_scaled_dot_product_flash_attention", QUERY, KEY, KEY, scalars=(0.0, True, False))
    backward = op("_scaled_dot_product_flash_attention_backward", QUERY, QUERY, KEY, KEY, scalars=(0.0, True))
    assert 2 < duration(backward) / duration(forward) < 4


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_broadcast_operands_are_read_once() -> None:
    scale = tensor("bfloat16", 1, 4096)
    assert duration(op("mul.Tensor", X, scale)) < duration(op("mul.Tensor", X, X))


def test_expanded_operands_are_joined_in_full() -> None:
    """Two of 2 GiB, each a row of 4 MiB that is repeated: 4 GiB are written, at 3.35 TB/s at most."""
    repeated = Tensor("in", "float32", (512, 1024, 1024), (0, 1024, 1))
    assert duration(op("cat", repeated, repeated, scalars=(0,))) > 2**32 / 3.35e12 * 1e9
    assert duration(op("stack", repeated, repeated, scalars=(0,))) > 2**32 / 3.35e12 * 1e9


def test_rows_gathered_by_an_expanded_index_cost_as_an_embedding() -> None:
    table, rows = tensor("bfloat16", 128256, 4096), tensor("bfloat16", 16384, 4096, role="mut")
    index = Tensor("in", "int64", (16384, 4096), (1, 0))
    embedding = ENGINE.cost(op("embedding", table, tensor("int64", 16384), scalars=(-1, False, False)))
    assert ENGINE.cost(op("gather.out", table, index, rows)).duration_ns == embedding.duration_ns


def test_transposed_copies_are_slower() -> None:
    transposed = Tensor("in", "bfloat16", (4096, 4096), (1, 4096))
    assert duration(op("copy_", mut(X), transposed)) > 1.3 * duration(op("copy_", mut(X), X))


def test_long_softmax_rows_are_read_again() -> None:
    short, long = tensor("float32", 32768, 1024), tensor("float32", 256, 131072)
    assert duration(op("_log_softmax", long, scalars=(1, False))) > 1.5 * duration(
        op("_log_softmax", short, scalars=(1, False))
    )


def test_fused_adam_reads_gradients_but_does_not_write_them() -> None:
    steps = (tensor("float32"), tensor("float32"))
    large = tuple(tensor("float32", 4096, 4096, role="mut") for _ in range(8))
    cost = duration(op("_fused_adamw_", *large, *steps))
    moved = 2 * 4096 * 4096 * 4 * (3 * 2 + 1)
    assert 0.85 < moved / (cost / 1e9) / H100.hbm_bytes_per_s < 1.0


def test_bandwidth_of_large_additions() -> None:
    large = tensor("bfloat16", 16384, 14336)
    rate = 3 * large.bytes / duration(op("add.Tensor", large, large)) * 1e9
    assert 0.85 < rate / H100.hbm_bytes_per_s < 1.0


def test_copies_go_by_their_link() -> None:
    times = {kind: duration(Signature(copy=Copy(kind, 2**30))) for kind in ("d2d", "p2p", "h2d")}
    assert times["d2d"] < times["p2p"] < times["h2d"]


def test_pageable_copies_go_at_the_hosts_rate() -> None:
    # By hand: 2.5 µs, and 2^30 bytes at 9.7 GB/s, whatever the link; a link that is slower than the host decides.
    for direction in ("h2d", "d2h"):
        pinned, pageable = Copy(direction, 2**30), Copy(direction, 2**30, pageable=True)
        assert duration(Signature(copy=pageable)) == pytest.approx(110_697_533, abs=1)
        assert duration(Signature(copy=pinned)) == pytest.approx(20_053_701, abs=1)
    slow = replace(H100, pcie_bytes_per_s=4e9)
    over_slow = AnalyticEngine(slow).cost(Signature(copy=pageable)).duration_ns
    assert over_slow == pytest.approx(2_500 + 2**30 / 3.4, abs=1)


# --- the fused engine ------------------------------------------------------------------------------------------------


class OnlyMm:
    name = "profile"

    def __init__(self) -> None:
        self.asked = 0

    def cost(self, signature: Signature) -> Cost | None:
        self.asked += 1
        return Cost(12345, self.name, "gemm") if signature.base_op == "mm" else None


def test_first_answer_wins_and_is_remembered() -> None:
    first = OnlyMm()
    fused = FusedEngine(H100, [first])
    assert fused.cost(op("mm", X, X)).duration_ns == 12345
    assert fused.cost(op("mm", X, X)).engine == "profile"
    assert fused.cost(op("add.Tensor", X, X)).engine == "analytic"
    assert first.asked == 2
    assert fused.answered == {"profile": 1, "analytic": 1}


def test_lists_what_was_guessed() -> None:
    fused = FusedEngine(H100)
    fused.cost(GUESSES[0])
    fused.cost(op("mm", X, X))
    assert fused.guessed == [GUESSES[0]]
    assert fused.later_launch_ns == ENGINE.floor_ns
