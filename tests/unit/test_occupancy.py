"""How much of a GPU kernels fill."""

from __future__ import annotations

import pytest

from phantora_py.engines import AnalyticEngine
from phantora_py.engines.measured import product, tensor
from phantora_py.gpus import find_gpu
from phantora_py.occupancy import WHOLE, share
from phantora_py.signature import Signature

SMS = 132


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1]}, 8),  # 1024 / 132
        ({"kernel": "k", "grid": [11, 3, 2], "block": [32, 1, 1]}, WHOLE // 2),
        ({"kernel": "k", "grid": [132, 1, 1], "block": [32, 1, 1]}, WHOLE),
        ({"kernel": "k", "grid": [1 << 20, 1, 1], "block": [32, 1, 1]}, WHOLE),
        ({"kernel": "cublasGemmEx", "gemm": [8192, 8192, 64, 1, "bfloat16", "bfloat16", False, False]}, WHOLE),
        ({"kernel": "cublasGemmEx", "gemm": [256, 128, 65536, 33, "bfloat16", "bfloat16", False, False]}, WHOLE // 2),
        ({"kernel": "cudnnBackendExecute"}, WHOLE),
        ({"kernel": "memcpy", "copy": ["d2d", 1 << 30]}, WHOLE),
        ({"kernel": "memcpy", "copy": ["h2d", 1 << 30]}, 0),
        ({"kernel": "memcpy", "copy": ["p2p", 1 << 30]}, 0),
        ({"kernel": "memset", "copy": ["memset", 4]}, 1),
        ({"node": "host_func"}, 0),
    ],
)
def test_share_by_blocks(definition: dict[str, object], expected: int) -> None:
    assert share(Signature.from_definition(definition), 0, 1000, SMS) == expected


@pytest.mark.parametrize(("busy_ns", "expected"), [(0, 8), (250, WHOLE // 4), (1000, WHOLE)])
def test_share_of_one_block_that_is_charged_at_the_rate_of_all(busy_ns: int, expected: int) -> None:
    one = Signature.from_definition({"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1]})
    assert share(one, busy_ns, 1000, SMS) == expected


def test_products_side_by_side_get_no_more_than_the_gpu_has() -> None:
    """Of bytes, where few tiles read much, and of operations, where an op's first launch only prepares its product."""
    gpu = find_gpu("H100-SXM-80GB")
    engine = AnalyticEngine(gpu)
    flat = product(16, 8192, 8192, "bfloat16")
    groups = (tensor("bfloat16", 8192, 4096), tensor("bfloat16", 8, 4096, 4096), tensor("int32", 8))
    grouped = Signature("aten::_grouped_mm", kernel="prepare", tensors=groups, grid=(1, 1, 1), block=(8, 1, 1))
    for signature, work, limit in (
        (flat, 2 * 8192 * 8192, gpu.hbm_bytes_per_s),
        (grouped, 2 * 8192 * 4096 * 4096, engine.sustained_flops("bfloat16")),
    ):
        cost = engine.cost(signature)
        together = WHOLE / share(signature, cost.busy_ns, cost.duration_ns, gpu.sm_count)
        assert together * work / cost.duration_ns * 1e9 <= 1.001 * limit
