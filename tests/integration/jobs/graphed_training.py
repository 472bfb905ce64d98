"""Trains a small block on each rank, its gradients summed, eagerly or (`--graphs`) as replays of a CUDA graph.

The same work on the device either way: gradients are set to zero, not dropped, as a captured backward pass wants it.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

STEPS, CAPTURED_STEP = 8, 1

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
model = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, device=device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
inputs = torch.randn(4, 128, 256, device=device)


def forward_and_backward() -> None:
    model(inputs).square().mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


graph = torch.cuda.CUDAGraph()
for step in range(STEPS):
    if "--graphs" not in sys.argv or step < CAPTURED_STEP:
        forward_and_backward()
    else:
        if step == CAPTURED_STEP:
            with torch.cuda.graph(graph):
                forward_and_backward()
        graph.replay()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
dist.destroy_process_group()
