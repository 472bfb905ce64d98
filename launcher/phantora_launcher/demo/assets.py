"""A tiny tokenizer and text, so that TorchTitan's own data loader runs without a hub."""

from __future__ import annotations

import json
import random
from pathlib import Path

_WORDS = 4096
_DOCUMENTS = 256
_WORDS_PER_DOCUMENT = 2048
_BEGIN, _END, _UNKNOWN = "<|begin_of_text|>", "<|end_of_text|>", "<unk>"


def write_assets(folder: Path) -> None:
    """Writes assets/tokenizer*.json and tests/assets/c4_test/data.json, where the config module and TorchTitan look."""
    _write_tokenizer(folder / "assets")
    _write_text(folder / "tests" / "assets" / "c4_test")


def _write_tokenizer(folder: Path) -> None:
    folder.mkdir(parents=True)
    words = [_BEGIN, _END, _UNKNOWN, *(_word(index) for index in range(_WORDS))]
    special = [
        {
            "id": index,
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, word in enumerate((_BEGIN, _END, _UNKNOWN))
    ]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: index for index, word in enumerate(words)},
            "unk_token": _UNKNOWN,
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": _BEGIN, "eos_token": _END}))


def _write_text(folder: Path) -> None:
    folder.mkdir(parents=True)
    chooser = random.Random(0)
    with open(folder / "data.json", "w") as file:
        for _ in range(_DOCUMENTS):
            words = (_word(chooser.randrange(_WORDS)) for _ in range(_WORDS_PER_DOCUMENT))
            file.write(json.dumps({"text": " ".join(words)}) + "\n")


def _word(index: int) -> str:
    return f"w{index}"
