"""How much of a GPU kernels fill."""

from __future__ import annotations

import pytest

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
def test_share(definition: dict[str, object], expected: int) -> None:
    assert share(Signature.from_definition(definition), SMS) == expected
