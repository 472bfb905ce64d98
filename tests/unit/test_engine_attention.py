"""Attention of packed sequences, within windows, and of a single query, as a decoder has it."""

from __future__ import annotations

import pytest

from phantora_py.engines import AnalyticEngine
from phantora_py.engines.attention import Attention, find_attention
from phantora_py.engines.measured import flash_attention, tensor
from phantora_py.gpus import find_gpu
from phantora_py.signature import Scalar, Signature

GPU = find_gpu("H100-SXM-80GB")
ENGINE = AnalyticEngine(GPU)
PACKED, ENDS = tensor("bfloat16", 8192, 16, 64), tensor("int32", 3)


def attention(op: str, scalars: tuple[Scalar, ...], gradient: bool = False) -> Attention:
    """Of two packed sequences of 4,096 tokens."""
    tensors = (PACKED,) * (4 if gradient else 3)
    work = find_attention(Signature(f"aten::{op}", tensors=(*tensors, ENDS, ENDS), scalars=scalars))
    assert work is not None
    return work


def test_packed_sequences_are_the_same_work_for_each_library() -> None:
    flash = attention("_flash_attention_forward", (4096, 4096, 0.0, False, False, None, None, None))
    cudnn = attention("_cudnn_attention_forward", (None, 4096, 4096, True, 0.0, False, False, None))
    assert (flash.batch, flash.heads, flash.queries, flash.keys, flash.dim_qk) == (2, 16, 4096, 4096, 64)
    assert cudnn.flops == flash.flops


@pytest.mark.parametrize(
    ("is_causal", "left", "right", "causal", "window"),
    [
        (False, None, None, False, None),
        (False, -1, -1, False, None),
        (True, None, None, True, None),
        (False, -1, 0, True, None),
        (False, 512, 0, True, 513),
        (True, 512, 512, True, 513),
        (False, 256, 256, False, 513),
    ],
)
def test_windows_of_flash_attention(
    is_causal: bool, left: int | None, right: int | None, causal: bool, window: int | None
) -> None:
    forward = (4096, 4096, 0.0, is_causal, False, 0.125, left, right, None, None)
    backward = (4096, 4096, 0.0, is_causal, 0.125, left, right)
    for work in (
        attention("_flash_attention_forward", forward),
        attention("_flash_attention_backward", backward, gradient=True),
    ):
        assert (work.causal, work.window) == (causal, window)


def test_a_window_costs_the_pairs_that_it_leaves() -> None:
    """513 of 4,096 keys, a tile of 128 more for its two edges, and what each CTA begins with."""

    def cost_ns(left: int, right: int) -> int:
        scalars = (4096, 4096, 0.0, False, False, None, left, right)
        op = "aten::_flash_attention_forward"
        return ENGINE.cost(Signature(op, tensors=(PACKED,) * 3 + (ENDS, ENDS), scalars=scalars)).duration_ns

    assert 513 / 4096 < cost_ns(256, 256) / cost_ns(-1, -1) < 1.3 * (513 + 128) / 4096
    assert cost_ns(512, 0) == pytest.approx(cost_ns(256, 256), rel=0.15)


@pytest.mark.parametrize("reach", [1, 2, 5, 9])
def test_a_window_on_both_sides_is_cut_at_the_ends(reach: int) -> None:
    """Of six queries and keys."""
    seen = sum(abs(query - key) <= reach for query in range(6) for key in range(6))
    assert Attention("flash", False, 1, 1, 6, 6, 64, 64, False, "bfloat16", 2 * reach + 1).kept == seen


@pytest.mark.parametrize("cudnn", [False, True])
@pytest.mark.parametrize("heads", [8, 64])
def test_a_single_query_costs_the_keys_and_values(heads: int, cudnn: bool) -> None:
    """8.6 GB through a memory of 3.35 TB/s; heads of queries that share their keys read them once."""
    keys = (64, 8, 32768, 128)
    decode = flash_attention((64, heads, 1, 128), keys, 128, causal=False, backward=False, cudnn=cudnn)
    least_ns = 2 * 2 * 64 * 8 * 32768 * 128 / GPU.hbm_bytes_per_s * 1e9
    assert least_ns < ENGINE.cost(decode).duration_ns < 1.25 * least_ns


def test_the_keys_of_few_heads_are_split() -> None:
    """134 MB of eight heads: eight of 132 SMs would take twelve times as long."""
    decode = flash_attention((1, 8, 1, 128), (1, 8, 65536, 128), 128, causal=False, backward=False)
    least_ns = 2 * 2 * 8 * 65536 * 128 / GPU.hbm_bytes_per_s * 1e9
    assert ENGINE.cost(decode).duration_ns < 2 * least_ns
