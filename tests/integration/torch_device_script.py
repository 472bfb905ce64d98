"""What an ordinary script does with one GPU, on an emulated one without a simulator."""

import os
import threading

import pytest
import torch
from torch import nn


def train() -> None:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(torch.randn(16, 64, device="cuda")), torch.arange(16).cuda() % 10)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() >= 64 * 128 * 4


def run_out_of_memory() -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    with pytest.raises(torch.OutOfMemoryError, match=f"total capacity of {total / 2**30:.2f} GiB"):
        torch.empty(total, dtype=torch.uint8, device="cuda")
    free, _ = torch.cuda.mem_get_info()
    held = torch.empty(free - (64 << 20), dtype=torch.uint8, device="cuda")
    assert torch.cuda.mem_get_info()[0] < 65 << 20
    del held
    torch.cuda.empty_cache()


def use_streams_and_events() -> None:
    side = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        torch.ones(256, 256, device="cuda") @ torch.ones(256, 256, device="cuda")
    end.record(side)
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) > 0
    assert torch.arange(10).pin_memory().to("cuda", non_blocking=True).cpu().tolist() == list(range(10))


def use_another_thread() -> None:
    results: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: results.append(torch.tensor([1, 2, 3]).cuda().cpu()))
    thread.start()
    thread.join()
    assert results[0].tolist() == [1, 2, 3]


def fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def main() -> None:
    assert torch.cuda.device_count() == 4
    assert "H100" in torch.cuda.get_device_name()
    train()
    run_out_of_memory()
    use_streams_and_events()
    use_another_thread()
    fork()


if __name__ == "__main__":
    main()
