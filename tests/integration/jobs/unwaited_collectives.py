"""Collectives that nobody waits for hold their tensors until the group's watchdog has noticed their end.

python -m torch.distributed.run --nproc-per-node 2 unwaited_collectives.py destroyed|by_thread|aborted
"""

import os
import sys
import threading

import torch
import torch.distributed as dist

ROUNDS = 20
GROUPS = 3


def main(ending: str) -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    groups = [dist.new_group() for _ in range(GROUPS)]
    small = torch.zeros(1, device=device)
    before = torch.cuda.memory_allocated()

    def held() -> int:
        return torch.cuda.memory_allocated() - before

    for i in range(ROUNDS):
        group = groups[i % GROUPS]
        dist.all_reduce(torch.empty(1 << 20, device=device), async_op=True, group=group)
        at_once = held()
        dist.all_reduce(small, group=group)
        without_wait = held()
        torch.cuda.synchronize()
        dist.all_reduce(small, group=group)
        sys.stdout.write(f"held {at_once} {without_wait} {held()}\n")  # in one piece: both ranks write

    work = dist.all_reduce(small, async_op=True)
    while not work.is_completed():
        pass
    unused = dist.new_group()
    dist.destroy_process_group(unused)
    dist.all_reduce(torch.empty(1 << 20, device=device), async_op=True)
    if ending == "destroyed":
        dist.destroy_process_group()
    elif ending == "by_thread":
        ender = threading.Thread(target=dist.destroy_process_group)
        ender.start()
        ender.join()
    elif ending == "aborted":
        dist.distributed_c10d._abort_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
