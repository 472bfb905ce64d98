"""Tells the emulated device what Triton and Inductor know of the kernels that they load: see triton_source.py.

A kernel of which nothing is told runs as well; its cost is a guess, and all that its pointers reach becomes unknown.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from phantora_launcher.rank import module_watch

_DTYPES = {
    "i1": "bool",
    "u1": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5": "float8_e5m2",
    "fp8e5b16": "float8_e5m2fnuz",
}
"""Triton's names of what a pointer points to, and torch's."""

Describe = Callable[[int, bytes], int]

# Beside Inductor's objects, not on them: those are pickled into its cache.
_sources: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""By autotuner: the text of its kernel, helpers included."""
_autotuners: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By compiled configuration: who compiled it."""


def watch(hook: ctypes.CDLL) -> None:
    """From now on, kernels are described as they are loaded. Triton may never be imported."""
    describe = hook.phantora_describe_kernel
    describe.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    describe.restype = ctypes.c_int
    module_watch.watch("triton.compiler.compiler", after=lambda module: _watch_compiled(module, describe))
    module_watch.watch(
        "torch._inductor.runtime.triton_heuristics", after=lambda module: _watch_launchers(module, describe)
    )
    module_watch.watch("torch._inductor.async_compile", after=lambda module: _watch_sources(module, describe))


def _watch_compiled(compiler: ModuleType, describe: Describe) -> None:
    """Kernels that Triton itself loads, those of the script among them."""
    load = compiler.CompiledKernel._init_handles

    def load_and_describe(kernel: Any) -> Any:
        fresh = kernel.module is None
        result = load(kernel)
        function = getattr(kernel.src, "fn", None)
        if fresh and function is not None:
            text = _describe_function(function, kernel.src.signature, {})
            _tell(describe, kernel.function, text)
        return result

    compiler.CompiledKernel._init_handles = load_and_describe


def _watch_launchers(heuristics: ModuleType, describe: Describe) -> None:
    """Kernels that Inductor loads by itself: those that a worker process compiled, and those that tuning tries."""
    make = heuristics.CachingAutotuner._make_launcher
    compile_one = heuristics.CachingAutotuner._precompile_config
    result_class = heuristics.StaticTritonCompileResult
    make_static = result_class.make_launcher

    def make_and_describe(autotuner: Any, result: Any) -> Any:
        made = make(autotuner, result)
        _describe_result(autotuner, result, describe)
        return made

    def compile_and_note(autotuner: Any, config: Any) -> Any:
        result = compile_one(autotuner, config)
        _autotuners[result] = autotuner
        return result

    def make_static_and_describe(result: Any) -> Any:
        made = make_static(result)
        if result in _autotuners:
            _describe_result(_autotuners[result], result, describe)
        return made

    heuristics.CachingAutotuner._make_launcher = make_and_describe
    heuristics.CachingAutotuner._precompile_config = compile_and_note
    result_class.make_launcher = make_static_and_describe


def _watch_sources(async_compile: ModuleType, describe: Describe) -> None:
    """The whole source of a kernel, which comes to Inductor's process whoever compiles it or has compiled it."""
    from torch._inductor.codecache import CodeCacheFuture

    compile_triton = async_compile.AsyncCompile.triton

    def compile_and_describe(self: Any, kernel_name: str, source_code: str, *rest: Any, **options: Any) -> Any:
        kernel = compile_triton(self, kernel_name, source_code, *rest, **options)
        if not isinstance(kernel, CodeCacheFuture):
            return _with_source(kernel, source_code, describe)
        wait = kernel.result
        vars(kernel)["result"] = lambda *given, **named: _with_source(wait(*given, **named), source_code, describe)
        return kernel

    async_compile.AsyncCompile.triton = compile_and_describe


def _with_source(autotuner: Any, source: str, describe: Describe) -> Any:
    if hasattr(autotuner, "compile_results"):
        _sources[autotuner] = source
        for result in autotuner.compile_results:
            _describe_result(autotuner, result, describe)
    return autotuner


def _describe_result(autotuner: Any, result: Any, describe: Describe) -> None:
    """One compiled configuration of Inductor's kernel, if it is loaded."""
    handle = getattr(result.kernel, "function", None)
    signature = result.compile_meta.get("signature")
    if handle is None or not signature:
        return
    constants = {name: value for name, value in result.config.kwargs.items() if isinstance(value, int)}
    source = _sources.get(autotuner)
    if source is not None:
        text = _describe_source(source, autotuner.fn.__name__, signature, constants)
    else:
        text = _describe_function(autotuner.fn, signature, constants)
    _tell(describe, handle, text)


def _tell(describe: Describe, function: int, text: str | None) -> None:
    if text is not None:
        describe(function, text.encode())


def _describe_function(function: Any, signature: dict[Any, Any], constants: dict[str, int]) -> str | None:
    """For a JITFunction, whose helpers are found among its globals."""
    variables = getattr(getattr(function, "fn", None), "__globals__", None) or {}

    def find_helper(name: str) -> str | None:
        source = getattr(variables.get(name), "src", None)
        return source if isinstance(source, str) else None

    name = getattr(function, "__name__", "")
    source = getattr(function, "src", None)
    return _describe_source(source, name, signature, constants, find_helper) if isinstance(source, str) else None


def _describe_source(
    source: str,
    name: str,
    signature: dict[Any, Any],
    constants: dict[str, int],
    find_helper: Callable[[str], str | None] | None = None,
) -> str | None:
    """The text that phantora_describe_kernel takes; None if the source tells too little."""
    from phantora_launcher.rank.triton_source import read_kernel

    kernel = read_kernel(source, name, find_helper)
    types = _parameter_types(signature)
    if kernel is None or types is None:
        return None
    lines = []
    for argument, kind in types.items():
        use = kernel.uses.get(argument)
        reads, writes = (use.reads, use.writes) if use is not None else (0, 0)
        lines.append(f"argument\t{argument}\t{reads}\t{writes}\t{_DTYPES[kind[1:]] if kind.startswith('*') else ''}")
    lines.append(f"number\tproducts\t{kernel.products}")
    if kernel.mask is not None:
        lines.append("number\tordered_mask\t1")
        if kernel.mask.window is not None:
            lines.append(f"number\tmask_window\t{kernel.mask.window}")
    for key, value in sorted({**kernel.constants, **constants}.items()):
        value = constants.get(value, value) if isinstance(value, str) else value
        if isinstance(value, int):
            lines.append(f"number\t{key}\t{value}")
        elif not types.get(value, "*").startswith("*"):
            lines.append(f"scalar\t{key}\t{value}")
    return "\n".join(lines)


def _parameter_types(signature: dict[Any, Any]) -> dict[str, str] | None:
    """What the compiled kernel takes, in order; None for what is not told here: tuples, tensor descriptors."""
    types = {}
    for name, kind in signature.items():
        if kind == "constexpr":
            continue
        if not isinstance(name, str) or not isinstance(kind, str):
            return None
        if kind.startswith("*"):
            kind = "*" + kind[1:].removeprefix("k:").removeprefix("k")
            if kind[1:] not in _DTYPES:
                return None
        elif kind.startswith(("tensordesc", "nvTmaDesc")):
            return None
        types[name] = kind
    return types
