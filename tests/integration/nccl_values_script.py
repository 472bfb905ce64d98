"""Run on four ranks by test_nccl_values.py, as a user would write it. Prints "ok NAME" for each check that held.

Arguments: names of checks; without any, all are made. CHECK_EAGER_INIT=1 makes the first communicator at once, so that
groups are split from it.
"""

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SMALL_FLOATS = [torch.float8_e4m3fn, torch.float8_e5m2]
DTYPES = [*INTEGERS, *FLOATS, *SMALL_FLOATS]

CHECKS: list[Callable[[int, int], None]] = []


def check(function: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """A check gets this rank and the number of ranks."""
    CHECKS.append(function)
    return function


def tensor(values: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).to(dtype).cuda()


def equal(actual: torch.Tensor, expected: Any) -> None:
    shown = actual.cpu().to(torch.float64).tolist()
    wanted = torch.tensor(expected, dtype=torch.float64).to(actual.dtype).to(torch.float64).tolist()
    assert shown == wanted, f"{actual.dtype}: {shown}, not {wanted}"


@check
def all_reduce(rank: int, size: int) -> None:
    for dtype in DTYPES:
        for op, expected in [
            (dist.ReduceOp.SUM, [4, 6, 8]),
            (dist.ReduceOp.PRODUCT, [1, 4, 16]),
            (dist.ReduceOp.MAX, [1, 2, 2]),
            (dist.ReduceOp.MIN, [1, 1, 2]),
        ]:
            given = tensor([1, 1 + rank % 2, 2], dtype)
            dist.all_reduce(given, op=op)
            equal(given, expected)
    for dtype in FLOATS:
        given = tensor([rank, 4 * rank, 1], dtype)
        dist.all_reduce(given, op=dist.ReduceOp.AVG)
        equal(given, [1.5, 6, 1])


@check
def all_reduce_of_bool(rank: int, size: int) -> None:
    given = torch.tensor([rank == 2, False, True]).cuda()
    dist.all_reduce(given, op=dist.ReduceOp.MAX)
    assert given.tolist() == [True, False, True]


@check
def scaled_sum(rank: int, size: int) -> None:
    for dtype in [torch.float16, torch.float32, torch.float64]:
        given = tensor([2, 4], dtype)
        dist.all_reduce(given, op=dist._make_nccl_premul_sum(0.5))
        equal(given, [4, 8])
        given = tensor([2, 4], dtype)
        dist.all_reduce(given, op=dist._make_nccl_premul_sum(tensor([0.25], dtype)))
        equal(given, [2, 4])


@check
def reduce(rank: int, size: int) -> None:
    for dtype in DTYPES:
        given = tensor([1, rank], dtype)
        dist.reduce(given, dst=2)
        if rank == 2:
            equal(given, [4, 6])


@check
def broadcast(rank: int, size: int) -> None:
    for dtype in DTYPES:
        given = tensor([rank, 10 + rank], dtype)
        dist.broadcast(given, src=3)
        equal(given, [3, 13])


@check
def all_gather(rank: int, size: int) -> None:
    for dtype in DTYPES:
        given = tensor([rank, 2 * rank], dtype)
        gathered = [torch.empty_like(given) for _ in range(size)]
        dist.all_gather(gathered, given)
        for other, part in enumerate(gathered):
            equal(part, [other, 2 * other])
        flat = torch.empty(2 * size, dtype=torch.uint8, device="cuda").to(dtype)
        dist.all_gather_into_tensor(flat, given)
        equal(flat, [0, 0, 1, 2, 2, 4, 3, 6])


@check
def all_gather_of_different_sizes(rank: int, size: int) -> None:
    given = tensor([rank] * (rank + 1), torch.int64)
    gathered = [torch.empty(other + 1, dtype=torch.int64, device="cuda") for other in range(size)]
    dist.all_gather(gathered, given)
    for other, part in enumerate(gathered):
        equal(part, [other] * (other + 1))


@check
def reduce_scatter(rank: int, size: int) -> None:
    for dtype in DTYPES:
        given = tensor([0, 1, 2, 3, 1, 1, 1, 1], dtype)
        part = tensor([0, 0], dtype)
        dist.reduce_scatter_tensor(part, given)
        equal(part, [[0, 4], [8, 12], [4, 4], [4, 4]][rank])
        dist.reduce_scatter(part, list(given.chunk(size)))
        equal(part, [[0, 4], [8, 12], [4, 4], [4, 4]][rank])


@check
def gather_and_scatter(rank: int, size: int) -> None:
    for dtype in DTYPES:
        given = tensor([rank, 1], dtype)
        gathered = [torch.empty_like(given) for _ in range(size)] if rank == 1 else None
        dist.gather(given, gathered, dst=1)
        for other, part in enumerate(gathered or []):
            equal(part, [other, 1])
        part = torch.empty_like(given)
        dist.scatter(part, [tensor([other, 5], dtype) for other in range(size)] if rank == 2 else None, src=2)
        equal(part, [rank, 5])


@check
def all_to_all(rank: int, size: int) -> None:
    for dtype in DTYPES:
        given = tensor([rank, rank + 1, rank + 2, rank + 3], dtype)
        got = torch.empty_like(given)
        dist.all_to_all_single(got, given)
        equal(got, [other + rank for other in range(size)])
        # Rank r sends r + 1 elements to each other one.
        given = tensor([rank] * (size * (rank + 1)), dtype)
        counts = [other + 1 for other in range(size)]
        got = torch.empty(sum(counts), dtype=torch.uint8, device="cuda").to(dtype)
        dist.all_to_all_single(got, given, counts, [rank + 1] * size)
        equal(got, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
        parts = [tensor([other] * (other + 1), dtype) for other in range(size)]
        got_parts = [torch.empty_like(parts[rank]) for _ in range(size)]
        dist.all_to_all(got_parts, parts)
        for part in got_parts:
            equal(part, [rank] * (rank + 1))


@check
def send_and_receive(rank: int, size: int) -> None:
    for dtype in DTYPES:
        given = tensor([7, rank], dtype)
        if rank % 2 == 0:
            dist.send(given, rank + 1)
            dist.recv(given, rank + 1)
        else:
            got = torch.empty_like(given)
            dist.recv(got, rank - 1)
            equal(got, [7, rank - 1])
            dist.send(tensor([8, rank], dtype), rank - 1)
        equal(given, [8, rank + 1] if rank % 2 == 0 else [7, rank])


@check
def batch_of_sends_and_receives(rank: int, size: int) -> None:
    after, before = (rank + 1) % size, (rank - 1) % size
    given = [tensor([rank, index], torch.int32) for index in range(3)]
    got = [torch.zeros(2, dtype=torch.int32, device="cuda") for _ in range(3)]
    ops = [dist.P2POp(dist.isend, each, after) for each in given]
    ops += [dist.P2POp(dist.irecv, each, before) for each in got]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for index, each in enumerate(got):
        equal(each, [before, index])


@check
def asynchronous(rank: int, size: int) -> None:
    first, second = tensor([rank], torch.float32), tensor([1], torch.float32)
    works = [dist.all_reduce(first, async_op=True), dist.all_reduce(second, async_op=True)]
    for work in works:
        work.wait()
    (first + second).tolist()
    equal(first + second, [10])


@check
def coalesced(rank: int, size: int) -> None:
    given = [tensor([rank + index], torch.int64) for index in range(3)]
    with dist._coalescing_manager(async_ops=True, device=torch.device("cuda", rank)) as manager:
        for each in given:
            dist.all_reduce(each)
    manager.wait()
    for index, each in enumerate(given):
        equal(each, [6 + size * index])


@check
def objects(rank: int, size: int) -> None:
    mine = {"rank": rank, "text": "x" * (10 * rank), "list": [rank] * rank}
    everything: list[Any] = [None] * size
    dist.all_gather_object(everything, mine)
    expected = [{"rank": r, "text": "x" * (10 * r), "list": [r] * r} for r in range(size)]
    assert everything == expected, everything
    gathered: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object(mine, gathered, dst=0)
    assert gathered == (expected if rank == 0 else None)
    told = [mine, "second"] if rank == 1 else [None, None]
    dist.broadcast_object_list(told, src=1)
    assert told == [expected[1], "second"]
    part: list[Any] = [None]
    dist.scatter_object_list(part, [f"for {r}" for r in range(size)] if rank == 3 else None, src=3)
    assert part == [f"for {rank}"]


@check
def subgroups(rank: int, size: int) -> None:
    even, odd = dist.new_group([0, 2]), dist.new_group([1, 3])
    mine = even if rank % 2 == 0 else odd
    given = tensor([rank], torch.int32)
    dist.all_reduce(given, group=mine)
    equal(given, [2] if rank % 2 == 0 else [4])
    told: list[Any] = [f"from {rank}"]
    dist.broadcast_object_list(told, src=rank % 2 + 2, group=mine)
    assert told == [f"from {rank % 2 + 2}"]
    dist.barrier(group=mine)


@check
def device_mesh(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cuda", (2, 2), mesh_dim_names=("outer", "inner"))
    for name, expected in [("outer", rank % 2 * 2 + 2), ("inner", rank // 2 * 4 + 1)]:
        given = tensor([rank], torch.int64)
        dist.all_reduce(given, group=mesh.get_group(name))
        equal(given, [expected])


@check
def order_that_deadlocks_eager_emulation(rank: int, size: int) -> None:
    """Of each pair, the first receives A, works on it and then gathers X; the second needs X before it sends A."""
    pairs = [[0, 1], [2, 3]]
    transfers = [dist.new_group(pair) for pair in pairs][rank // 2]
    gathers = [dist.new_group(pair) for pair in pairs][rank // 2]
    other = rank ^ 1
    x = torch.zeros(2, dtype=torch.int32, device="cuda")
    for round_ in range(2):  # the first one also makes the communicators
        if rank % 2 == 0:
            if round_ == 0:
                dist.barrier(group=gathers)
            a = torch.zeros(1, dtype=torch.int32, device="cuda")
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                work = dist.irecv(a, other, group=transfers)
                assert work is not None
                work.wait()
                a = a * 6
            dist.all_gather_into_tensor(x, tensor([10], torch.int32), group=gathers)
            equal(x, [10, 11])
            torch.cuda.current_stream().wait_stream(side)
            equal(a, [42])
        else:
            if round_ == 0:
                dist.barrier(group=gathers)
                dist.send(tensor([7], torch.int32), other, group=transfers)
                dist.all_gather_into_tensor(x, tensor([11], torch.int32), group=gathers)
            else:
                dist.all_gather_into_tensor(x, tensor([11], torch.int32), group=gathers)
                equal(x, [10, 11])
                dist.send(tensor([7], torch.int32), other, group=transfers)


@check
def large_messages_carry_no_values(rank: int, size: int) -> None:
    given = torch.ones(8 << 20, device="cuda")
    dist.all_reduce(given)
    assert given.sum().item() in (0.0, float(size * given.numel()))
    small = tensor([1], torch.float32)
    dist.all_reduce(small)
    equal(small, [size])


@check
def nothing_to_send(rank: int, size: int) -> None:
    dist.all_reduce(torch.empty(0, device="cuda"))
    got = torch.empty(0, device="cuda")
    dist.all_to_all_single(got, torch.empty(0, device="cuda"), [0] * size, [0] * size)


@check
def shapes_then_contents(rank: int, size: int) -> None:
    """As pipelines do: the sizes first, then a tensor made by them."""
    if rank == 0:
        dist.send(torch.tensor([2, 3], device="cuda"), 1)
        dist.send(torch.arange(6.0, device="cuda").reshape(2, 3), 1)
    elif rank == 1:
        shape = torch.empty(2, dtype=torch.int64, device="cuda")
        dist.recv(shape, 0)
        got = torch.empty(shape.tolist(), device="cuda")
        dist.recv(got, 0)
        assert got.tolist() == [[0, 1, 2], [3, 4, 5]]


@check
def memory_of_communicators(rank: int, size: int) -> None:
    before, _ = torch.cuda.mem_get_info()
    group = dist.new_group(list(range(size)))
    dist.barrier(group=group)
    after, _ = torch.cuda.mem_get_info()
    assert 1 << 20 < before - after < 2 << 30, before - after


def main() -> int:
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    eager = os.environ.get("CHECK_EAGER_INIT") == "1"
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank) if eager else None)
    size = dist.get_world_size()
    failed = 0
    for each in [each for each in CHECKS if each.__name__ in sys.argv[1:] or not sys.argv[1:]]:
        try:
            each(rank, size)
        except Exception:
            failed += 1
            traceback.print_exc()
        else:
            os.write(1, f"ok {each.__name__}\n".encode())  # in one piece: the ranks share the output
    dist.barrier()
    dist.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
