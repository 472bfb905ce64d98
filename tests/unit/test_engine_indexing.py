"""Bytes of ops that pick or store by indices, each figure by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phantora_py.engines.measured import tensor
from phantora_py.engines.traffic import find_traffic
from phantora_py.signature import Scalar, Signature, Tensor

KI, MI = 2**10, 2**20


def ids(*shape: int) -> Tensor:
    return tensor("int64", *shape)


def written(dtype: str, *shape: int) -> Tensor:
    return tensor(dtype, *shape, role="mut")


def moved(name: str, *tensors: Tensor, scalars: tuple[Scalar, ...] = ()) -> float:
    traffic = find_traffic(Signature(f"aten::{name}", tensors=tensors, scalars=scalars))
    assert traffic is not None
    return traffic.bytes


HIDDEN = tensor("bfloat16", 8, 4096, 4096)


@pytest.mark.parametrize(
    ("source", "present", "indices", "expected"),
    [
        # hidden[tok]: 2,048 slices of 4,096 x 4,096
        (HIDDEN, (True,), [ids(2048)], 2 * 2048 * 4096 * 4096 * 2 + 2048 * 8),
        # hidden[:, tok]: 8 x 2,048 rows of 4,096
        (HIDDEN, (False, True), [ids(2048)], 2 * 8 * 2048 * 4096 * 2 + 2048 * 8),
        # hidden[:, :, v]: 8 x 4,096 x 32 values, a sector each
        (HIDDEN, (False, False, True), [ids(32)], 8 * 4096 * 32 * (32 + 2) + 32 * 8),
        # hidden[batch, last]: 8 rows
        (HIDDEN, (True, True), [ids(8), ids(8)], 2 * 8 * 4096 * 2 + 2 * 8 * 8),
        # hidden[batch, :, v]: 8 x 4,096 values
        (HIDDEN, (True, False, True), [ids(8), ids(8)], 8 * 4096 * (32 + 2) + 2 * 8 * 8),
        # x[rows, columns] with indices that broadcast to 64 x 16
        (tensor("float32", KI, KI), (True, True), [ids(64, 1), ids(16)], 64 * 16 * (32 + 4) + (64 + 16) * 8),
        # half the columns of short rows: no more than there is
        (tensor("float32", MI, 64), (False, True), [ids(32)], MI * 64 * 4 + MI * 32 * 4 + 32 * 8),
        # one column of an image in channels_last: 16 x 100 x 64 channels that lie together
        (
            Tensor("in", "float32", (16, 64, 100, 200), (64 * 20_000, 1, 64 * 200, 64)),
            (False, False, False, True),
            [ids(1)],
            2 * 16 * 100 * 64 * 4 + 8,
        ),
        # a mask may leave everything
        (tensor("float32", 1000, 8), (True,), [tensor("bool", 1000)], 2 * 32_000 + 1000),
        (tensor("float32", 4, 10, 20, 8), (False, True), [tensor("bool", 10, 20)], 2 * 4 * 200 * 32 + 200),
    ],
)
def test_index(source: Tensor, present: tuple[bool, ...], indices: list[Tensor], expected: int) -> None:
    assert moved("index.Tensor", source, *indices, scalars=(present,)) == expected


def test_index_put() -> None:
    rows, flags = written("float32", MI, 64), ((True,), False)
    one_by_one, broadcast_row = tensor("float32", MI, 64), tensor("float32", 64)
    stored = MI * 64 * 4 + MI * 8
    assert moved("index_put_", rows, ids(MI), tensor("float32"), scalars=flags) == stored + 4
    assert moved("index_put_", rows, ids(MI), broadcast_row, scalars=flags) == stored + 64 * 4
    assert moved("index_put_", rows, ids(MI), one_by_one, scalars=flags) == stored + MI * 64 * 4
    assert moved("_index_put_impl_", rows, ids(MI), one_by_one, scalars=((True,), True, False)) == (
        stored + 2 * MI * 64 * 4
    )
    column = moved("index_put_", written("float32", KI, KI), ids(1), tensor("float32"), scalars=((False, True), False))
    assert column == KI * 32 + 8 + 4
    half = tensor("float32", 500, 8)
    mask = tensor("bool", 1000)
    assert moved("index_put_", written("float32", 1000, 8), mask, half, scalars=flags) == 2 * 500 * 32 + 1000
    assert moved("index_put_", written("float32", 1000, 8), mask, tensor("float32", 8), scalars=flags) == (
        1000 * 32 + 32 + 1000
    )


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_types_of_one_width_move_alike(dtype: str) -> None:
    table, slices = tensor(dtype, KI, 4096), 16 * 4096 * 8
    target, values, index = replace(table, role="mut"), tensor(dtype, 16, 4096), ids(16)
    assert moved("index_select", table, index, scalars=(0,)) == 2 * slices + 128
    assert moved("index_copy_", target, index, values, scalars=(0,)) == 2 * slices + 128
    assert moved("index_add_", target, index, values, scalars=(0, 1)) == 3 * slices + 128
    assert moved("index_fill_.int_Scalar", target, index, scalars=(0, 0)) == slices + 128
    assert moved("index_reduce_", target, index, values, scalars=(0, "amax", True)) == 3 * slices + 128
    assert moved("index_select", table, index, scalars=(-1,)) == KI * 16 * (32 + 8) + 128
    assert moved("index_fill_.int_Scalar", target, index, scalars=(1, 0)) == KI * 16 * 32 + 128
    each = ids(KI, 1)
    assert moved("gather", table, each, scalars=(1, False)) == KI * (32 + 8 + 8)
    assert moved("take", table, each) == KI * (32 + 8 + 8)
    assert moved("scatter_.value", target, each, scalars=(1, 0)) == KI * (32 + 8)
    assert moved("scatter_.src", target, each, tensor(dtype, KI, 4096), scalars=(1,)) == KI * (32 + 8 + 8)
    assert moved("scatter_add_", target, each, tensor(dtype, KI, 1), scalars=(1,)) == KI * (2 * 32 + 8 + 8)
    assert moved("put_", target, each, tensor(dtype, KI, 1), scalars=(True,)) == KI * (2 * 32 + 8 + 8)


def test_bags_of_embeddings_read_their_rows() -> None:
    table = tensor("float32", 8 * MI, 128)
    for name in ("_embedding_bag", "_embedding_bag_forward_only"):
        rows = moved(name, table, ids(1024), ids(256), scalars=(False, 0, False, False, -1))
        assert rows == (1024 + 256) * 512 + 2 * 1024 * 8 + 256 * 8


def test_searches_read_values_and_write_places() -> None:
    values, boundaries = tensor("float32", MI), tensor("float32", 16)
    assert moved("bucketize.Tensor", values, boundaries, scalars=(False, False)) == MI * 12 + 64
    assert moved("searchsorted.Tensor", boundaries, values, scalars=(False, False, None)) == MI * 12 + 64
    assert moved("searchsorted.Tensor", boundaries, values, scalars=(True, False, None)) == MI * 8 + 64
    assert moved("histc", values, scalars=(100, 0, 0)) == MI * 4
    assert moved("bincount", ids(MI), scalars=(16,)) == MI * 8
