"""Measured kernels as (signature, time) pairs: what the constants are fitted to and checked against.

The tables are read where they lie and are no part of the project: CSV files of a data folder (its README says what they
are), and the parquet tables of the installed package aiconfigurator-core.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from phantora_py.signature import Gemm, Signature, Tensor


@dataclass(frozen=True)
class Sample:
    """One measured kernel."""

    table: str
    """silicon, simumax, vidur, neusight, flash."""
    gpu: str
    op_class: str
    """Row of the error table: "gemm bf16", "attention forward flash", …"""
    signature: Signature
    measured_ns: float
    sustained: bool
    """Whether the measurement ran long enough for the power limit to bind."""

    @property
    def held_out(self) -> bool:
        """A fixed half of all shapes, for tables whose only device is also fitted to."""
        return hashlib.sha256(self.signature.key.encode()).digest()[0] % 2 == 0


class NoDataError(Exception):
    """A table that is not there; the message says where it was looked for."""


def tensor(dtype: str, *shape: int, role: str = "in") -> Tensor:
    """A contiguous tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return Tensor(role, dtype, shape, tuple(strides))


def product(m: int, n: int, k: int, dtype: str, batch: int = 1, *, accumulate_dtype: str = "") -> Signature:
    """A product as PyTorch issues it; with `accumulate_dtype`, one that adds to a D of that type."""
    if accumulate_dtype:
        operands = (tensor(accumulate_dtype, m, n, role="mut"), tensor(dtype, m, k), tensor(dtype, k, n))
        call = Gemm(n, m, k, batch, dtype, accumulate_dtype, False, True)
        return Signature(op="aten::addmm_", kernel="cublasGemmEx", tensors=operands, gemm=call)
    lead = (batch,) if batch > 1 else ()
    factors = (tensor(dtype, *lead, m, k), tensor(dtype, *lead, k, n))
    call = Gemm(n, m, k, batch, dtype, dtype, True, False)
    return Signature(op="aten::bmm" if batch > 1 else "aten::mm", kernel="cublasGemmEx", tensors=factors, gemm=call)


def flash_attention(
    query: Sequence[int], key: Sequence[int], value_dim: int, *, causal: bool, backward: bool, cudnn: bool = False
) -> Signature:
    """Fused attention over bf16 [batch, heads, sequence, dim]."""
    name = "cudnn" if cudnn else "flash"
    tensors = [tensor("bfloat16", *query), tensor("bfloat16", *key), tensor("bfloat16", *key[:3], value_dim)]
    if backward:
        tensors.insert(0, tensor("bfloat16", *query[:3], value_dim))
        return Signature(
            f"aten::_scaled_dot_product_{name}_attention_backward", tensors=tuple(tensors), scalars=(causal,)
        )
    flags: tuple[bool, ...] = (True, causal) if cudnn else (causal,)
    return Signature(f"aten::_scaled_dot_product_{name}_attention", tensors=tuple(tensors), scalars=flags)


# --- CSV tables ------------------------------------------------------------------------------------------------------


def _rows(data: Path, name: str) -> Iterator[dict[str, str]]:
    path = data / name
    if not path.is_file():
        raise NoDataError(f"no measured table {path}")
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


_SIMUMAX_GPUS = {"B200 SXM": "B200-SXM", "A100-PCIe-80GB": "A100-PCIE-80GB"}


def simumax(data: Path) -> Iterator[Sample]:
    """GEMM in the three layouts of training, grouped GEMM, SDPA; run back to back."""
    for row in _rows(data, "kernels_b200_a100pcie.csv"):
        gpu, time_ns = _SIMUMAX_GPUS[row["gpu"]], float(row["time_ms"]) * 1e6
        if row["op"] == "matmul":
            accumulate = (
                {"fp32": "float32", "bf16": "bfloat16"}[row["out_dtype"]] if row["accumulate"] == "True" else ""
            )
            shape = int(row["m"]), int(row["n"]), int(row["k"])
            op_class = f"gemm bf16 {row['layout']}{' += ' + row['out_dtype'] if accumulate else ''}"
            yield Sample(
                "simumax", gpu, op_class, product(*shape, "bfloat16", accumulate_dtype=accumulate), time_ns, True
            )
        elif row["op"] == "group_matmul":
            yield Sample("simumax", gpu, "gemm bf16 grouped", _grouped(row), time_ns, True)
        else:
            backward = row["op"] == "sdp_bwd"
            implementation = "cudnn" if gpu.startswith("B200") else "flash"
            op_class = f"attention {'backward' if backward else 'forward'} {implementation}"
            yield Sample("simumax", gpu, op_class, _simumax_attention(row, backward, gpu), time_ns, True)


def _grouped(row: dict[str, str]) -> Signature:
    """M rows a group; B[groups, k, n]."""
    groups, m, n, k = (int(row[name]) for name in ("groups", "m", "n", "k"))
    call = Gemm(n, m, k, groups, "bfloat16", "bfloat16", True, False)
    return Signature(op="aten::_grouped_mm", kernel="grouped", gemm=call)


def _simumax_attention(row: dict[str, str], backward: bool, gpu: str) -> Signature:
    batch, seq, heads, kv_heads = (int(float(row[name])) for name in ("batch", "seq", "heads", "kv_heads"))
    dim, value_dim = int(float(row["dqk"])), int(float(row["dv"]))
    query, key = (batch, heads, seq, dim), (batch, kv_heads, seq, dim)
    return flash_attention(query, key, value_dim, causal=True, backward=backward, cudnn=gpu.startswith("B200"))


_VIDUR_STEP = 10
"""One row of so many is used; neighbours are nearly equal."""
_VIDUR_GPUS = {"a100": "A100-SXM-80GB", "h100": "H100-SXM-80GB", "a40": "A40"}


def vidur(data: Path) -> Iterator[Sample]:
    """fp16 products of transformer layers, and residual additions. Medians of short runs, in whole microseconds."""
    seen: set[tuple[str, Signature]] = set()
    for number, row in enumerate(_rows(data, "kernels_a100_h100_a40_fp16.csv")):
        if number % _VIDUR_STEP:
            continue
        gpu = _VIDUR_GPUS[row["device"]]
        for op_class, signature, time_ms in _vidur_kernels(row):
            if time_ms and (gpu, signature) not in seen:
                seen.add((gpu, signature))
                yield Sample("vidur", gpu, op_class, signature, float(time_ms) * 1e6, False)


def _vidur_kernels(row: dict[str, str]) -> Iterator[tuple[str, Signature, str]]:
    tokens, ways = int(row["num_tokens"]), int(row["num_tensor_parallel_workers"])
    width, inner = int(row["n_embd"]), int(row["n_expanded_embd"]) // ways
    heads, kv_heads = int(row["n_head"]), int(row["n_kv_head"])
    head_dim = width // heads
    up = inner * (2 if row["use_gated_mlp"] == "True" else 1)
    qkv = (heads + 2 * kv_heads) // ways * head_dim
    products = (
        ("attn_pre_proj_ms", qkv, width),
        ("attn_post_proj_ms", width, heads // ways * head_dim),
        ("mlp_up_proj_ms", up, width),
        ("mlp_down_proj_ms", width, inner),
    )
    for column, n, k in products:
        yield "gemm fp16", product(tokens, n, k, "float16"), row[column]
    x = tensor("float16", tokens, width)
    yield "elementwise fp16", Signature("aten::add.Tensor", tensors=(x, x)), row["add_ms"]


_NEUSIGHT_GPUS = {
    "NVIDIA A100 80GB PCIe": "A100-PCIE-80GB",
    "NVIDIA A100-PCIE-40GB": "A100-PCIE-40GB",
    "NVIDIA H100 80GB HBM3": "H100-SXM-80GB",
}
_NEUSIGHT_UNARY = {"relu": "relu", "gelu": "gelu", "tanh": "tanh", "addu": "add", "mulu": "mul", "divu": "div"}


def neusight(data: Path) -> Iterator[Sample]:
    """fp32 operators of PyTorch 2.1, without TF32."""
    for row in _rows(data, "kernels_fp32_a100_h100.csv"):
        found = _neusight_kernel(row)
        if found:
            op_class, signature = found
            yield Sample(
                "neusight", _NEUSIGHT_GPUS[row["Device"]], op_class, signature, float(row["Latency"]) * 1e6, False
            )


def _neusight_kernel(row: dict[str, str]) -> tuple[str, Signature] | None:
    name = row["OPName"]
    if name in ("bmm", "linear"):
        m, n, k = (int(float(row[size])) for size in ("M", "N", "K"))
        return "gemm fp32", product(m, n, k, "float32", int(float(row["B"] or 1)))
    x = tensor("float32", int(float(row["B"])), int(float(row["H"])))
    if name == "ln":
        scale = tensor("float32", x.shape[1])
        return "norm fp32", Signature(
            "aten::native_layer_norm", tensors=(x, scale, scale), scalars=((x.shape[1],), 1e-5)
        )
    if name == "softmax":
        return "softmax fp32", Signature("aten::_softmax", tensors=(x,), scalars=(-1, False))
    if name in ("add", "mul", "div"):
        return "elementwise fp32", Signature(f"aten::{name}.Tensor", tensors=(x, x))
    if name in _NEUSIGHT_UNARY:
        return "elementwise fp32", Signature(f"aten::{_NEUSIGHT_UNARY[name]}", tensors=(x,))
    return None


def flash(data: Path) -> Iterator[Sample]:
    """FlashAttention-2 and cuDNN on H100, from the published charts (16,384 tokens, 2,048 wide).

    The backward pass is charted only together with the forward pass; its time is the difference.
    """
    forward_ns: dict[tuple[str, ...], float] = {}
    for row in _rows(data, "flash_attention.csv"):
        known = row["impl"] in ("FlashAttention-2", "cuDNN") and row["gpu"].startswith("H100 80GB") and row["tflops"]
        if known and row["mode"] == "fwd":
            forward_ns[_chart_key(row)] = _charted_ns(row, 1.0)
            yield _charted(row, forward_ns[_chart_key(row)], backward=False)
    for row in _rows(data, "flash_attention.csv"):
        if row["mode"] == "fwd+bwd" and row["tflops"] and _chart_key(row) in forward_ns:
            yield _charted(row, _charted_ns(row, 3.5) - forward_ns[_chart_key(row)], backward=True)


def _chart_key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("impl", "gpu", "causal", "headdim", "seqlen"))


def _chart_shape(row: dict[str, str]) -> tuple[int, int, int, int]:
    seq, dim = int(row["seqlen"]), int(row["headdim"])
    return int(row["batch"] or 16_384 // seq), int(row["heads"] or 2_048 // dim), seq, dim


def _charted_ns(row: dict[str, str], passes: float) -> float:
    """The charts count `passes` times the two products of the forward pass, half of that for a causal mask."""
    batch, heads, seq, dim = _chart_shape(row)
    counted = passes * 4 * batch * heads * seq * seq * dim * (0.5 if row["causal"] == "True" else 1.0)
    return counted / float(row["tflops"]) / 1e3


def _charted(row: dict[str, str], time_ns: float, *, backward: bool) -> Sample:
    shape, cudnn = _chart_shape(row), row["impl"] == "cuDNN"
    causal = row["causal"] == "True"
    op_class = f"attention {'backward' if backward else 'forward'} {'cudnn' if cudnn else 'flash'}"
    signature = flash_attention(shape, shape, shape[3], causal=causal, backward=backward, cudnn=cudnn)
    return Sample("flash", "H100-SXM-80GB", op_class, signature, time_ns, False)


# --- aiconfigurator-core ---------------------------------------------------------------------------------------------

SILICON_GPUS = {
    "a100_sxm": "A100-SXM-80GB",
    "h100_sxm": "H100-SXM-80GB",
    "h200_sxm": "H200-SXM",
    "b200_sxm": "B200-SXM",
    "gb200": "GB200",
    "l40s": "L40S",
}


def silicon_folder() -> Path:
    """Where the installed package keeps its tables. Raises NoDataError."""
    spec = find_spec("aiconfigurator_core")
    if spec is None or not spec.submodule_search_locations:
        raise NoDataError("the package aiconfigurator-core is not installed")
    return Path(spec.submodule_search_locations[0]) / "systems" / "data"


def silicon_gemm(system: str, dtype: str = "bfloat16", limit: int = 2_000) -> Iterator[Sample]:
    """Products of one system: the median over the frameworks that measured it, of at most `limit` shapes."""
    from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]  # heavy, and only needed here

    times: dict[tuple[int, int, int], list[float]] = {}
    for path in sorted((silicon_folder() / system / "gemm").glob("*/*/gemm_perf.parquet")):
        table = parquet.read_table(path, columns=["gemm_dtype", "m", "n", "k", "latency"])
        own: dict[tuple[int, int, int], list[float]] = {}
        for kind, m, n, k, latency in zip(
            *(table.column(name).to_pylist() for name in table.column_names), strict=True
        ):
            if kind == dtype:
                own.setdefault((int(m), int(n), int(k)), []).append(float(latency))
        for shape, values in own.items():
            times.setdefault(shape, []).append(_median(values))
    shapes = sorted(times, key=lambda shape: hashlib.sha256(repr(shape).encode()).digest())[:limit]
    name = {"bfloat16": "bfloat16", "fp8": "float8_e4m3fn"}[dtype]
    for m, n, k in shapes:
        op_class = (
            f"gemm {'bf16' if dtype == 'bfloat16' else dtype}, {'sides >= 256' if min(m, n, k) >= 256 else 'thin'}"
        )
        yield Sample(
            "silicon", SILICON_GPUS[system], op_class, product(m, n, k, name), _median(times[m, n, k]) * 1e6, False
        )


_SILICON_FLASH = {"a100_sxm": "flash_attention", "l40s": "vllm_flash_attn_fa2"}


def silicon_attention(system: str, limit: int = 1_000) -> Iterator[Sample]:
    """Causal FlashAttention-2 forward, on the systems whose frameworks used it."""
    from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

    columns = ["kernel_source", "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "attn_dtype"]
    columns += ["kv_cache_dtype", "latency"]
    shapes: dict[tuple[int, ...], float] = {}
    for path in sorted((silicon_folder() / system / "attention").glob("*/*/context_attention_perf.parquet")):
        table = parquet.read_table(path)
        windows = table.column("window_size").to_pylist() if "window_size" in table.column_names else [0] * len(table)
        rows = zip(windows, *(table.column(name).to_pylist() for name in columns), strict=True)
        for window, source, batch, seq, heads, kv_heads, dim, dtype, kv_dtype, latency in rows:
            plain = dtype == kv_dtype == "bfloat16" and not window and source == _SILICON_FLASH.get(system)
            if plain and seq >= 256:
                shapes[int(batch), int(heads), int(kv_heads), int(seq), int(dim)] = float(latency)
    chosen = sorted(shapes, key=lambda shape: hashlib.sha256(repr(shape).encode()).digest())[:limit]
    for batch, heads, kv_heads, seq, dim in chosen:
        query, key = (batch, heads, seq, dim), (batch, kv_heads, seq, dim)
        signature = flash_attention(query, key, dim, causal=True, backward=False)
        measured = shapes[batch, heads, kv_heads, seq, dim] * 1e6
        yield Sample("silicon", SILICON_GPUS[system], "attention forward flash", signature, measured, False)


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
