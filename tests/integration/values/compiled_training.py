"""Trains eagerly, compiled, and with Triton's templates for all products and convolutions: two steps each, of which the
first compiles."""

import torch
import torch._inductor.config
from torch import nn
from torch.nn import functional

WIDTH, IMAGE = 512, 32
TEMPLATES = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
    "epilogue_fusion": False,  # so that a template costs its product alone
}


class Model(nn.Module):
    """A convolution that makes tokens, and a transformer's feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(64, WIDTH, 3, padding=1, bias=False)
        self.norm = nn.RMSNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.convolution(images).flatten(2).transpose(1, 2)
        return x + self.down(functional.gelu(self.up(self.norm(x))))


torch._inductor.config.test_configs.max_mm_configs = 1
with torch.device("cuda"):
    model = Model().bfloat16().to(memory_format=torch.channels_last)
    batch = torch.randn(8, 64, IMAGE, IMAGE, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    batch.requires_grad_()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for way in (model, torch.compile(model), torch.compile(model, options=TEMPLATES)):
    for _ in range(2):
        way(batch).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
