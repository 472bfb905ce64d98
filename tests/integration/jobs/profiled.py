"""Trains under torch.profiler, as its users do: with a schedule, and the whole of a job. Writes what it shows.

The first argument is the folder. Run by torchrun.
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule

folder = Path(sys.argv[1])
rank = int(os.environ["RANK"])
both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
torch.cuda.set_device(rank)


def train(module: torch.nn.Module, steps: int, profiler: profile | None = None) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(steps):
        module(torch.randn(512, 2048).cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if profiler:
            profiler.step()


with profile(activities=both) as whole:
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    model = torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 2048)).cuda()
    train(DistributedDataParallel(model), steps=2)
    graph, data = torch.cuda.CUDAGraph(), torch.zeros(1024, 1024, device="cuda")
    with torch.cuda.graph(graph):
        data.add_(1)
    graph.replay()
    graph.replay()
whole.export_chrome_trace(str(folder / f"whole{rank}.json"))
ops_us = {event.key: event.self_device_time_total for event in whole.key_averages()}
(folder / f"ops{rank}.json").write_text(json.dumps(ops_us))

dist.barrier()
torch.cuda.synchronize()
with profile(
    activities=both,
    schedule=schedule(wait=1, warmup=1, active=1),
    on_trace_ready=lambda done: done.export_chrome_trace(str(folder / f"step{rank}.json")),
) as scheduled:
    train(model, steps=3, profiler=scheduled)
dist.destroy_process_group()
