"""What the host spends on a call: the constants behind `host.*` of machine.conf.

A rank's clock moves by these between the calls that it makes, under the policy `modelled`. They are for a current
server CPU (Xeon or EPYC at 3 to 3.7 GHz) that runs one process a GPU.

Where they come from: PyTorch's eager overhead of a small op, from Python to the launched kernel and back, is 5 to
10 µs with autograd on; a bare cudaLaunchKernel takes 2.5 to 5 µs. An op as Python calls it dispatches two to three, of
which one launches; it is counted once, at about 2 µs for each of them. The measured check is in docs/accuracy.md:
iterations of tiny models, where the host is all there is to wait for (Megatron-LM's CI, golden values of DGX A100 and
H100).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HostModel:
    """Nanoseconds of host time a call."""

    dispatch_ns: int = 5_000
    """An ATen op as Python or autograd calls it, with all that it dispatches: dispatcher, bookkeeping, Python."""
    launch_ns: int = 3_500
    """A kernel launch or library call, to its return."""
    call_ns: int = 500
    """Any other CUDA call: event records, queries, stream switches, cached allocations of the driver."""
    sync_ns: int = 5_000
    """From the end of what a blocking wait was for until the thread runs on."""

    def __post_init__(self) -> None:
        for name in ("dispatch_ns", "launch_ns", "call_ns", "sync_ns"):
            value = getattr(self, name)
            if value < 0:
                raise ValueError(f"host.{name} is {value}\n  hint: nanoseconds, 0 or more")


DEFAULT_HOST = HostModel()
