"""Recurrent networks and cells train on the emulated device as they do on the CPU."""

from collections.abc import Callable

import torch
from comparing import numbers, same
from torch import nn


def gradients(
    device: str, make: Callable[[], nn.Module], run: Callable[[nn.Module, torch.Tensor], torch.Tensor]
) -> object:
    torch.manual_seed(0)
    module = make().to(device)
    x = numbers(5, 3, 6)(device).requires_grad_()
    output = run(module, x)
    output.square().sum().backward()
    return [output, x.grad, *(parameter.grad for parameter in module.parameters())]


def cells(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    state = None
    for step in x:
        state = module(step, state)
    return torch.cat(state, -1) if isinstance(state, tuple) else state


def networks(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    output, state = module(x)
    states = state if isinstance(state, tuple) else (state,)
    return torch.cat([output.flatten(), *(part.flatten() for part in states)])


for kind in (nn.LSTM, nn.GRU, nn.RNN, lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k)):
    for options in ({}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True}):
        same(lambda d, kind=kind, options=options: gradients(d, lambda: kind(6, 4, **options), networks))
for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
    same(lambda d, kind=kind: gradients(d, lambda: kind(6, 4), cells))


def train(device: str) -> list[float]:
    torch.manual_seed(0)
    network, head = nn.LSTM(6, 8, num_layers=2).to(device), nn.Linear(8, 2).to(device)
    optimizer = torch.optim.SGD([*network.parameters(), *head.parameters()], lr=0.5)
    losses = []
    for _ in range(4):
        loss = head(network(numbers(5, 3, 6)(device))[0][-1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


same(train)
