"""How much of a GPU a kernel fills while it runs, so that kernels on several streams can share it.

A kernel with a block for each SM is taken to fill it, whatever bounds it: what others get of the tensor cores or of the
memory, it lacks. So does one of fewer blocks, or of which only an op's first launch is known, for as long as it is
charged at the rate of the whole GPU: side by side, kernels never get more bytes or operations a second than one alone.
"""

from __future__ import annotations

from math import ceil, prod

from phantora_py.signature import Signature

WHOLE = 1024
_TILE = 128
"""Rows and columns of a product that a block computes."""
_BLOCK_BYTES = 16 << 10
"""That a block of a copy or set moves."""


def share(signature: Signature, busy_ns: int, duration_ns: int, sms: int) -> int:
    """In 1/1024 of a GPU with `sms` SMs; 0 for what runs elsewhere (copy engines, the host).

    `busy_ns` of its duration the kernel is charged at the whole GPU's rate.
    """
    if signature.node == "host_func" or (signature.copy is not None and signature.copy.kind not in ("d2d", "memset")):
        return 0
    return max(_of_blocks(signature, sms), ceil(WHOLE * busy_ns / max(duration_ns, 1)))


def _of_blocks(signature: Signature, sms: int) -> int:
    if signature.copy is not None:
        return _part(signature.copy.bytes / _BLOCK_BYTES, sms)
    if signature.grid is not None:
        return _part(prod(signature.grid), sms)
    if (gemm := signature.gemm) is not None:
        return _part(ceil(gemm.m / _TILE) * ceil(gemm.n / _TILE) * gemm.batch, sms)
    return WHOLE


def _part(blocks: float, sms: int) -> int:
    return max(1, min(WHOLE, round(WHOLE * blocks / sms)))
