"""`phantora dump`: a recording as text."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from phantora_launcher.errors import LaunchError
from phantora_py import dump as text_dump
from phantora_py.frames import ProtocolError


def add_to(app: typer.Typer) -> None:
    app.command("dump")(dump)


def dump(
    recording: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A rank-N.bin, or the folder of --record.")],
) -> None:
    """Print a recording (`phantora run --record`) as text, one line a record."""
    files = sorted(recording.glob("rank-*.bin")) if recording.is_dir() else [recording]
    if not files:
        raise LaunchError(f"{recording} holds no rank-N.bin", "give the folder that `phantora run --record` wrote")
    try:
        with contextlib.suppress(BrokenPipeError):
            for file in files:
                if len(files) > 1:
                    print(f"# {file.name}")
                for line in text_dump.dump(file):
                    print(line)
    except (OSError, ProtocolError) as error:
        what, _, hint = str(error).partition("\n  hint: ")
        raise LaunchError(what, hint or "is it a recording of this version of phantora?") from error
