"""The benchmarks by which Triton and Inductor choose between kernels: every run takes the same virtual time, so one is
enough."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from phantora_launcher.rank import module_watch

_ONE_OF_TRITON = {"warmup": 0, "rep": 0}
"""Milliseconds that it warms up and repeats for; it does each once at least."""
_ONE_OF_INDUCTOR = {"estimation_iters": 1, "memory_warmup_iters": 1, "benchmark_iters": 1}


def watch() -> None:
    """Triton and Inductor may never be imported."""
    module_watch.watch("triton.testing", after=_shorten_triton)
    module_watch.watch("torch._inductor.runtime.benchmarking", after=_shorten_inductor)


def _shorten_triton(testing: ModuleType) -> None:
    vars(testing)["do_bench"] = _with(testing.do_bench, _ONE_OF_TRITON)


def _shorten_inductor(benchmarking: ModuleType) -> None:
    benchmarker = benchmarking.InductorBenchmarker
    benchmarker.benchmark_gpu = _with(benchmarker.benchmark_gpu, _ONE_OF_INDUCTOR)


def _with(benchmark: Callable[..., Any], settings: dict[str, int]) -> Callable[..., Any]:
    """The same, with these arguments whatever it is called with."""
    import functools
    import inspect

    signature = inspect.signature(benchmark)

    @functools.wraps(benchmark)
    def run_once(*arguments: Any, **options: Any) -> Any:
        call = signature.bind(*arguments, **options)
        call.arguments.update({name: value for name, value in settings.items() if name in signature.parameters})
        return benchmark(*call.args, **call.kwargs)

    return run_once
