"""Ranks come out of a collective between their CPUs with the clock of the latest."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
started = time.perf_counter()
if rank == 1:
    time.sleep(0.5)
dist.barrier()
assert 0.5 <= time.perf_counter() - started < 0.6
total = torch.ones(1)
if rank == 0:
    time.sleep(0.25)
dist.all_reduce(total)
assert total.item() == 2
assert 0.75 <= time.perf_counter() - started < 0.85
arrived = torch.tensor([time.perf_counter()], dtype=torch.float64)
least, most = arrived.clone(), arrived.clone()
dist.all_reduce(least, dist.ReduceOp.MIN)
dist.all_reduce(most, dist.ReduceOp.MAX)
assert (most - least).item() < 0.01, (least, most)
