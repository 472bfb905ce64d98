"""`phantora compare`: what differs between two reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phantora_launcher.report_file import read_report
from phantora_py.comparison import print_comparison


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
    print_comparison((str(first), read_report(first)), (str(second), read_report(second)))
