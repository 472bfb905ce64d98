"""GPT in fp16 with tensor, pipeline and data parallelism and full recomputation, on Megatron-Core.

torchrun --nproc-per-node 8 gpt_fp16.py --tensor 2 --pipeline 2 --micro-batch 2 --micro-batches 4

The nearest to Megatron-DeepSpeed of 2023 without ZeRO that Megatron-Core alone gives: dropout of 0.1, learned
positions, attention op by op, fused Adam, gradients reduced in fp16 after the last micro-batch.

Not as there: mask and softmax are two kernels (three backward) instead of one; bias and GELU, and bias, dropout and
residual, are kernels of their own (Megatron's fused ones need Apex or a compiler).
"""

import argparse
import os
import time
from collections.abc import Iterator
from functools import partial

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import MegatronOptimizer, OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.transformer_config import TransformerConfig

GPT2_TOKENS = 50_257


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensor", type=int, default=1, help="tensor-parallel size")
    parser.add_argument("--pipeline", type=int, default=1, help="pipeline-parallel size")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


def padded_vocabulary(tensor: int) -> int:
    """Rounded up so that every tensor-parallel rank has a multiple of 128."""
    multiple = 128 * tensor
    return -(-GPT2_TOKENS // multiple) * multiple


def build_model(args: argparse.Namespace) -> DistributedDataParallel:
    config = TransformerConfig(
        num_layers=args.layers,
        hidden_size=args.hidden,
        num_attention_heads=args.heads,
        tensor_model_parallel_size=args.tensor,
        pipeline_model_parallel_size=args.pipeline,
        pipeline_dtype=torch.float16,
        params_dtype=torch.float16,
        fp16=True,
        attention_softmax_in_fp32=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        recompute_granularity="full",
        recompute_method="uniform",
        recompute_num_layers=1,
    )
    model = GPTModel(
        config,
        get_gpt_layer_local_spec(),
        vocab_size=padded_vocabulary(args.tensor),
        max_sequence_length=args.sequence,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        share_embeddings_and_output_weights=True,
        position_embedding_type="learned_absolute",
    ).cuda()
    reduction = DistributedDataParallelConfig(grad_reduce_in_fp32=False, overlap_grad_reduce=False)
    return DistributedDataParallel(config, reduction, Float16Module(config, model))


class CausalSoftmax(torch.autograd.Function):
    """Softmax of causally masked scores, masked in place."""

    @staticmethod
    def forward(ctx, scores: torch.Tensor, future: torch.Tensor) -> torch.Tensor:
        shares = scores.masked_fill_(future, -torch.inf).softmax(-1)
        ctx.save_for_backward(shares)
        return shares

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (shares,) = ctx.saved_tensors  # 0 where masked, and so is the gradient there
        return torch._softmax_backward_data(gradient, shares, -1, shares.dtype), None


class MaskedSoftmax(torch.nn.Module):
    def forward(self, scores: torch.Tensor, mask: None, softmax_offset: None = None) -> torch.Tensor:
        rows, columns = scores.shape[-2:]
        future = torch.ones(rows, columns, dtype=torch.bool, device=scores.device).triu(1)
        return CausalSoftmax.apply(scores, future)


def use_lean_kernels(model: torch.nn.Module, optimizer: MegatronOptimizer) -> None:
    for module in model.modules():
        if isinstance(module, DotProductAttention):
            module.scale_mask_softmax = MaskedSoftmax()
    for group in optimizer.param_groups:
        group["fused"], group["foreach"] = True, False


def batches(args: argparse.Namespace) -> Iterator[dict[str, torch.Tensor]]:
    positions = torch.arange(args.sequence).repeat(args.micro_batch, 1).cuda()
    while True:
        text = torch.randint(GPT2_TOKENS, (args.micro_batch, args.sequence + 1), device="cuda")
        yield {"tokens": text[:, :-1], "labels": text[:, 1:], "positions": positions}


def mean_loss(losses: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    loss = losses.float().mean()
    return loss, {"lm loss": loss.detach()}


def forward_step(iterator: Iterator[dict[str, torch.Tensor]], model: torch.nn.Module):
    batch = next(iterator)
    return model(batch["tokens"], batch["positions"], None, labels=batch["labels"]), mean_loss


def main() -> None:
    args = arguments()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    parallel_state.initialize_model_parallel(args.tensor, args.pipeline)
    tensor_parallel.model_parallel_cuda_manual_seed(1234)
    model = build_model(args)
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-4, fp16=True, params_dtype=torch.float16, initial_loss_scale=2.0**16),
        [model],
    )
    use_lean_kernels(model, optimizer)
    model.config.no_sync_func = model.no_sync
    model.config.finalize_model_grads_func = finalize_model_grads
    model.config.grad_scale_func = optimizer.scale_loss

    run_schedule = partial(
        get_forward_backward_func(),
        forward_step_func=forward_step,
        model=[model],
        num_microbatches=args.micro_batches,
        seq_length=args.sequence,
        micro_batch_size=args.micro_batch,
        forward_only=False,
    )
    iterator = batches(args)
    for step in range(args.steps):
        start = time.perf_counter()
        model.zero_grad_buffer()
        optimizer.zero_grad()
        run_schedule(data_iterator=iterator)
        optimizer.step()
        torch.cuda.synchronize()
        if dist.get_rank() == 0:
            print(f"step {step}: {(time.perf_counter() - start) * 1e3:.1f} ms")
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
