"""Data-parallel training with DistributedDataParallel: torchrun --nproc-per-node 4 ddp.py [--steps N]."""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def mlp(width: int, layers: int) -> nn.Module:
    def block() -> list[nn.Module]:
        return [nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]

    return nn.Sequential(*(module for _ in range(layers) for module in block()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8192)
    args = parser.parse_args()

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())

    with device:
        model = DistributedDataParallel(mlp(args.width, args.layers).to(torch.bfloat16))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    for step in range(args.steps):
        start = time.perf_counter()
        inputs = torch.randn(args.batch, args.width, device=device, dtype=torch.bfloat16)
        loss = nn.functional.mse_loss(model(inputs), inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(loss.detach(), op=dist.ReduceOp.AVG)
        torch.cuda.synchronize()
        if dist.get_rank() == 0:
            print(f"step {step}: {(time.perf_counter() - start) * 1e3:.1f} ms")

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
