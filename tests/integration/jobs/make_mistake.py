"""Ranks that do not do the same: `make_mistake.py KIND`, on two ranks or more. Each would hang on real GPUs."""

import os
import sys
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
LAST = int(os.environ["WORLD_SIZE"]) - 1
IS_WRONG = RANK == LAST
"""The last rank makes the mistake."""


def buffer(elements: int = 1024, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(elements, dtype=dtype, device="cuda")


def other_operation() -> None:
    dist.broadcast(buffer(), 0) if IS_WRONG else dist.all_reduce(buffer())


def other_size() -> None:
    dist.all_reduce(buffer(2048 if IS_WRONG else 1024))


def other_type() -> None:
    dist.all_reduce(buffer(dtype=torch.int32 if IS_WRONG else torch.float32))


def other_reduction() -> None:
    dist.all_reduce(buffer(), dist.ReduceOp.MAX if IS_WRONG else dist.ReduceOp.SUM)


def other_root() -> None:
    dist.broadcast(buffer(), LAST if IS_WRONG else 0)


def other_order() -> None:
    calls = [partial(dist.all_reduce, buffer()), partial(dist.broadcast, buffer(), 0)]
    for call in reversed(calls) if IS_WRONG else calls:
        call()


def gone_early() -> None:
    if not IS_WRONG:
        dist.all_reduce(buffer())


def raised() -> None:
    if IS_WRONG:
        raise ValueError("a mistake of the script")
    dist.all_reduce(buffer())


def one_too_many() -> None:
    for _ in range(3 if IS_WRONG else 2):
        dist.all_reduce(buffer())


def send_alone() -> None:
    if RANK == 0:
        dist.send(buffer(), LAST)


def receive_alone() -> None:
    if IS_WRONG:
        dist.recv(buffer(), 0)


def message_size() -> None:
    if RANK == 0:
        dist.send(buffer(2048), LAST)
    elif IS_WRONG:
        dist.recv(buffer(1024), 0)


def crossed_communicators() -> None:
    groups = [dist.new_group(list(range(LAST + 1))) for _ in range(2)]
    for group in reversed(groups) if IS_WRONG else groups:
        dist.all_reduce(buffer(), group=group)
        torch.cuda.synchronize()


def host_against_device() -> None:
    hosts = dist.new_group(backend="gloo")
    if IS_WRONG:
        dist.barrier(hosts)
    else:
        dist.all_reduce(buffer())
        torch.cuda.synchronize()


def group_of_some() -> None:
    if IS_WRONG:
        dist.all_reduce(buffer())
    else:
        dist.all_reduce(buffer(), group=dist.new_group(list(range(LAST + 1))))


def event_that_never_comes() -> None:
    done = torch.cuda.Event()
    side = torch.cuda.Stream()
    if not IS_WRONG:
        work = dist.all_reduce(buffer(), async_op=True)
        with torch.cuda.stream(side):
            work.wait()
            done.record()
        done.synchronize()
    else:
        torch.cuda.synchronize()


def aborted() -> None:
    if IS_WRONG:
        dist.distributed_c10d._abort_process_group()
    else:
        dist.all_reduce(buffer())


KINDS: dict[str, Callable[[], None]] = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and name != "buffer"
}


def main() -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    dist.all_reduce(buffer())
    torch.cuda.synchronize()
    KINDS[sys.argv[1]]()
    if not IS_WRONG or sys.argv[1] != "gone_early":
        torch.cuda.synchronize()
    print("rank", RANK, "is through", flush=True)


if __name__ == "__main__":
    main()
