"""Matrix products: what a signature multiplies, and how long a tiled kernel takes for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phantora_py.engines.constants import CONVOLUTION_RATE, FP8_EFFICIENCY, L2_BYTES_A_SM, GemmConstants
from phantora_py.gpus import Gpu
from phantora_py.signature import DTYPE_BYTES, Signature, Tensor

TILES = (
    (256, 256),
    (256, 128),
    (128, 256),
    (192, 128),
    (128, 192),
    (128, 128),
    (128, 64),
    (64, 128),
    (64, 64),
    (64, 32),
    (32, 64),
)
SPLITS = (1, 2, 4, 8, 16)
_K_STEP = 64
_FEW = 8


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` products D[m, n] = A[m, k] · B[k, n]."""

    m: int
    n: int
    k: int
    batch: int
    dtype: str
    """Of the inputs, which sets the rate; "tf32" for float32 and "complex-tf32" for complex64 multiplied in TF32."""
    in_bytes: int
    """Bytes of an element of A and of B."""
    out_bytes: int
    """Bytes of an element of D."""
    reads_d: bool = False
    """D is also read: accumulation into it, or a matrix added."""

    @property
    def flops(self) -> int:
        """Of real numbers."""
        return 2 * self.m * self.n * self.k * self.batch * self.multiplies

    @property
    def multiplies(self) -> int:
        """Real multiplications and additions for one of a product. BLAS does a complex one with three only if asked."""
        return 4 if self.dtype.startswith("complex") else 1

    @property
    def is_narrow(self) -> bool:
        """Whether a factor is a vector (GEMV, DOT) or a few of them: its kernels have no tiles, but read the matrix as
        it comes."""
        return min(self.m, self.n) <= (_FEW if self.batch == 1 else 1)

    @property
    def traffic_bytes(self) -> int:
        """Bytes that must move at least."""
        read = (self.m * self.k + self.k * self.n) * self.in_bytes
        return self.batch * (read + self.m * self.n * self.out_bytes * (2 if self.reads_d else 1))


def compute_ns(product: Product, gpu: Gpu, constants: GemmConstants) -> float:
    """Time of the tensor cores under the best of the usual tiles, at the clock of a short burst.

    A CTA that owns a tile of tm by tn does 2·tm·tn·k operations at its SM's rate, which grows with the tile's
    intensity tm·tn / (tm + tn), plus a fixed prologue and epilogue. CTAs fill the SMs in waves. Splitting k over
    several CTAs makes more of them and costs a second pass.
    """
    return min(_tiled_ns(product, tile, gpu, constants) for tile in TILES)


def _tiled_ns(product: Product, tile: tuple[int, int], gpu: Gpu, constants: GemmConstants) -> float:
    """With the best split of k."""
    rate = gpu.tensor_flops(product.dtype) * constants.efficiency / gpu.sm_count / 1e9
    if product.dtype.startswith("float8"):
        rate *= FP8_EFFICIENCY
    tile_m, tile_n = tile
    tiles = math.ceil(product.m / tile_m) * math.ceil(product.n / tile_n) * product.batch
    intensity = tile_m * tile_n / (tile_m + tile_n)
    per_k_ns = 2 * tile_m * tile_n * product.multiplies / (rate * intensity / (intensity + constants.tile_half))
    best = math.inf
    for split in (*SPLITS, _filling_split(tiles, gpu.sm_count)):
        depth = math.ceil(product.k / split / _K_STEP) * _K_STEP
        cta_ns = depth * per_k_ns + constants.cta_overhead_ns
        waves_ns = _waves(tiles * split, gpu.sm_count, constants) * cta_ns
        best = min(best, waves_ns + _reduction_ns(product, split, gpu, constants))
        if depth <= _K_STEP:
            break
    return best


def _waves(ctas: int, sms: int, constants: GemmConstants) -> float:
    waves = ctas / sms
    return constants.quantisation * math.ceil(waves) + (1 - constants.quantisation) * max(waves, 1.0)


def _filling_split(tiles: int, sms: int) -> int:
    """A few tiles are as deep as it takes for the whole GPU to work on them."""
    return max(math.ceil(sms / max(tiles, 1)), SPLITS[-1])


def _reduction_ns(product: Product, split: int, gpu: Gpu, constants: GemmConstants) -> float:
    """Writing and adding the partial sums of a split k."""
    if split == 1:
        return 0.0
    partial_bytes = product.m * product.n * product.batch * 4 * split
    return partial_bytes / (gpu.hbm_bytes_per_s * constants.memory_efficiency) * 1e9 + constants.cta_overhead_ns


def memory_ns(moved_bytes: float, gpu: Gpu, constants: GemmConstants) -> float:
    """To move the bytes that must move."""
    return moved_bytes / (gpu.hbm_bytes_per_s * constants.memory_efficiency) * 1e9


def burst_ns(product: Product, gpu: Gpu, constants: GemmConstants) -> float:
    """Time of one product on a cool GPU."""
    compute = compute_ns(product, gpu, constants)
    return overlapped_ns(constants, compute, memory_ns(product.traffic_bytes, gpu, constants))


def implicit_ns(product: Product, moved_bytes: float, gpu: Gpu, constants: GemmConstants) -> float:
    """Of a convolution, where one factor is all that the windows at each position show. Tiles get both factors
    from the L2 cache: one for each column of tiles, the other for each row. Memory sees `moved_bytes`."""
    memory = memory_ns(moved_bytes, gpu, constants)
    rate = gpu.sm_count * L2_BYTES_A_SM / 1e9

    def reading_ns(tile_m: int, tile_n: int) -> float:
        read = math.ceil(product.n / tile_n) * product.m + math.ceil(product.m / tile_m) * product.n
        return read * product.k * product.batch * product.in_bytes / rate

    def time_ns(tile: tuple[int, int]) -> float:
        compute = _tiled_ns(product, tile, gpu, constants) / CONVOLUTION_RATE
        return overlapped_ns(constants, compute, reading_ns(*tile), memory)

    return min(time_ns(tile) for tile in TILES)


def overlapped_ns(constants: GemmConstants, *parts: float) -> float:
    """The longest part, behind which the others are not hidden wholly."""
    return constants.floor_ns + max(parts) + constants.overlap_loss * (sum(parts) - max(parts))


# --- which product a signature is ------------------------------------------------------------------------------------


def find_product(signature: Signature) -> Product | None:
    """The product of a BLAS call, or of an op that is one; None for anything else.

    The library call knows the true sizes. The op adds what the call does not say: how many groups, whether D is read.
    """
    if signature.gemm is not None:
        return _from_call(signature)
    rule = _OPS.get(signature.base_op)
    return rule(signature) if rule else None


_READS_D = frozenset(("addmm", "addmm_", "baddbmm", "baddbmm_", "addbmm", "addbmm_", "_addmm_activation", "addmv"))
_TF32 = "/tf32"
WORK = "/work"
"""Ends the kernel names of calls that are no product but do about as many operations as the one they name."""


def _from_call(signature: Signature) -> Product:
    call = signature.gemm
    assert call is not None
    in_bytes, out_bytes = DTYPE_BYTES[call.dtype_a], DTYPE_BYTES[call.dtype_d]
    # A call of an extension with a wider D (no op is open) accumulates a gradient.
    reads_d = _adds_matrix(signature) or (not signature.op and out_bytes > in_bytes)
    dtype = multiplied_type(signature, call.dtype_a)
    return Product(call.m, call.n, call.k, max(call.batch, 1), dtype, in_bytes, out_bytes, reads_d)


def multiplied_type(signature: Signature, dtype: str) -> str:
    """The type that sets the rate of inputs of `dtype`: the library call tells what it multiplies float32 in."""
    if not signature.kernel.endswith(_TF32):
        return dtype
    return {"float32": "tf32", "complex64": "complex-tf32"}.get(dtype, dtype)


def _adds_matrix(signature: Signature) -> bool:
    """Whether a matrix is read and added: a bias is a vector, which costs nothing, and BLAS reads none if beta is 0."""
    if signature.base_op not in _READS_D or (signature.tensors and len(signature.tensors[0].shape) < 2):
        return False
    beta = signature.scalars[0] if signature.scalars else 1
    return beta != 0


def _matrices(signature: Signature) -> Sequence[Tensor]:
    return [tensor for tensor in signature.tensors if len(tensor.shape) >= 2]


def _plain(skip: int) -> Callable[[Signature], Product | None]:
    """A rule for ops whose tensors are `skip` others, then A[…, m, k] and B[…, k, n]."""

    def rule(signature: Signature) -> Product | None:
        if len(signature.tensors) < skip + 2:
            return None
        a, b = signature.tensors[skip], signature.tensors[skip + 1]
        if not a.shape or not b.shape:
            return None
        k = a.shape[-1]
        batch = b.shape[0] if len(b.shape) == 3 else 1
        n = b.shape[-1] if len(b.shape) >= 2 else 1
        m = a.numel // max(k * batch, 1)
        return Product(m, n, k, batch, a.dtype, a.element_bytes, _result_bytes(a), _adds_matrix(signature))

    return rule


def _result_bytes(factor: Tensor) -> int:
    """Bytes of an element of D: as wide as the inputs, but at least 16 bits."""
    return max(factor.element_bytes, 2)


def _linear(signature: Signature) -> Product | None:
    if len(signature.tensors) < 2:
        return None
    x, weight = signature.tensors[0], signature.tensors[1]
    if not x.shape or not weight.shape:
        return None
    k = x.shape[-1]
    return Product(x.numel // max(k, 1), weight.numel // max(k, 1), k, 1, x.dtype, x.element_bytes, _result_bytes(x))


def _grouped(signature: Signature) -> Product | None:
    """_grouped_mm: A[rows, k] · B[groups, k, n] by offsets, or A[m, rows] · B[rows, n] split along the rows (weights'
    gradients), rows shared evenly between the groups."""
    matrices = _matrices(signature)
    if len(matrices) < 2:
        return None
    a, b = matrices[0], matrices[1]
    if len(a.shape) == 2 and len(b.shape) == 3:
        groups = max(b.shape[0], 1)
        return Product(_share(a.shape[0], groups), b.shape[2], b.shape[1], groups, a.dtype, a.element_bytes, 2)
    if len(a.shape) == 3 and len(b.shape) == 2:
        groups = max(a.shape[0], 1)
        return Product(a.shape[1], _share(b.shape[1], groups), a.shape[2], groups, a.dtype, a.element_bytes, 2)
    if len(a.shape) == 2 and len(b.shape) == 2:
        groups = max((t.numel for t in signature.tensors if t.dtype == "int32"), default=1) or 1
        return Product(a.shape[0], b.shape[1], _share(a.shape[1], groups), groups, a.dtype, a.element_bytes, 2)
    return Product(a.shape[1], b.shape[2], a.shape[2], max(a.shape[0], 1), a.dtype, a.element_bytes, 2)


def _share(rows: int, groups: int) -> int:
    return math.ceil(rows / groups)


_OPS: dict[str, Callable[[Signature], Product | None]] = {
    "mm": _plain(0),
    "bmm": _plain(0),
    "mv": _plain(0),
    "dot": _plain(0),
    "vdot": _plain(0),
    "matmul": _plain(0),
    "addmm": _plain(1),
    "addmm_": _plain(1),
    "addmv": _plain(1),
    "baddbmm": _plain(1),
    "baddbmm_": _plain(1),
    "_addmm_activation": _plain(1),
    "_scaled_mm": _plain(0),
    "_scaled_mm_v2": _plain(0),
    "_int_mm": _plain(0),
    "linear": _linear,
    "_grouped_mm": _grouped,
    "_scaled_grouped_mm": _grouped,
}
GROUPED = frozenset(("_grouped_mm", "_scaled_grouped_mm"))
