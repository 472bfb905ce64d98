"""Trains a small transformer language model on one GPU: python single_gpu.py [--steps N]."""

import argparse
import time

import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.embedding(tokens), mask=mask, is_causal=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=1024)
    args = parser.parse_args()

    torch.manual_seed(0)
    vocabulary = 32_000
    with torch.device("cuda"):
        model = LanguageModel(vocabulary, args.width, args.layers, args.width // 128)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    print(f"{torch.cuda.get_device_name()}: {sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters")

    for step in range(args.steps):
        start = time.perf_counter()
        tokens = torch.randint(vocabulary, (args.batch, args.sequence + 1), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        print(f"step {step}: {(time.perf_counter() - start) * 1e3:.1f} ms")
    print(f"peak memory: {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
