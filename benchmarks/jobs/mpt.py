"""MPT as llm-foundry 0.4 trained it with Composer 0.16 for its published benchmarks, in plain PyTorch.

torchrun --nproc-per-node 8 mpt.py --width 4096 --layers 32 --sequence 2048 --micro-batch 6 --micro-batches 1 1 2

As there: FSDP1 around every block, bf16 parameters and fp32 reduction ("DEFAULT"), gathered and reduced in every
micro-batch, BACKWARD_POST; heads 128 wide, biases, learned positions, tied embeddings, LayerNorm and GELU in bf16;
activation checkpointing of whole blocks; clipping by the global norm; an AdamW of single element-wise kernels that
reads its step back from the GPU for every parameter; two metrics (cross-entropy, perplexity) in fp32 over all logits.

Not as there: attention is FlashAttention-2, theirs was FlashAttention 1 in Triton; the loss is PyTorch's in bf16,
theirs one fused kernel.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Iterable
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

VOCABULARY = 50_368
HEAD_WIDTH = 128


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, dim=-1)
        )
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Mpt(nn.Module):
    def __init__(self, width: int, layers: int, sequence: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(0)
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


class CrossEntropy(torch.autograd.Function):
    """Mean cross-entropy that, like a fused kernel, needs no more memory than the logits and their gradient."""

    @staticmethod
    def forward(ctx, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        log_probabilities = logits.log_softmax(-1)
        ctx.save_for_backward(log_probabilities, targets)
        return functional.nll_loss(log_probabilities, targets)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        log_probabilities, targets = ctx.saved_tensors
        of_logits = log_probabilities.exp_()
        of_logits[torch.arange(len(targets), device=targets.device), targets] -= 1
        return of_logits.mul_(gradient / len(targets)), None


class DecoupledAdamW(torch.optim.Optimizer):
    """Adam, one kernel for each operation on each parameter; the step counters live on the GPU."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float], eps: float) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            with_gradient = [parameter for parameter in group["params"] if parameter.grad is not None]
            for parameter in with_gradient:
                state = self.state[parameter]
                if not state:
                    state["step"] = torch.zeros((), device=parameter.device)
                    state["mean"] = torch.zeros_like(parameter)
                    state["square"] = torch.zeros_like(parameter)
                state["step"] += 1
            for parameter in with_gradient:
                self.update(parameter, **self.state[parameter], lr=group["lr"], betas=group["betas"], eps=group["eps"])

    def update(
        self,
        parameter: torch.Tensor,
        step: torch.Tensor,
        mean: torch.Tensor,
        square: torch.Tensor,
        lr: float,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        gradient = parameter.grad
        count = step.item()
        mean.mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
        square.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
        scale = (square.sqrt() / math.sqrt(1 - betas[1] ** count)).add_(eps)
        parameter.addcdiv_(mean, scale, value=-lr / (1 - betas[0] ** count))


def build_model(args: argparse.Namespace, device: torch.device) -> FullyShardedDataParallel:
    with torch.device("meta"):
        model = Mpt(args.width, args.layers, args.sequence)
    sharded = FullyShardedDataParallel(
        model,
        auto_wrap_policy=ModuleWrapPolicy({Block}),
        mixed_precision=MixedPrecision(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.bfloat16
        ),
        backward_prefetch=BackwardPrefetch.BACKWARD_POST,
        limit_all_gathers=True,
        use_orig_params=True,
        device_id=device,
        param_init_fn=lambda module: module.to_empty(device=device, recurse=False),
    )
    if args.checkpoint:
        wrapper = partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
        apply_activation_checkpointing(
            sharded, checkpoint_wrapper_fn=wrapper, check_fn=lambda module: isinstance(module, Block)
        )
    with torch.no_grad():
        for parameter in sharded.parameters():
            nn.init.normal_(parameter, std=0.02)
    return sharded


def measure(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """What each of the two metrics computes, under autocast in fp32."""
    with torch.no_grad():
        return functional.cross_entropy(logits.float(), targets, reduction="sum")


def train_micro_batch(model: nn.Module, args: argparse.Namespace, share: float, device: torch.device) -> None:
    tokens = torch.randint(VOCABULARY, (args.micro_batch, args.sequence), device=device)
    targets = tokens.roll(-1).flatten()
    logits = model(tokens).flatten(0, 1)
    loss = CrossEntropy.apply(logits, targets)
    (share * loss).backward()
    for _ in ("cross-entropy", "perplexity"):
        measure(logits, targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--sequence", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=6)
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 1, 1], help="of each step, in turn")
    parser.add_argument("--checkpoint", action="store_true", help="recompute every block in the backward pass")
    args = parser.parse_args()

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())
    model = build_model(args, device)
    optimizer = DecoupledAdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), eps=1e-8)

    for step, micro_batches in enumerate(args.micro_batches):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for _ in range(micro_batches):
            train_micro_batch(model, args, 1 / micro_batches, device)
        model.clip_grad_norm_(1.0)
        optimizer.step()
        torch.cuda.synchronize()
        if dist.get_rank() == 0:
            print(f"step {step}: {(time.perf_counter() - start) * 1e3:.1f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
