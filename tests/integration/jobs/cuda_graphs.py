"""CUDA graphs on two ranks: what replays compute, how long branches take, and what the host pays."""

import threading
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch._higher_order_ops.cudagraph_conditional_nodes import (
    ControlFlowOpWarmupDispatchMode,
    CUDAGraphCaptureControlFlowOpDispatchMode,
)
from torch._higher_order_ops.while_loop import while_loop

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

# Memory that a graph is going to write holds what it did until then, as the inputs of graphs do that share a pool.
value.fill_(3)
first = torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    kept = value * 2
first.replay()
address = kept.data_ptr()
del kept
with torch.cuda.graph(torch.cuda.CUDAGraph(), pool=first.pool()):
    kept = value.clone()
assert kept.data_ptr() == address
assert kept.tolist() == [6.0] * 4

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
assert abs(abreast - twice) < 0.02 * once, "each fills the GPU"
assert abs(twice - 2 * once) < 0.02 * once, (twice, once)
assert abs(device_ms(serial) - twice) < 0.02 * once


def asleep() -> None:
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        torch.cuda._sleep(1_980_000)
    torch.cuda._sleep(1_980_000)
    main.wait_stream(side)


asleep()
assert abs(device_ms(captured(asleep).replay) - 1) < 0.1, "kernels of a block each, of 1 ms on an H100"

# The host pays for one launch, however many kernels it has.
chain = captured(lambda: [value.add_(1) for _ in range(1500)])
torch.cuda.synchronize()
begin_ns = time.perf_counter_ns()
chain.replay()
launch_ns = time.perf_counter_ns() - begin_ns
assert launch_ns < 50_000, launch_ns
assert device_ms(chain.replay) > 1

# torch.cond takes the branch that all ranks have voted for at that replay.
votes = torch.zeros(1, device=device)
x = torch.ones(4, device=device)


def with_control_flow(work: Callable[[], torch.Tensor]) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    with ControlFlowOpWarmupDispatchMode():
        work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), CUDAGraphCaptureControlFlowOpDispatchMode():
        result = work()
    return graph, result


def voted() -> torch.Tensor:
    counted = votes.clone()
    dist.all_reduce(counted)
    return torch.cond(counted.sum() == size, lambda x: x * 2, lambda x: x + 1, (x,))


graph, result = with_control_flow(voted)
for yes in ((0, 1), (1, 1), (0, 0), (1, 1)):
    votes.fill_(yes[rank])
    x.fill_(rank + 5)
    if rank == 1:
        threading.Event().wait(0.1)  # in real time; the other rank's clock does not wait for its vote
    begin_ns = time.perf_counter_ns()
    graph.replay()
    launch_ns = time.perf_counter_ns() - begin_ns
    assert launch_ns < 50_000, launch_ns
    assert result.tolist() == [(rank + 5) * 2.0 if all(yes) else rank + 6.0] * 4, (yes, result)

# A branch that is taken runs beside others, and one that is not costs nothing.
taken = torch.zeros((), dtype=torch.bool, device=device)


def beside() -> torch.Tensor:
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        torch.cuda._sleep(round(once * 1_980_000))  # on one SM, as long as a product
    corner = torch.cond(taken, lambda big: (big @ big)[0, 0].clone(), lambda big: big[0, 0].clone(), (big,))
    main.wait_stream(side)
    torch.mm(big, big, out=out[0])
    return corner


graph, _ = with_control_flow(beside)
for choice in (True, False):
    taken.fill_(choice)
    assert abs(device_ms(graph.replay) - 2 * once) < 0.02 * 2 * once

# A while loop goes round as often as its condition says at that replay, and each round costs what its body does.
limit = torch.zeros((), dtype=torch.int64, device=device)
zero = torch.zeros((), dtype=torch.int64, device=device)
corner = big[0, 0].clone()


def counted_up() -> torch.Tensor:
    rounds, total, _ = while_loop(
        lambda i, total, corner: i < limit,
        lambda i, total, corner: (i + 1, total + i * i, (big @ big)[0, 0].clone()),
        (zero, zero.clone(), corner),
    )
    return torch.stack([rounds, total])


graph, result = with_control_flow(counted_up)
loop_ms = {}
for rounds in (3, 0, 6, 1):
    limit.fill_(rounds)
    loop_ms[rounds] = device_ms(graph.replay)
    assert result.tolist() == [rounds, sum(i * i for i in range(rounds))], (rounds, result)
assert loop_ms[0] < 0.1 * once
for rounds in (1, 3, 6):
    assert abs(loop_ms[rounds] - loop_ms[0] - rounds * once) < 0.02 * rounds * once, loop_ms

# What a GPU refuses is refused.
with pytest.raises(RuntimeError, match="capture"):
    captured(lambda: value.sum().item())

if rank == 0:
    print(f"one {once:.3f} ms, abreast {abreast:.3f} ms, one after another {twice:.3f} ms, loops {loop_ms}", flush=True)
dist.destroy_process_group()
