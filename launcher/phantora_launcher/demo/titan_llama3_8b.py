"""A TorchTitan config module: Llama 3 8B with SDPA attention, as in TorchTitan's published runs of December 2024."""

from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.llama3.config_registry import llama3_8b
from torchtitan.trainer import Trainer


def llama3_8b_sdpa() -> Trainer.Config:
    config = llama3_8b()
    for layer in config.model_spec.model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    config.dataloader.dataset = "c4_test"
    config.hf_assets_path = "./assets"
    config.profiler.enable_profiling = False
    config.metrics.enable_tensorboard = False
    config.metrics.log_freq = 1
    config.training.local_batch_size = 2
    return config
