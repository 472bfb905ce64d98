"""Ranks wait for one another in the middle of a step: by a TCPStore barrier, a gloo barrier and a file lock.

python -m torch.distributed.run --nproc-per-node 3 waits_outside_cuda.py LOCK_FILE plain|ddp
"""

import fcntl
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 4


def main() -> None:
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    host_group = dist.new_group(backend="gloo")
    port = int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port, is_master=False)
    lock_file, style = sys.argv[1:]

    model = torch.nn.Linear(4096, 4096, device="cuda")
    if style == "ddp":
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        rows = 2048 * (1 + (rank + step) % dist.get_world_size())
        output = model(torch.empty(rows, 4096, device="cuda"))
        store_barrier(store, step)
        output.sum().backward()
        if style == "plain":
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        locked_synchronize(lock_file)
        dist.barrier(host_group)
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    dist.destroy_process_group()


def store_barrier(store: dist.TCPStore, step: int) -> None:
    """Only a rank whose device has finished the forward arrives."""
    torch.cuda.synchronize()
    if store.add(f"arrived {step}", 1) == dist.get_world_size():
        store.set(f"all arrived {step}", "")
    store.wait([f"all arrived {step}"])


def locked_synchronize(lock_file: str) -> None:
    """The holder waits for its device while the others wait for the holder."""
    with open(lock_file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
