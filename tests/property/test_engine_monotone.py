"""More work never costs less, and equal work costs the same every time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from phantora_py.engines import AnalyticEngine
from phantora_py.engines.measured import flash_attention, product, tensor
from phantora_py.gpus import find_gpu, gpu_names
from phantora_py.signature import Copy, Signature, Tensor

ENGINES = {name: AnalyticEngine(find_gpu(name)) for name in gpu_names()}
gpus = st.sampled_from(sorted(ENGINES))
sizes = st.integers(1, 20_000)
dtypes = st.sampled_from(["bfloat16", "float16", "float32", "float8_e4m3fn"])


def cost(gpu: str, signature: Signature) -> int:
    duration_ns = ENGINES[gpu].cost(signature).duration_ns
    assert duration_ns >= ENGINES[gpu].floor_ns
    assert duration_ns == AnalyticEngine(find_gpu(gpu)).cost(signature).duration_ns
    return duration_ns


@given(gpus, sizes, sizes, sizes, dtypes, st.integers(0, 2))
def test_products_grow_with_each_side(gpu: str, m: int, n: int, k: int, dtype: str, side: int) -> None:
    doubled = [m, n, k]
    doubled[side] *= 2
    assert cost(gpu, product(m, n, k, dtype)) <= cost(gpu, product(*doubled, dtype))


@given(
    gpus, st.integers(1, 8), st.integers(1, 64), st.integers(1, 8192), st.sampled_from([64, 128, 256]), st.booleans()
)
def test_attention_grows_with_length_and_heads(
    gpu: str, batch: int, heads: int, seq: int, dim: int, backward: bool
) -> None:
    def attend(heads: int, seq: int) -> int:
        shape = (batch, heads, seq, dim)
        return cost(gpu, flash_attention(shape, shape, dim, causal=True, backward=backward))

    assert attend(heads, seq) <= attend(heads, 2 * seq)
    assert attend(heads, seq) <= attend(2 * heads, seq)


NAMES = ["add.Tensor", "silu", "sum", "_softmax", "native_layer_norm", "sort", "cat", "zero_", "normal_", "embedding"]
names = st.sampled_from([*NAMES, "op_of_tomorrow"])


@given(gpus, names, sizes, sizes, dtypes)
def test_bytes_grow_with_rows(gpu: str, name: str, rows: int, columns: int, dtype: str) -> None:
    def moved(rows: int) -> int:
        x = tensor(dtype, rows, columns)
        written = Tensor("mut", x.dtype, x.shape, x.strides)
        operands = (written,) if name.endswith("_") else (x, tensor("int64", rows)) if name == "embedding" else (x, x)
        return cost(gpu, Signature(f"aten::{name}", tensors=operands, scalars=(-1, False)))

    assert moved(rows) <= moved(2 * rows)


@given(gpus, st.sampled_from(["h2d", "d2h", "d2d", "memset", "p2p", "h2h"]), st.integers(0, 2**36))
def test_copies_grow_with_bytes(gpu: str, kind: str, size: int) -> None:
    assert cost(gpu, Signature(copy=Copy(kind, size))) <= cost(gpu, Signature(copy=Copy(kind, 2 * size + 1)))
