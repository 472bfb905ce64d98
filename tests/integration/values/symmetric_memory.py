"""PyTorch's symmetric memory on two or more ranks: who waits for whom, and what they read then. Would pass on GPUs."""

import os
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch._C._distributed_c10d import _SymmetricMemory

RANK = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(RANK)
dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
WORLD = dist.get_world_size()
GROUP = dist.group.WORLD.group_name
NEXT, BEFORE = (RANK + 1) % WORLD, (RANK - 1) % WORLD
SIZE = 1024
UNKNOWN = 0.0
"""What is read of something that nothing computed."""

memory = symm_mem.empty(SIZE, device="cuda")
handle = symm_mem.rendezvous(memory, GROUP)


def peer(rank: int) -> torch.Tensor:
    return handle.get_buffer(rank, (SIZE,), torch.float32)


def meet() -> None:
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()


def be_late() -> None:
    """In real time, where no clock shows it."""
    sum(range(8_000_000))


def elapsed_ms(run: Callable[[], object]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def times(run: Callable[[], object]) -> list[float]:
    """Of all ranks, when rank 0 computes before."""
    square = torch.ones(4096, 4096, device="cuda")

    def compute_and_run() -> None:
        if RANK == 0:
            for _ in range(4):
                square @ square
        run()

    meet()
    mine = torch.tensor([elapsed_ms(compute_and_run)], device="cuda")
    everyone = torch.empty(WORLD, device="cuda")
    dist.all_gather_into_tensor(everyone, mine)
    return everyone.tolist()


def check_barrier() -> None:
    for turn in range(3):
        memory.fill_(1.0)
        meet()
        if RANK == 1:
            be_late()
        peer(NEXT).fill_(50.0 + RANK + turn)
        handle.barrier(channel=turn % 2)
        assert memory[7].item() == 50.0 + BEFORE + turn
        handle.barrier(channel=turn % 2)
    waited = times(handle.barrier)
    assert min(waited) > 2.0, waited
    assert max(waited) - min(waited) < 0.1, waited


def check_signals() -> None:
    memory.fill_(1.0)
    meet()
    for turn in range(3):
        if RANK == 1:
            be_late()
        peer(NEXT).fill_(60.0 + RANK + turn)
        handle.put_signal(NEXT, channel=2)
        handle.wait_signal(BEFORE, channel=2)
        assert memory[7].item() == 60.0 + BEFORE + turn
        handle.barrier()
    slept = elapsed_ms(lambda: torch.cuda._sleep(19_800_000))
    assert 5.0 < slept < 20.0, slept
    first, second, *_ = times(lambda: handle.put_signal(1) if RANK == 0 else handle.wait_signal(0) if RANK == 1 else 0)
    assert first > 2.0, "rank 0 computes"
    assert abs(second - first) < 0.1, "rank 1 waits for it"
    first, second, *_ = times(lambda: handle.put_signal(0) if RANK == 1 else handle.wait_signal(1) if RANK == 0 else 0)
    assert second < 0.1 < first, "rank 1 does not wait for who waits for it"

    def twice() -> None:
        for _ in range(2):
            if RANK == 1:
                handle.put_signal(0, channel=3)
            elif RANK == 0:
                handle.wait_signal(1, channel=3)

    first, second, *_ = times(twice)
    assert second > 2.0, "a pad holds one signal: rank 1's second waits until rank 0 has taken the first"

    if RANK == 1:
        handle.put_signal(0, channel=4)
    meet()
    assert handle.get_signal_pad(0)[4 * WORLD + 1].item() == 1
    meet()
    if RANK == 0:
        handle.wait_signal(1, channel=4)
    meet()
    assert handle.get_signal_pad(0)[4 * WORLD + 1].item() == 0
    meet()


def check_graph() -> None:
    result = torch.zeros(SIZE, device="cuda")
    graph = torch.cuda.CUDAGraph()
    meet()
    with torch.cuda.graph(graph):
        handle.barrier()
        result.copy_(peer(NEXT))
        handle.barrier()
    for turn in range(3):
        memory.fill_(10.0 * turn + RANK)
        if RANK == 1:
            be_late()
        graph.replay()
        assert result[3].item() == 10.0 * turn + NEXT
    waited = times(graph.replay)
    assert max(waited) - min(waited) < 0.1, waited


@torch.library.custom_op("symmetric_memory::push", mutates_args=())
def push(x: torch.Tensor) -> torch.Tensor:
    peer(NEXT).copy_(x)
    handle.barrier()
    result = memory.clone()
    handle.barrier()
    return result


def check_op_of_the_scripts_own() -> None:
    """What it calls says what is known, eagerly and in a graph."""
    x = torch.full((SIZE,), float(RANK), device="cuda")
    assert push(x)[3].item() == BEFORE
    graph = torch.cuda.CUDAGraph()
    meet()
    with torch.cuda.graph(graph):
        result = push(x)
    for turn in range(2):
        x.fill_(10.0 * turn + RANK)
        graph.replay()
        assert result[3].item() == 10.0 * turn + BEFORE


def check_copies() -> None:
    """Collectives that are made of barriers and copies, and so of known values."""
    shard = torch.full((4, 8), float(RANK), device="cuda")
    gathered = torch.ops.symm_mem._low_contention_all_gather(shard, GROUP)
    gathered = torch.ops._c10d_functional.wait_tensor(gathered)
    assert gathered[:, 0].tolist() == [float(rank) for rank in range(WORLD) for _ in range(4)]
    whole = torch.arange(float(WORLD), device="cuda").repeat_interleave(8)
    reduced = torch.ops.symm_mem._low_contention_reduce_scatter(whole, "sum", GROUP)
    assert torch.ops._c10d_functional.wait_tensor(reduced)[0].item() == WORLD * RANK
    left, right = torch.full((64, 32), RANK + 1.0, device="cuda"), torch.ones(32, 16, device="cuda")
    _, (product,) = torch.ops.symm_mem.fused_all_gather_matmul(left, [right], 0, GROUP)
    assert product[:, 0].tolist() == [32.0 * (rank + 1) for rank in range(WORLD) for _ in range(64)]
    rows, columns = torch.ones(16 * WORLD, 32, device="cuda"), torch.full((32, 16), RANK + 1.0, device="cuda")
    part = torch.ops.symm_mem.fused_matmul_reduce_scatter(rows, columns, "sum", 0, GROUP)
    assert part[0, 0].item() == 32.0 * sum(range(1, WORLD + 1))


def check_kernels() -> None:
    """Kernels that do a whole collective: nobody computes what they write, so it must not be what it was."""
    ops, total = torch.ops.symm_mem, float(sum(range(1, WORLD + 1)))
    local, output = torch.full((SIZE,), RANK + 1.0, device="cuda"), torch.empty(SIZE, device="cuda")

    def after(run: Callable[[], object], results: list[torch.Tensor]) -> None:
        memory.fill_(RANK + 1.0)
        output.fill_(-1.0)
        handle.barrier()
        waited = times(run)
        assert min(waited) > 2.0, waited
        assert max(waited) - min(waited) < 0.1, waited
        assert all(result[5].item() in (total, UNKNOWN) for result in results)
        handle.barrier()

    after(lambda: ops.one_shot_all_reduce_out(memory, "sum", GROUP, output), [output])
    after(lambda: ops.one_shot_all_reduce_copy_out(memory, local, "sum", GROUP, output), [output])
    after(lambda: ops.two_shot_all_reduce_(memory, "sum", GROUP), [memory, peer(NEXT)])
    after(lambda: ops.two_shot_all_reduce_out(memory, "sum", GROUP, output), [output])
    if _SymmetricMemory.has_multicast_support(torch._C._autograd.DeviceType.CUDA, RANK):
        after(lambda: ops.multimem_all_reduce_(memory, "sum", GROUP), [memory, peer(NEXT)])
        after(lambda: ops.multimem_one_shot_all_reduce_out(memory, "sum", GROUP, output), [output])


check_barrier()
check_signals()
check_graph()
check_op_of_the_scripts_own()
check_copies()
check_kernels()
print(f"rank {RANK}: as it should be", flush=True)
dist.destroy_process_group()
