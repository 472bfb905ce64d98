"""TorchTitan's trainer with weights that are drawn once. PyTorch draws a truncated normal again until every value lies
within the bounds, which never ends where no value is ever right: under bare shims (benchmarks/overhead.py)."""

import runpy
from typing import Any

from torch import Tensor, nn


def drawn_once(tensor: Tensor, mean: float = 0.0, std: float = 1.0, *_: Any, **__: Any) -> Tensor:
    return nn.init.normal_(tensor, mean, std)


nn.init.trunc_normal_ = drawn_once
runpy.run_module("torchtitan.train", run_name="__main__", alter_sys=True)
