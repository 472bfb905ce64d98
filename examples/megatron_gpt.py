"""Trains a GPT with Megatron-Core: its parallel state, pipeline schedule, DDP and distributed optimizer.

torchrun --nnodes 2 --nproc-per-node 4 megatron_gpt.py --tensor 2 --pipeline 2
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
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.transformer_config import TransformerConfig

VOCABULARY = 50_304


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensor", type=int, default=2, help="tensor-parallel size")
    parser.add_argument("--pipeline", type=int, default=2, help="pipeline-parallel size")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--sequence", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


def build_model(args: argparse.Namespace) -> DistributedDataParallel:
    config = TransformerConfig(
        num_layers=args.layers,
        hidden_size=args.hidden,
        num_attention_heads=args.heads,
        tensor_model_parallel_size=args.tensor,
        pipeline_model_parallel_size=args.pipeline,
        pipeline_dtype=torch.bfloat16,
        params_dtype=torch.bfloat16,
        bf16=True,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        gradient_accumulation_fusion=False,
    )
    model = GPTModel(
        config,
        get_gpt_layer_local_spec(),
        vocab_size=VOCABULARY,
        max_sequence_length=args.sequence,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        position_embedding_type="rope",
    ).cuda()
    ddp_config = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True, overlap_grad_reduce=True, use_distributed_optimizer=True
    )
    return DistributedDataParallel(config, ddp_config, Float16Module(config, model))


def batches(args: argparse.Namespace) -> Iterator[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(parallel_state.get_data_parallel_rank())
    positions = torch.arange(args.sequence).repeat(args.micro_batch, 1).cuda()
    while True:
        text = torch.randint(VOCABULARY, (args.micro_batch, args.sequence + 1), generator=generator).cuda()
        yield {"tokens": text[:, :-1], "labels": text[:, 1:], "positions": positions}


def masked_loss(losses: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    loss = losses.float().mean()
    return loss, {"lm loss": loss.detach()}


def forward_step(iterator: Iterator[dict[str, torch.Tensor]], model: torch.nn.Module):
    batch = next(iterator)
    output = model(batch["tokens"], batch["positions"], None, labels=batch["labels"])
    return output, masked_loss


def main() -> None:
    args = arguments()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    parallel_state.initialize_model_parallel(args.tensor, args.pipeline)
    tensor_parallel.model_parallel_cuda_manual_seed(1234)

    hosts: list[str | None] = [None] * dist.get_world_size()
    dist.all_gather_object(hosts, os.uname().nodename)
    if dist.get_rank() == 0:
        print(f"{len(hosts)} ranks on {len(set(hosts))} nodes: {', '.join(sorted({str(host) for host in hosts}))}")

    model = build_model(args)
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16, use_distributed_optimizer=True
        ),
        [model],
    )
    config = model.config
    config.no_sync_func = model.no_sync
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss

    run_schedule = partial(
        get_forward_backward_func(),
        forward_step_func=forward_step,
        model=[model],
        num_microbatches=args.micro_batches,
        seq_length=args.sequence,
        micro_batch_size=args.micro_batch,
    )
    iterator = batches(args)
    for step in range(args.steps):
        start = time.perf_counter()
        model.zero_grad_buffer()
        optimizer.zero_grad()
        run_schedule(data_iterator=iterator)
        successful, _, _ = optimizer.step()
        torch.cuda.synchronize()
        if dist.get_rank() == 0:
            elapsed_ms = (time.perf_counter() - start) * 1e3
            print(f"step {step}: {elapsed_ms:.1f} ms{'' if successful else ' (skipped)'}")

    peaks: list[float | None] = [None] * dist.get_world_size()
    dist.all_gather_object(peaks, torch.cuda.max_memory_allocated() / 2**30)
    if dist.get_rank() == 0:
        print("peak memory, GiB:", ", ".join(f"{peak:.2f}" for peak in peaks if peak is not None))
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
