"""Three iterations with optimizers that step in turn: `two_optimizers.py gan|backward`."""

import sys

import torch

ITERATIONS = 3


def gan() -> None:
    generator, critic = (torch.nn.Linear(512, 512, device="cuda") for _ in range(2))
    optimizers = {model: torch.optim.AdamW(model.parameters()) for model in (critic, generator)}
    for _ in range(ITERATIONS):
        for model, optimizer in optimizers.items():
            critic(generator(torch.randn(64, 512, device="cuda"))).mean().backward()
            optimizer.step()
            model.zero_grad()


def backward() -> None:
    """Each parameter has an optimizer of its own, which steps as soon as its gradient is there."""
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512, device="cuda") for _ in range(4)))
    optimizers = {parameter: torch.optim.SGD([parameter]) for parameter in model.parameters()}

    def step(parameter: torch.Tensor) -> None:
        optimizers[parameter].step()
        parameter.grad = None

    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(step)
    for _ in range(ITERATIONS):
        model(torch.randn(64, 512, device="cuda")).mean().backward()


if __name__ == "__main__":
    {"gan": gan, "backward": backward}[sys.argv[1]]()
