"""Signatures: what the definition map becomes, and what is refused."""

from __future__ import annotations

import pytest

from phantora_py.signature import Copy, Gemm, Signature, SignatureError, Tensor

DEFINITION = {
    "t": "kernel",
    "id": 7,
    "op": "aten::addmm",
    "kernel": "cublasGemmEx",
    "tensors": [
        ["in", "bfloat16", [64], [1]],
        ["in", "bfloat16", [32, 16], [16, 1]],
        ["mut", "bfloat16", [16, 64], [1, 16]],
    ],
    "scalars": [1, 1.5, True, None, [2, 3], "sum"],
    "gemm": [64, 32, 16, 1, "bfloat16", "float32", True, 0],
    "copy": ["d2d", 4096],
    "grid": [2, 1, 1],
    "block": [128, 1, 1],
}


def test_reads_every_key() -> None:
    signature = Signature.from_definition(DEFINITION)
    assert signature.op == "aten::addmm"
    assert signature.base_op == "addmm"
    assert signature.tensors[1] == Tensor("in", "bfloat16", (32, 16), (16, 1))
    assert signature.scalars == (1, 1.5, True, None, (2, 3), "sum")
    assert signature.gemm == Gemm(64, 32, 16, 1, "bfloat16", "float32", True, False)
    assert signature.copy == Copy("d2d", 4096)
    assert signature.grid == (2, 1, 1)
    assert signature.block == (128, 1, 1)


def test_absent_keys_are_empty() -> None:
    signature = Signature.from_definition({"t": "kernel", "id": 1})
    assert signature == Signature()
    assert signature.base_op == ""


def test_equal_signatures_have_equal_keys_and_hashes() -> None:
    one, other = Signature.from_definition(DEFINITION), Signature.from_definition(dict(DEFINITION))
    assert one == other
    assert hash(one) == hash(other)
    assert one.key == other.key


@pytest.mark.parametrize(
    "change",
    [
        {"op": "aten::mm"},
        {"tensors": [["in", "float16", [64], [1]]]},
        {"scalars": [1, 1.5, False, None, [2, 3], "sum"]},
        {"gemm": [64, 32, 16, 1, "bfloat16", "float32", True, 1]},
        {"copy": ["d2d", 4097]},
        {"copy": ["d2d", 4096, "pageable"]},
        {"grid": [3, 1, 1]},
        {"node": "host_func"},
    ],
)
def test_any_change_shows_in_the_key(change: dict[str, object]) -> None:
    assert Signature.from_definition({**DEFINITION, **change}).key != Signature.from_definition(DEFINITION).key


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"op": 3}, "op"),
        ({"op": "x" * 100_000}, "op"),
        ({"tensors": "abc"}, "tensors"),
        ({"tensors": [["in", "bfloat16", [4]]]}, "tensors"),
        ({"tensors": [["out", "bfloat16", [4], [1]]]}, "role"),
        ({"tensors": [["in", "bfloat15", [4], [1]]]}, "dtype"),
        ({"tensors": [["in", "bfloat16", [-1], [1]]]}, "shape"),
        ({"tensors": [["in", "bfloat16", [True], [1]]]}, "shape"),
        ({"tensors": [["in", "bfloat16", [2.0], [1]]]}, "shape"),
        ({"tensors": [["in", "bfloat16", [4, 4], [1]]]}, "strides"),
        ({"tensors": [["in", "bfloat16", [2**40, 2**40], [1, 1]]]}, "shape"),
        ({"tensors": [["in", "bfloat16", [1] * 65, [1] * 65]]}, "shape"),
        ({"scalars": [{"a": 1}]}, "scalars"),
        ({"scalars": [[[[[[1]]]]]]}, "scalars"),
        ({"gemm": [1, 2, 3]}, "gemm"),
        ({"gemm": [1, 2, -3, 1, "float16", "float16", 0, 0]}, "gemm"),
        ({"gemm": [1, 2, 3, 1, "float16", "float16", 2, 0]}, "gemm"),
        ({"copy": ["up", 3]}, "copy"),
        ({"copy": ["h2d", "3"]}, "copy"),
        ({"copy": ["h2d", 3, "pinned"]}, "copy"),
        ({"grid": [1, 1]}, "grid"),
        ({"block": [1, 1, 2**40]}, "block"),
    ],
)
def test_refuses_nonsense_and_names_it(change: dict[str, object], word: str) -> None:
    with pytest.raises(SignatureError, match=word) as error:
        Signature.from_definition({**DEFINITION, **change})
    assert "hint:" in str(error.value)


def test_tensor_sizes() -> None:
    expanded = Tensor("in", "float32", (8, 1024), (0, 1))
    assert expanded.bytes == 8 * 1024 * 4
    assert expanded.stored_bytes == 1024 * 4
    assert Tensor("in", "float32", (0, 4), (4, 1)).stored_bytes == 0
    assert Tensor("in", "int64", (), ()).bytes == 8


def test_tensor_order() -> None:
    transposed = Tensor("in", "float32", (16, 32), (1, 16))
    assert transposed.is_dense
    assert not transposed.is_contiguous
    assert not Tensor("in", "float32", (16, 32), (64, 1)).is_dense
    assert Tensor("in", "float32", (16, 1, 32), (32, 5, 1)).is_contiguous
