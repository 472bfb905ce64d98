"""The shell commands that README.md, docs/*.md, ARCHITECTURE.md and the help texts of `phantora` show."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from typer import Typer

from phantora_launcher.cli import app

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md")))
_PROGRAMS = frozenset({"bash", "phantora", "pip", "pytest", "python", "torchrun"})
_PICTURE = re.compile("[│├└─]")
_FENCED = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)
_INLINE = re.compile(r"`([^`]+)`")


def commands() -> dict[str, list[str]]:
    """Command, as it is shown → where."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for command in in_markdown(page.read_text()):
            found.setdefault(command, []).append(str(page.relative_to(ROOT)))
    for name, text in _help_texts():
        for command in _in_block(text):
            found.setdefault(command, []).append(f"{name} --help")
    return found


def in_markdown(text: str) -> Iterator[str]:
    """Lines of code blocks, fenced or indented, and code within sentences; an option alone is no command."""
    for block in (*_FENCED.findall(text), *_INDENTED.findall(_FENCED.sub("", text))):
        if not _PICTURE.search(block):
            yield from _in_block(block)
    for code in _INLINE.findall(text.replace("```", "")):
        yield from _in_block(" ".join(code.split()))


def _in_block(block: str) -> Iterator[str]:
    for line in block.replace("\\\n", " ").splitlines():
        words = line.partition(" #")[0].split()
        if len(words) > 1 and words[0] in _PROGRAMS:
            yield " ".join(words)


def _help_texts() -> Iterator[tuple[str, str]]:
    yield "phantora", str(app.info.help)
    yield from _help_of(app, "phantora")


def _help_of(typed: Typer, name: str) -> Iterator[tuple[str, str]]:
    for command in typed.registered_commands:
        own = command.name or getattr(command.callback, "__name__", "")
        yield f"{name} {own}", inspect.getdoc(command.callback) or ""
    for group in typed.registered_groups:
        if group.typer_instance is not None:
            yield from _help_of(group.typer_instance, f"{name} {group.name}")
