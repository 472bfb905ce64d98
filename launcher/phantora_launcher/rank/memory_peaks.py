"""Peak memory over the whole run, though the script may reset PyTorch's peaks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_RESETS = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")


def keep_before_resets(hook: ctypes.CDLL) -> None:
    """Has the ATen hook take PyTorch's peaks over whenever they are about to be reset. torch must be imported."""
    import torch._C

    keep = hook.phantora_aten_keep_memory_peaks
    keep.restype = None
    for name in _RESETS:
        reset = getattr(torch._C, name, None)
        if reset is not None:
            setattr(torch._C, name, _keeping(keep, reset))


def _keeping(keep: Callable[[], None], reset: Callable[..., Any]) -> Callable[..., Any]:
    def keep_and_reset(*arguments: Any) -> Any:
        keep()
        return reset(*arguments)

    return keep_and_reset
