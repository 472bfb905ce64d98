"""A small model trains on the emulated device as it does on the CPU."""

import torch
from comparing import DEVICES, numbers, to_host
from torch import nn


def train(device: str, kind: str) -> list[float]:
    torch.manual_seed(0)
    model = {
        "mlp": lambda: nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)
        ),
        "conv": lambda: nn.Sequential(
            nn.Unflatten(1, (2, 2, 2)), nn.Conv2d(2, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 4)
        ),
        "linear": lambda: nn.Linear(8, 4),
    }[kind]().to(device)
    optimizers = {
        "mlp": lambda: torch.optim.AdamW(model.parameters(), lr=0.05, fused=True),
        "conv": lambda: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=True),
        "linear": lambda: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, dampening=0.1, fused=True),
    }
    optimizer = optimizers[kind]()
    inputs, targets = numbers(12, 8)(device), torch.arange(12, device=device) % 4
    losses = []
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses += [loss.item(), norm.item()]
    return losses + [p.sum().item() for p in model.parameters()]


def attention(device: str, causal: bool) -> object:
    q, k, v = (numbers(2, 4, 16, 8, seed=s)(device).requires_grad_() for s in range(3))
    out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    out.square().sum().backward()
    return to_host([out, q.grad, k.grad, v.grad])


def scaled(device: str) -> list[float]:
    """Mixed precision with a gradient scaler, on either device."""
    torch.manual_seed(0)
    model = nn.Linear(8, 4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(device, init_scale=4.0, growth_interval=2)
    for _ in range(4):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(numbers(6, 8)(device)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return [scaler.get_scale(), loss.item()]


for kind in ("mlp", "conv", "linear"):
    torch.testing.assert_close(train("cuda", kind), train("cpu", kind), rtol=1e-3, atol=1e-4)
for causal in (False, True):
    on_device, expected = (attention(device, causal) for device in DEVICES)
    torch.testing.assert_close(on_device, expected, rtol=1e-3, atol=1e-4)
torch.testing.assert_close(scaled("cuda"), scaled("cpu"), rtol=2e-2, atol=1e-3)
