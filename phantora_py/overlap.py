"""How much kernels and communication that run on one GPU at the same time slow each other down.

NCCL's kernels take SMs, memory bandwidth and power from the kernels beside them. The factors hold on the overlapped
part only; the core applies them (docs/exactness.md, "Overlap").
"""

from __future__ import annotations

from typing import Final, NamedTuple

from phantora_py.gpus import Gpu


class OverlapSlowdown(NamedTuple):
    compute: float
    """A kernel takes so many times as long while its GPU carries communication."""
    communication: float
    """Communication takes so many times as long while a GPU that carries it runs a kernel."""


# A product of 8192 cubed beside an all-gather of 64 MiB a rank on 8 H100s (pytorch/pytorch pull request 172714):
# 2.96 ms one after the other, 2.02 ms together, 1.77 ms together when copy engines carry the all-gather. So the
# all-gather alone takes 2.96 - 1.77 ms, and the product loses 2.02 - 1.77 ms meanwhile.
_ALONE_MS, _LOST_MS = 2.96 - 1.77, 2.02 - 1.77
_HOPPER: Final = OverlapSlowdown(_ALONE_MS / (_ALONE_MS - _LOST_MS), 1.0)  # 1.27

# Mean over GPT and Llama models on A100, H100, MI210 and MI250 ("Characterizing Compute-Communication Overlap in
# GPU-Accelerated Distributed Deep Learning", arXiv 2507.03114, abstract); at most 1.40.
_OTHERS: Final = OverlapSlowdown(1.189, 1.0)

_BY_ARCHITECTURE: Final = {"hopper": _HOPPER}


def overlap_slowdown(gpu: Gpu) -> OverlapSlowdown:
    """The default of a GPU model; cluster files may say otherwise."""
    return _BY_ARCHITECTURE.get(gpu.architecture, _OTHERS)
