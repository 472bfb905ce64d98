"""A few ranks that train a little, and what may happen to them meanwhile: `disturbed.py WHAT`.

call LIBRARY FUNCTION   rank 1 calls a function of a CUDA library that is loaded
forever                 they go on until they are ended; each writes its pid to up<rank>
pause FIFO              rank 0 waits for the FIFO after the first step, the others for rank 0, with work queued
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
STEPS = 4


def training() -> Callable[[], None]:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    model = torch.nn.Linear(1024, 1024, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        model(torch.randn(4096, 1024, device=device)).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()

    return step


def main() -> None:
    step = training()
    step()
    match sys.argv[1:]:
        case ["call", library, function]:
            if RANK == 1:
                ctypes.CDLL(library)[function]()
        case ["forever"]:
            Path(f"up{RANK}").write_text(str(os.getpid()))
            while True:
                step()
        case ["pause", fifo]:
            if RANK == 0:
                Path(fifo).read_bytes()
    for _ in range(STEPS - 1):
        step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
