"""A TorchTitan config module: Llama 3 8B in the setting of TorchTitan's published runs of December 2024.

Where TorchTitan 0.3.0 has other defaults now, the setting of then is chosen, with the options that it has for that:

- FlashAttention for SDPA: PyTorch had put cuDNN last among its backends in October 2024 (pytorch/pytorch pull request
  138522), and TorchTitan asked for it only from March 2025 (pytorch/torchtitan pull request 1000).
- The loss over all logits at once: TorchTitan got its chunked loss in 2026 (pull request 2937).
"""

from torch.nn.attention import SDPBackend
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.llama3.config_registry import llama3_8b
from torchtitan.trainer import Trainer


def llama3_8b_sdpa() -> Trainer.Config:
    config = llama3_8b()
    ScaledDotProductAttention.sdpa_backends = [SDPBackend.FLASH_ATTENTION]
    for layer in config.model_spec.model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    config.loss = config.loss.loss_fn
    config.dataloader.dataset = "c4_test"
    config.hf_assets_path = "./assets"
    config.profiler.enable_profiling = False
    config.metrics.enable_tensorboard = False
    config.metrics.log_freq = 1
    config.training.local_batch_size = 2
    return config
