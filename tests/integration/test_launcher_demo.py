"""What the demo gives to TorchTitan, as far as it can be checked without running the job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from phantora_launcher import demo
from phantora_launcher.commands.demo import command_line
from phantora_launcher.demo.assets import write_assets

pytest.importorskip("torchtitan")

CHECK = """
import json, sys
from torchtitan.components.tokenizer import HuggingFaceTokenizer
from torchtitan.config import ConfigManager
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataset

config = ConfigManager().parse_args(sys.argv[1:])
layers = config.model_spec.model.layers
tokenizer = HuggingFaceTokenizer(tokenizer_path=config.hf_assets_path)
data = HuggingFaceTextDataset("c4_test", None, tokenizer, seq_len=config.training.seq_len)
sample, labels = next(iter(data))
print(json.dumps({
    "layers": len(layers),
    "attention": sorted({type(layer.attention.inner_attention).__qualname__ for layer in layers}),
    "batch": config.training.local_batch_size,
    "sequence": config.training.seq_len,
    "steps": config.training.steps,
    "graphs": not config.training.disable_cuda_graphs,
    "compile": config.compile.enable,
    "checkpointing": type(config.activation_checkpoint).__qualname__,
    "param": config.training.mixed_precision_param,
    "tokens": len(sample["input"]),
    "bos": tokenizer.bos_id,
    "unknown": int((sample["input"] == 2).sum()),
}))
"""


def test_configuration_is_that_of_the_published_run(tmp_path: Path) -> None:
    write_assets(tmp_path)
    (tmp_path / "titan_llama3_8b.py").write_text((Path(demo.__file__).parent / "titan_llama3_8b.py").read_text())
    arguments = command_line(steps=4)
    arguments = arguments[arguments.index("torchtitan.train") + 1 :]
    variables = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHECK, *arguments],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "layers": 32,
        "attention": ["ScaledDotProductAttention.Config"],
        "batch": 2,
        "sequence": 8192,
        "steps": 4,
        "graphs": False,
        "compile": False,
        "checkpointing": "SelectiveAC.Config",
        "param": "bfloat16",
        "tokens": 8192,
        "bos": 0,
        "unknown": 0,
    }
