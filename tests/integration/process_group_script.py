"""Two ranks whose process group has a timeout that real time exceeds, and that ends in different ways."""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def main(ending: str) -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=timedelta(seconds=1))
    large = torch.ones(1 << 26, device="cuda")
    if dist.get_rank() == 0:
        os.system("sleep 3")  # really slow, which time.sleep would not be
    work = dist.all_reduce(large, async_op=True)
    polls = 0
    while not work.is_completed():
        polls += 1
    event = torch.cuda.Event()
    dist.all_reduce(large)
    event.record()
    while not event.query():
        time.sleep(0.001)
    small = torch.full((4,), dist.get_rank() + 1.0, device="cuda")
    dist.all_reduce(small)
    print(f"polls {polls} sum {small.tolist()}")
    dist.all_reduce(large)  # nobody waits for it
    if ending == "destroy":
        dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
