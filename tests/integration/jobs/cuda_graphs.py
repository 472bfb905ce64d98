"""CUDA graphs on two ranks: what replays compute, how long branches take, and what the host pays."""

import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)


def captured(work: Callable[[], object]) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def device_ms(work: Callable[[], object]) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


# Replays compute with what is there then, through NCCL as well.
value = torch.zeros(4, device=device)
total = torch.empty(4, device=device)
dist.all_reduce(total)


def summed() -> None:
    total.copy_(value * 2)
    dist.all_reduce(total)
    total.add_(1)


graph = captured(summed)
for step in (1, 2):
    value.fill_(rank + step)
    graph.replay()
    assert total.tolist() == [2 * (2 * step + 1) + 1.0] * 4, (step, total)

# Random numbers: others for each replay, the same ones from the same seed.
drawn = torch.empty(8, device=device)
noise = captured(lambda: drawn.uniform_())
seen = []
for _ in range(2):
    torch.cuda.manual_seed(7)
    for _ in range(2):
        noise.replay()
        seen.append(drawn.tolist())
assert seen[:2] == seen[2:]
assert seen[0] != seen[1]

# Branches run side by side, and a graph costs the device what the same calls cost without.
big = torch.empty(8192, 8192, device=device, dtype=torch.bfloat16)
out = torch.empty(2, 8192, 8192, device=device, dtype=torch.bfloat16)
side = torch.cuda.Stream()


def one() -> None:
    torch.mm(big, big, out=out[0])


def serial() -> None:
    one()
    torch.mm(big, big, out=out[1])


def forked() -> None:
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        torch.mm(big, big, out=out[1])
    one()
    main.wait_stream(side)


for work in (one, forked):
    work()
once, twice = device_ms(captured(one).replay), device_ms(captured(serial).replay)
abreast = device_ms(captured(forked).replay)
assert once > 1
assert abs(abreast - once) < 0.02 * once, (abreast, once)
assert abs(twice - 2 * once) < 0.02 * once, (twice, once)
assert abs(device_ms(serial) - twice) < 0.02 * once

# The host pays for one launch, however many kernels it has.
chain = captured(lambda: [value.add_(1) for _ in range(1500)])
torch.cuda.synchronize()
begin_ns = time.perf_counter_ns()
chain.replay()
launch_ns = time.perf_counter_ns() - begin_ns
assert launch_ns < 50_000, launch_ns
assert device_ms(chain.replay) > 1

# What a GPU refuses is refused.
with pytest.raises(RuntimeError, match="capture"):
    captured(lambda: value.sum().item())

if rank == 0:
    print(f"one {once:.3f} ms, abreast {abreast:.3f} ms, one after another {twice:.3f} ms", flush=True)
dist.destroy_process_group()
