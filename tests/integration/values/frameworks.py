"""Values stay true under what frameworks do: streams, transforms, checkpoints, own operators, forks."""

import os

import torch
from comparing import numbers, same
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

x = numbers(4, 6)


def on_two_streams(device: str) -> torch.Tensor:
    if device == "cpu":
        return x(device) * 3 + 1
    side = torch.cuda.Stream()
    start = x(device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        tripled = start * 3
    torch.cuda.current_stream().wait_stream(side)
    return tripled + 1


def loss(t: torch.Tensor) -> torch.Tensor:
    return (t.sin() * t).sum()


def checkpointed(device: str) -> torch.Tensor:
    leaf = x(device).requires_grad_()
    checkpoint(lambda t: t.sin().mul(t), leaf, use_reentrant=False).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


@torch.library.custom_op("values_test::double", mutates_args=())
def double(t: torch.Tensor) -> torch.Tensor:
    return t * 2


@torch.library.custom_op("values_test::increment", mutates_args=("t",))
def increment(t: torch.Tensor) -> None:
    t.add_(1)


def own_operators(device: str) -> torch.Tensor:
    t = x(device)
    increment(t)
    return double(t)


def inference(device: str) -> torch.Tensor:
    with torch.inference_mode():
        return x(device).add_(1)


same(on_two_streams)
same(lambda d: torch.func.vmap(torch.func.grad(loss))(x(d)))
same(checkpointed)
same(own_operators)
same(inference)
same(lambda d: torch.nested.nested_tensor([x(d), x(d)[:2]], layout=torch.jagged).mul(2).values())

child = os.fork()
if child == 0:
    os._exit(0 if torch.arange(4).cumsum(0).tolist() == [0, 1, 3, 6] else 1)
assert os.waitpid(child, 0)[1] == 0
batches = DataLoader(list(range(8)), batch_size=4, num_workers=2, pin_memory=True)
assert [batch.cuda(non_blocking=True).sum().item() for batch in batches] == [6, 22]
