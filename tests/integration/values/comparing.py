"""Compares what a script sees of a CUDA tensor with the same computation on the CPU."""

from collections.abc import Callable
from typing import Any

import torch

DEVICES = ("cuda", "cpu")


def same(compute: Callable[[str], Any]) -> None:
    """`compute(device)` gives the same on both devices, as the host sees it."""
    on_device, expected = (to_host(compute(device)) for device in DEVICES)
    torch.testing.assert_close(on_device, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def same_gradients(compute: Callable[..., torch.Tensor], *inputs: Callable[[str], torch.Tensor]) -> None:
    """`compute(*inputs)` and the gradients of its inputs are the same on both devices.

    What forward saves for backward differs between them: it has to be what the other device's backward takes.
    """

    def forward_and_backward(device: str) -> list[torch.Tensor]:
        tensors = [make(device) for make in inputs]
        leaves = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]
        output = compute(*tensors)
        return [output, *torch.autograd.grad(output.square().sum(), leaves)]

    same(forward_and_backward)


def to_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return [to_host(item) for item in value]
    return value


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Callable[[str], torch.Tensor]:
    """The same numbers on either device: integers from -50 to 50 for integer types, normal ones otherwise."""
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        values = torch.randn(*shape, generator=generator).to(dtype)
    else:
        values = torch.randint(-50, 51, shape, generator=generator).to(dtype)
    return lambda device: values.to(device, copy=True)
