"""Costs of kernels that a compiler generated."""

from __future__ import annotations

import pytest

from phantora_py.engines.analytic import AnalyticEngine
from phantora_py.engines.engine import Cost
from phantora_py.gpus import find_gpu
from phantora_py.signature import Signature, SignatureError

GPU = find_gpu("H100-SXM-80GB")
ENGINE = AnalyticEngine(GPU)
BF16 = "bfloat16"


def generated(kernel: str, tensors: list[tuple[str, str, int]], code: dict[str, object]) -> Signature:
    described = [[role, dtype, [numel], [1]] for role, dtype, numel in tensors]
    return Signature.from_definition({"kernel": kernel, "tensors": described, "code": code})


def eager(op: str, *tensors: tuple[str, str, list[int]], scalars: tuple[list[int] | int, ...] = ()) -> Signature:
    described = []
    for role, dtype, shape in tensors:
        strides = [1] * len(shape)
        for i in reversed(range(len(shape) - 1)):
            strides[i] = strides[i + 1] * shape[i + 1]
        described.append([role, dtype, shape, strides])
    return Signature.from_definition({"op": op, "tensors": described, "scalars": list(scalars)})


def test_a_fused_chain_costs_its_bytes() -> None:
    numel = 1 << 25
    chain = generated(
        "triton_poi_fused_add_gelu_3",
        [("in", BF16, numel), ("in", BF16, 4096), ("mut", BF16, numel)],
        {"reads": [1, 1, 0], "writes": [0, 0, 1], "xnumel": numel, "products": 0},
    )
    cost = ENGINE.cost(chain)
    assert (cost.kind, cost.guessed) == ("elementwise", False)
    alike = ENGINE.cost(eager("aten::gelu", ("in", BF16, [numel])))
    assert cost.duration_ns == pytest.approx(alike.duration_ns, rel=0.01)
    assert chain.fused == "add_gelu"


def test_a_pass_reads_no_more_than_the_iteration_space() -> None:
    def cost(reach: int, reads: int) -> int:
        tensors = [("in", BF16, reach), ("mut", BF16, 1 << 22)]
        code = {"reads": [reads, 0], "writes": [0, 1], "xnumel": 1 << 12, "r0_numel": 1 << 10, "products": 0}
        return ENGINE.cost(generated("triton_red_fused_sum_0", tensors, code)).duration_ns

    assert cost(1 << 30, 1) == cost(1 << 22, 1)
    assert cost(1 << 22, 2) > 1.2 * cost(1 << 22, 1)


def test_few_blocks_do_not_get_the_whole_bandwidth() -> None:
    """64 bytes a cycle of 1.98 GHz for each SM that has one: 256 MiB through one block take 2.1 ms."""

    def cost_ms(blocks: int) -> float:
        numel = 1 << 26
        facts = {"reads": [1], "writes": [0], "products": 0, "xnumel": numel}
        described = {"tensors": [["in", "float32", [numel], [1]]], "code": facts}
        grid = {"grid": [blocks, 1, 1], "block": [128, 1, 1]}
        return ENGINE.cost(Signature.from_definition({"kernel": "loop", **described, **grid})).duration_ns / 1e6

    assert cost_ms(1) == pytest.approx(2**28 / (64 * GPU.clock_khz * 1e3) * 1e3, rel=0.001)
    assert cost_ms(4) == pytest.approx(cost_ms(1) / 4, rel=0.001)
    assert cost_ms(64) == cost_ms(4096)


@pytest.mark.parametrize(("m", "n", "k"), [(8192, 4096, 1024), (512, 512, 8192), (64, 1000, 333)])
def test_a_template_of_a_product_costs_what_it_does_eagerly(m: int, n: int, k: int) -> None:
    template = generated(
        "triton_tem_fused_mm_0",
        [("in", BF16, m * k), ("in", BF16, k * n), ("mut", BF16, m * n)],
        {"reads": [1, 1, 0], "writes": [0, 0, 1], "products": 1, "M": m, "N": n, "K": k},
    )
    cost = ENGINE.cost(template)
    assert (cost.kind, cost.guessed) == ("gemm", False)
    alike = ENGINE.cost(eager("aten::mm", ("in", BF16, [m, k]), ("in", BF16, [k, n])))
    assert cost.duration_ns == pytest.approx(alike.duration_ns, rel=0.02)


SIZES = {"BATCH": 16, "IN_C": 128, "IN_H": 28, "IN_W": 28, "OUT_C": 256, "OUT_H": 28, "OUT_W": 28}
KERNEL = {"KERNEL_H": 3, "KERNEL_W": 3, "GROUPS": 1}


def template(facts: dict[str, int], *tensors: tuple[str, str, int], products: int = 1) -> Cost:
    passes = {role: [int(tensor[0] == role) for tensor in tensors] for role in ("in", "mut")}
    code = {"reads": passes["in"], "writes": passes["mut"], "products": products, **facts}
    return ENGINE.cost(generated("triton_tem_fused_0", list(tensors), code))


def convolution(planes: int, facts: dict[str, int], more: int = 0) -> Cost:
    """One of images of `planes` planes; `more` bytes are read beside it."""
    x, y = (16 * channels * planes * 28 * 28 for channels in (128, 256))
    weight = 256 * 128 * facts.get("KERNEL_D", 1) * 9
    return template(
        SIZES | KERNEL | facts, ("in", BF16, x), ("in", BF16, weight), ("in", BF16, more // 2), ("mut", BF16, y)
    )


def eager_convolution(*sides: int) -> int:
    """Of images of these sides, which it keeps."""
    tensors = ("in", BF16, [16, 128, *sides]), ("in", BF16, [256, 128, *[3] * len(sides)])
    ones = [1] * len(sides)
    return ENGINE.cost(eager("aten::cudnn_convolution", *tensors, scalars=(ones, ones, ones, 1))).duration_ns


def test_a_template_of_a_convolution_costs_what_it_does_eagerly() -> None:
    flat = convolution(1, {})
    assert (flat.kind, flat.guessed) == ("convolution", False)
    assert flat.duration_ns == pytest.approx(eager_convolution(28, 28), rel=0.01)
    deep = convolution(8, {"IN_D": 8, "OUT_D": 8, "KERNEL_D": 3})
    assert deep.duration_ns == pytest.approx(eager_convolution(8, 28, 28), rel=0.01)


def test_what_is_fused_with_a_convolution_costs_its_bytes() -> None:
    moved = 1 << 28
    read_ns = moved / (GPU.hbm_bytes_per_s / 1e9)
    assert read_ns <= convolution(1, {}, moved).duration_ns - convolution(1, {}).duration_ns < 1.3 * read_ns


def test_a_sum_of_two_products_costs_both() -> None:
    tensors = [("in", BF16, 1 << 22)] * 4 + [("mut", BF16, 1 << 22)]
    both = template({"M": 2048, "N": 2048, "K1": 2048}, *tensors, products=2)
    alike = ENGINE.cost(eager("aten::mm", ("in", BF16, [2048, 4096]), ("in", BF16, [4096, 2048])))
    assert (both.kind, both.guessed) == ("gemm", False)
    assert both.duration_ns == pytest.approx(alike.duration_ns, rel=0.02)


@pytest.mark.parametrize(
    ("a", "b"), [([4096, 512], [8, 512, 1024]), ([8, 512, 512], [8, 512, 1024]), ([512, 4096], [4096, 1024])]
)
def test_a_template_of_grouped_products_costs_what_they_do_eagerly(a: list[int], b: list[int]) -> None:
    facts = {"M": a[-2], "N": b[-1], "K": a[-1], "G": 8, "A_IS_2D": int(len(a) == 2), "B_IS_2D": int(len(b) == 2)}
    together = template(facts, ("in", BF16, 1 << 21), ("in", BF16, 1 << 22), ("mut", BF16, 1 << 22))
    alike = ENGINE.cost(eager("aten::_grouped_mm", ("in", BF16, a), ("in", BF16, b), ("in", "int32", [8])))
    assert together.duration_ns == pytest.approx(alike.duration_ns, rel=0.1)


def flex(backward: bool = False, ordered_mask: int = 1, **sizes: int) -> int:
    code: dict[str, object] = {"ZQ": 4, "HQ": 16, "Q_LEN": 4096, "KV_LEN": 4096, "QK_HEAD_DIM": 128, "V_HEAD_DIM": 128}
    code |= {"products": 2, "ordered_mask": ordered_mask, "reads": [1], "writes": [0], **sizes}
    if backward:
        code["BLOCK_M1"] = 64
    return ENGINE.cost(generated("triton_tem_fused_flex_attention_1", [("in", BF16, 1 << 25)], code)).duration_ns


def test_flex_attention_costs_its_products() -> None:
    assert flex(ordered_mask=0) == pytest.approx(2 * flex(), rel=0.15)
    assert flex(Q_LEN=8192, KV_LEN=8192) == pytest.approx(4 * flex(), rel=0.15)
    assert 2 * flex() < flex(backward=True) < 4 * flex()


def test_flex_attention_within_a_window_costs_the_pairs_that_it_leaves() -> None:
    causal = flex(Q_LEN=8192, KV_LEN=8192)
    left = (8192 * 1024 - 1024 * 1023 / 2) / (8192 * 8193 / 2)
    windowed = flex(Q_LEN=8192, KV_LEN=8192, mask_window=1024)
    assert left < windowed / causal < 1.25 * left  # a window of 8 tiles has one more on its edges
    assert flex(Q_LEN=8192, KV_LEN=8192, mask_window=8192) == pytest.approx(causal, rel=0.02)
    assert flex(mask_window=128) < flex(mask_window=256) < flex(mask_window=2048) < flex()
    assert flex(backward=True, mask_window=512) == pytest.approx(3 * flex(mask_window=512), rel=0.3)


def test_flex_attention_with_blocks_that_only_values_tell_is_guessed_as_dense() -> None:
    def cost(**facts: int) -> Cost:
        code: dict[str, object] = {
            "ZQ": 4,
            "HQ": 16,
            "Q_LEN": 4096,
            "KV_LEN": 4096,
            "QK_HEAD_DIM": 64,
            "V_HEAD_DIM": 64,
        }
        code |= {"products": 2, "reads": [1], "writes": [0], **facts}
        return ENGINE.cost(generated("triton_tem_fused_flex_attention_1", [("in", BF16, 1 << 24)], code))

    masked = cost(SPARSE_KV_BLOCK_SIZE=128)
    assert (masked.guessed, masked.doubt) == (True, "flex_attention: block mask taken as dense")
    dense = cost(SPARSE_KV_BLOCK_SIZE=1 << 30)
    assert (dense.guessed, dense.doubt, dense.duration_ns) == (False, "", masked.duration_ns)
    causal = cost(SPARSE_KV_BLOCK_SIZE=128, ordered_mask=1)
    assert (causal.guessed, causal.doubt) == (False, "")


def test_products_of_unknown_size_are_guessed() -> None:
    tensors = [("in", BF16, 1 << 20), ("mut", BF16, 1 << 20)]
    code = {"reads": [1, 0], "writes": [0, 1], "products": 2}
    assert ENGINE.cost(generated("attention_kernel", tensors, code)).guessed


def test_a_kernel_that_sleeps_takes_its_cycles() -> None:
    cost = ENGINE.cost(generated("spin_kernel", [], {"reads": [], "writes": [], "cycles": 19_800_000}))
    assert (cost.duration_ns, cost.guessed) == (10_000_000, False)


def test_facts_of_other_kinds_are_refused() -> None:
    with pytest.raises(SignatureError, match="code"):
        Signature.from_definition({"kernel": "k", "code": [1]})
