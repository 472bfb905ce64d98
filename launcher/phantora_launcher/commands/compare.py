"""`phantora compare`: what differs between two reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from phantora_launcher.errors import LaunchError
from phantora_py.comparison import print_comparison
from phantora_py.report import SCHEMA

_OF_A_RUN = "name files that `phantora run --json FILE` or `phantora replay --json FILE` wrote"
_NEEDED = {"breakdown", "cluster", "iteration_ns", "iterations", "ops", "ranks", "tokens", "world_size"}


def add_to(app: typer.Typer) -> None:
    app.command("compare")(compare)


def compare(
    first: Annotated[Path, typer.Argument(metavar="A.json", help="A report.")],
    second: Annotated[Path, typer.Argument(metavar="B.json", help="The report to compare it with.")],
) -> None:
    """Say what differs between two reports: iteration, memory, and each op's device time.

    \b
    Example:
      phantora run --cluster dgx-h100 --json eager.json -- torchrun train.py
      phantora run --cluster dgx-h100 --json compiled.json -- torchrun train.py --compile
      phantora compare eager.json compiled.json
    """
    print_comparison((str(first), _read(first)), (str(second), _read(second)))


def _read(file: Path) -> dict[str, Any]:
    try:
        report: Any = json.loads(file.read_text())
    except OSError as error:
        raise LaunchError(f"{file}: {error.strerror or error}", _OF_A_RUN) from error
    except ValueError as error:
        raise LaunchError(f"{file} is no JSON: {error}", _OF_A_RUN) from error
    if not isinstance(report, dict):
        raise LaunchError(f"{file} is no report: it holds no JSON object", _OF_A_RUN)
    if (schema := report.get("schema")) != SCHEMA:
        raise LaunchError(f"{file}: schema {schema!r}, this version reads {SCHEMA!r}", _OF_A_RUN)
    if missing := sorted(_NEEDED - report.keys()):
        raise LaunchError(
            f"{file} lacks {', '.join(missing)}: an earlier version wrote it, or it was edited", _OF_A_RUN
        )
    return report
