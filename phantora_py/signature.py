"""What a cost engine sees of a launch: the op, its arguments' shapes, and what the library call said.

Signatures come from the ranks over a socket, so every size and type is checked here; after that they are trusted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | tuple["Scalar", ...] | None

DTYPE_BYTES = {
    "bool": 1,
    "QInt8": 1,
    "QUInt8": 1,
    "QInt32": 4,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "complex32": 4,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "complex64": 8,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "complex128": 16,
}
"""Bytes of an element, by the dtype's name without "torch."."""

_FUSED = re.compile(r"triton_[a-z]+_fused_(.+?)(?:_[0-9]+)?")

COPY_KINDS = ("h2d", "d2h", "d2d", "memset", "p2p", "h2h")
ROLES = ("in", "mut")

MAX_DIMENSIONS = 64
MAX_TENSORS = 65_536
MAX_SCALARS = 4_096
MAX_NAME = 65_536
MAX_SIZE = 2**62
"""Sizes beyond this cannot be addressed; they would only make the arithmetic meaningless."""


class SignatureError(ValueError):
    """A definition that breaks docs/protocol.md; says which key and what it held."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor argument, as it was when the op began."""

    role: str
    """"in" or "mut" (the op's schema says that it writes it)."""
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.element_bytes

    @property
    def stored_bytes(self) -> int:
        """Bytes of distinct elements: an expanded dimension (stride 0) is stored once."""
        stored = math.prod(n for n, stride in zip(self.shape, self.strides, strict=True) if stride or n == 0)
        return stored * self.element_bytes

    @property
    def is_contiguous(self) -> bool:
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    @property
    def is_dense(self) -> bool:
        """Whether its elements fill a stretch of memory in some order (a transposed tensor does)."""
        dims = sorted((stride, size) for size, stride in zip(self.shape, self.strides, strict=True) if size != 1)
        expected = 1
        for stride, size in dims:
            if stride != expected:
                return False
            expected *= size
        return True


@dataclass(frozen=True, slots=True)
class Gemm:
    """A BLAS call: D[m, n] = op(A)[m, k] · op(B)[k, n], `batch` times, in BLAS's column-major words."""

    m: int
    n: int
    k: int
    batch: int
    dtype_a: str
    dtype_d: str
    transa: bool
    transb: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """A memory copy or set."""

    kind: str
    bytes: int
    pageable: bool = False
    """Its host side is neither pinned nor registered."""


Dim3: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Signature:
    """One kind of launch. Hashable, comparable; equal signatures have equal costs."""

    op: str = ""
    """Dispatched op with overload ("aten::add.Tensor"); "" if none was open."""
    kernel: str = ""
    """The kernel's symbol, or the library call ("cublasGemmEx")."""
    tensors: tuple[Tensor, ...] = ()
    scalars: tuple[Scalar, ...] = ()
    gemm: Gemm | None = None
    copy: Copy | None = None
    grid: Dim3 | None = None
    block: Dim3 | None = None
    node: str = ""
    """"host_func" for a host function in stream order, else ""."""
    code: tuple[tuple[str, Scalar], ...] = ()
    """Facts that the compiler of a generated kernel told, by name."""

    @classmethod
    def from_definition(cls, definition: Mapping[str, object]) -> Signature:
        """The signature of a DEFINE map with ``t == "kernel"``. Raises SignatureError."""
        return cls(
            op=_text(definition, "op"),
            kernel=_text(definition, "kernel"),
            tensors=tuple(_tensor(item) for item in _list(definition, "tensors", MAX_TENSORS)),
            scalars=tuple(_scalar(item, 0) for item in _list(definition, "scalars", MAX_SCALARS)),
            gemm=_gemm(definition),
            copy=_copy(definition),
            grid=_dim3(definition, "grid"),
            block=_dim3(definition, "block"),
            node=_text(definition, "node"),
            code=_code(definition),
        )

    @property
    def base_op(self) -> str:
        """The op's name without namespace and overload: "aten::add_.Tensor" → "add_"."""
        return self.op.rpartition("::")[2].partition(".")[0]

    @property
    def fused(self) -> str:
        """Of a kernel of Inductor's, the ops that it was fused from, as its name lists them: "add_gelu"; else ""."""
        listed = _FUSED.fullmatch(self.kernel) if self.code else None
        return listed.group(1) if listed else ""

    @property
    def read_bytes(self) -> int:
        """Bytes of the tensors that are only read."""
        return sum(tensor.stored_bytes for tensor in self.tensors if tensor.role == "in")

    @property
    def mutated_bytes(self) -> int:
        """Bytes of the tensors that the op's schema says it writes."""
        return sum(tensor.stored_bytes for tensor in self.tensors if tensor.role == "mut")

    @property
    def key(self) -> str:
        """Canonical text: equal for equal signatures, on every machine; the key of a profile cache."""
        parts = [self.op, self.kernel]
        parts += [f"{t.role}:{t.dtype}:{_dims(t.shape)}:{_dims(t.strides)}" for t in self.tensors]
        parts += [f"={scalar!r}" for scalar in self.scalars]
        if g := self.gemm:
            parts.append(f"gemm:{g.m},{g.n},{g.k},{g.batch},{g.dtype_a},{g.dtype_d},{g.transa:d},{g.transb:d}")
        if self.copy:
            parts.append(f"copy:{self.copy.kind},{self.copy.bytes}" + ",pageable" * self.copy.pageable)
        if self.grid or self.block:
            parts.append(f"launch:{_dims(self.grid or ())}:{_dims(self.block or ())}")
        parts.append(self.node)
        if self.code:
            parts.append("code:" + ",".join(f"{name}={value!r}" for name, value in self.code))
        return "|".join(parts)


def _dims(values: Sequence[int]) -> str:
    return "x".join(map(str, values))


def _fail(key: str, value: object, expected: str) -> SignatureError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return SignatureError(
        f"kernel definition: {key} is {shown}, expected {expected}\n  hint: docs/protocol.md, Definitions; "
        "do the rank's shims and the simulator come from the same version?"
    )


def _text(definition: Mapping[str, object], key: str) -> str:
    value = definition.get(key, "")
    if isinstance(value, str) and len(value) <= MAX_NAME:
        return value
    raise _fail(key, value, f"a string of at most {MAX_NAME} characters")


def _list(definition: Mapping[str, object], key: str, limit: int) -> Sequence[object]:
    return _sequence(definition.get(key, ()), key, f"a list of at most {limit} items", limit)


def _sequence(value: object, key: str, expected: str, limit: int, exact: int | None = None) -> Sequence[object]:
    fits = isinstance(value, (list, tuple)) and len(value) <= limit and exact in (None, len(value))
    if not fits:
        raise _fail(key, value, expected)
    assert isinstance(value, (list, tuple))
    return value


def _integer(value: object, key: str, low: int, high: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise _fail(key, value, f"an integer from {low} to {high}")


def _dtype(value: object, key: str) -> str:
    if isinstance(value, str) and value in DTYPE_BYTES:
        return value
    raise _fail(key, value, "a dtype such as float32, bfloat16 or int64")


def _tensor(item: object) -> Tensor:
    role, dtype, shape, strides = _sequence(item, "tensors[]", "[role, dtype, shape, strides]", 4, 4)
    if role not in ROLES:
        raise _fail("tensors[].role", role, " or ".join(ROLES))
    assert isinstance(role, str)
    sizes = _sequence(shape, "tensors[].shape", f"at most {MAX_DIMENSIONS} sizes", MAX_DIMENSIONS)
    steps = _sequence(strides, "tensors[].strides", "one stride for each size", MAX_DIMENSIONS, len(sizes))
    tensor = Tensor(
        role,
        _dtype(dtype, "tensors[].dtype"),
        tuple(_integer(size, "tensors[].shape[]", 0, MAX_SIZE) for size in sizes),
        tuple(_integer(step, "tensors[].strides[]", -MAX_SIZE, MAX_SIZE) for step in steps),
    )
    if tensor.numel > MAX_SIZE:
        raise _fail("tensors[].shape", shape, f"at most {MAX_SIZE} elements")
    return tensor


def _scalar(value: object, depth: int) -> Scalar:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str) and len(value) <= MAX_NAME:
        return value
    if isinstance(value, (list, tuple)) and depth < 4 and len(value) <= MAX_SCALARS:
        return tuple(_scalar(item, depth + 1) for item in value)
    raise _fail("scalars[]", value, "a bool, int, float, string, None or short list of these")


def _code(definition: Mapping[str, object]) -> tuple[tuple[str, Scalar], ...]:
    value = definition.get("code", {})
    if not isinstance(value, Mapping) or len(value) > MAX_SCALARS:
        raise _fail("code", value, f"a map of at most {MAX_SCALARS} facts")
    facts = [(_text({"code": name}, "code"), _scalar(fact, 0)) for name, fact in value.items()]
    return tuple(sorted(facts, key=lambda fact: fact[0]))


def _gemm(definition: Mapping[str, object]) -> Gemm | None:
    value = definition.get("gemm")
    if value is None:
        return None
    shape = "[m, n, k, batch, dtype_a, dtype_d, transa, transb]"
    m, n, k, batch, dtype_a, dtype_d, transa, transb = _sequence(value, "gemm", shape, 8, 8)
    sizes = [_integer(size, "gemm[]", 0, MAX_SIZE) for size in (m, n, k, batch)]
    if transa not in (0, 1) or transb not in (0, 1):
        raise _fail("gemm[6:8]", [transa, transb], "two booleans")
    types = (_dtype(dtype_a, "gemm[4]"), _dtype(dtype_d, "gemm[5]"))
    return Gemm(sizes[0], sizes[1], sizes[2], sizes[3], types[0], types[1], bool(transa), bool(transb))


def _copy(definition: Mapping[str, object]) -> Copy | None:
    value = definition.get("copy")
    if value is None:
        return None
    expected = '[kind, bytes] or [kind, bytes, "pageable"]'
    items = _sequence(value, "copy", expected, 3)
    if len(items) < 2 or list(items[2:]) not in ([], ["pageable"]):
        raise _fail("copy", value, expected)
    kind, size = items[:2]
    if kind not in COPY_KINDS:
        raise _fail("copy[0]", kind, " or ".join(COPY_KINDS))
    assert isinstance(kind, str)
    return Copy(kind, _integer(size, "copy[1]", 0, MAX_SIZE), len(items) == 3)


def _dim3(definition: Mapping[str, object], key: str) -> Dim3 | None:
    value = definition.get(key)
    if value is None:
        return None
    x, y, z = (_integer(size, f"{key}[]", 0, 2**32) for size in _sequence(value, key, "[x, y, z]", 3, 3))
    return (x, y, z)
