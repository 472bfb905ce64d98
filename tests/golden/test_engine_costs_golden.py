"""Costs of a few launches of a llama3 8B step, held against a file: no constant changes without being seen.

`python tests/golden/test_engine_costs_golden.py` writes the file anew after a wanted change.
"""

from __future__ import annotations

import json
from pathlib import Path

from phantora_py.engines import FusedEngine
from phantora_py.engines.measured import flash_attention, product, tensor
from phantora_py.gpus import find_gpu
from phantora_py.signature import Copy, Signature

FILE = Path(__file__).with_name("engine_costs.json")
GPUS = ("A100-SXM-80GB", "H100-SXM-80GB", "H100-96GB-500W", "B200-SXM")

HIDDEN = tensor("bfloat16", 2, 8192, 4096)
INNER = tensor("bfloat16", 2, 8192, 14336)
LOGITS = tensor("float32", 16384, 128256)
SHARD = tuple(tensor("float32", 512, 4096, role="mut") for _ in range(8))
QUERY, KEY = (2, 32, 8192, 128), (2, 8, 8192, 128)

SIGNATURES = {
    "mm 16384x14336x4096": product(16384, 14336, 4096, "bfloat16"),
    "mm 16384x4096x4096": product(16384, 4096, 4096, "bfloat16"),
    "mm 16384x128256x4096": product(16384, 128256, 4096, "bfloat16"),
    "mm 128x4096x4096": product(128, 4096, 4096, "bfloat16"),
    "weight gradient += fp32": product(4096, 14336, 16384, "bfloat16", accumulate_dtype="float32"),
    "flash forward": flash_attention(QUERY, KEY, 128, causal=True, backward=False),
    "flash backward": flash_attention(QUERY, KEY, 128, causal=True, backward=True),
    "cudnn forward": flash_attention(QUERY, KEY, 128, causal=True, backward=False, cudnn=True),
    "cudnn backward": flash_attention(QUERY, KEY, 128, causal=True, backward=True, cudnn=True),
    "add": Signature("aten::add.Tensor", tensors=(HIDDEN, HIDDEN), scalars=(1,)),
    "silu": Signature("aten::silu", tensors=(INNER,)),
    "rms norm": Signature("aten::_fused_rms_norm", tensors=(HIDDEN, tensor("bfloat16", 4096)), scalars=((4096,), 1e-5)),
    "log softmax": Signature("aten::_log_softmax", tensors=(LOGITS,), scalars=(1, False)),
    "fused adamw": Signature("aten::_fused_adamw_", tensors=(*SHARD, tensor("float32"), tensor("float32"))),
    "copy to host, 64 MiB": Signature(copy=Copy("d2h", 2**26)),
    "raw launch": Signature(kernel="triton_kernel", grid=(4096, 1, 1), block=(256, 1, 1)),
}


def costs() -> dict[str, dict[str, int]]:
    engines = {name: FusedEngine(find_gpu(name)) for name in GPUS}
    return {
        label: {gpu: engine.cost(signature).duration_ns for gpu, engine in engines.items()}
        for label, signature in SIGNATURES.items()
    }


def test_costs_are_as_recorded() -> None:
    assert costs() == json.loads(FILE.read_text())


if __name__ == "__main__":
    FILE.write_text(json.dumps(costs(), indent=2) + "\n")
