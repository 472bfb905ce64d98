"""What is read from the source of a Triton kernel."""

import pytest

from phantora_launcher.rank.triton_source import AttentionMask, KernelSource, Use, read_kernel


def read(source: str, name: str = "kernel", helpers: dict[str, str] | None = None) -> KernelSource:
    kernel = read_kernel(source, name, (helpers or {}).get)
    assert kernel is not None
    return kernel


def test_loads_and_stores_are_followed_through_names() -> None:
    kernel = read(
        """
@triton.jit
def kernel(x, out, counts, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = x + at
    start += 4
    value = tl.load(start, mask=at < n)
    where, unused = out, 1
    tl.store(where + at, value.to(out.dtype.element_ty))
    tl.atomic_add(counts, 1)
"""
    )
    assert kernel.uses["x"] == Use(1, 0)
    assert kernel.uses["out"] == Use(0, 1)
    assert kernel.uses["counts"] == Use(1, 1)
    assert "scale" not in kernel.uses


def test_a_pass_is_a_loop_and_loads_give_no_address() -> None:
    kernel = read(
        """
def kernel(table, x, out, xnumel, r0_numel):
    xnumel = 4096
    rnumel = r0_numel
    for offset in tl.range(0, r0_numel, 64):
        total = tl.load(x + offset) + tl.load(x + offset + 1)
    for offset in tl.range(0, r0_numel, 64):
        row = tl.load(table + tl.load(x + offset))
    tl.store(out, total)
"""
    )
    assert [kernel.uses[name] for name in ("table", "x", "out")] == [Use(1, 0), Use(2, 0), Use(0, 1)]
    assert kernel.constants["xnumel"] == 4096
    assert kernel.constants["r0_numel"] == "r0_numel"


def test_helpers_are_entered_wherever_they_are() -> None:
    source = """
def inner(to, value, N):
    outer_helper(to + N, value)

def kernel(a, b, K):
    M = 128
    N = K
    acc = tl.dot(tl.load(a), tl.load(a + 1))
    inner(b, acc, N)
"""
    kernel = read(source, helpers={"outer_helper": "def outer_helper(p, v):\n    tl.store(p, v)\n"})
    assert (kernel.uses["a"], kernel.uses["b"]) == (Use(1, 0), Use(0, 1))
    assert kernel.products == 1
    assert kernel.constants == {"M": 128, "N": "K", "K": "K"}
    unknown = read(source)
    assert unknown.uses["b"] == Use(1, 1)  # nobody can tell what outer_helper does


def masked_attention(mask: str) -> KernelSource:
    """As Inductor's templates have it: the mask's own code, then the bound of the last block of keys."""
    return read(f"""
def kernel(q, out, lengths, LEN):
    scores(q, lengths, LEN)
    tl.store(out, 1)

def scores(q, lengths, LEN, last=False):
    offs_n = tl.arange(0, 64)
    m = bounded(tl.arange(0, 64), LEN if last else None)
    n = bounded(offs_n, LEN if last else None)
    tmp1 = (m)
    tmp2 = (n)
    tmp3 = {mask}
    mask_mod_output = tmp3
    if last:
        mask_mod_output = tl.where(offs_n < LEN, mask_mod_output, False)

def bounded(indices, length=None):
    return indices % length if length is not None else indices
""")


@pytest.mark.parametrize("mask", ["tmp1 >= tmp2", "tmp2 <= tmp1", "tl.full([1], 3, tl.int32) > tmp1 - tmp2"])
def test_masks_that_order_positions(mask: str) -> None:
    assert masked_attention(mask).mask == AttentionMask()


@pytest.mark.parametrize(
    ("mask", "window"),
    [
        ("(tmp1 >= tmp2) & (tmp1 - tmp2 < 100)", 100),
        ("tl.full([1], True, tl.int1) & (tmp2 <= tmp1) & (tmp2 > tmp1 - tl.full([1], 100, tl.int64))", 100),
        ("(tmp1 - tmp2 <= 100) & (tmp2 - tmp1 <= 100)", 201),
        ("(tmp1 >= tmp2) & (tmp1 - tmp2 < 100) & (tmp1.to(tl.int64) - tmp2 < 50)", 50),
        ("(tmp1 >= tmp2) | (tmp1 - tmp2 < 100)", None),
        ("(tmp1 >= tmp2) & (tmp1 - tmp2 < tl.load(lengths))", None),
    ],
)
def test_windows_are_bounds_on_both_sides(mask: str, window: int | None) -> None:
    assert masked_attention(mask).mask == AttentionMask(window)


@pytest.mark.parametrize(
    "mask", ["tl.full([1], True, tl.int1)", "tmp1 == tmp2", "tmp2 < 512", "tmp2 < tl.load(lengths + tmp1)"]
)
def test_bounds_are_no_order_of_positions(mask: str) -> None:
    assert masked_attention(mask).mask is None


@pytest.mark.parametrize(
    "source",
    [
        "def other(x):\n    pass\n",
        "def kernel(:\n",
        "def kernel(table):\n    p = tl.load(table)\n    tl.store(p, 1)\n",
    ],
)
def test_what_cannot_be_told_is_none(source: str) -> None:
    assert read_kernel(source, "kernel") is None
