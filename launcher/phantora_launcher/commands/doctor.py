"""`phantora doctor`: what is found, what is missing and how to mend it."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from phantora_launcher import exit_codes
from phantora_launcher.diagnosis import Diagnosis, Verdict, diagnose
from phantora_native.functions import Policy
from phantora_py.plain_console import plain_console

_MARKS = {Verdict.GOOD: ("ok", "green"), Verdict.NOTE: ("note", "yellow"), Verdict.BAD: ("BAD", "red")}
"""Word and colour."""


def add_to(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    python: Annotated[str, typer.Option(metavar="PYTHON", help="The Python that your job runs in.")] = sys.executable,
    symbols: Annotated[bool, typer.Option("--symbols", help="List every CUDA function that torch imports.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what is found, what is missing and how to mend it. Exit code 1 if jobs cannot run."""
    diagnosis = diagnose(python)
    if as_json:
        print(json.dumps(diagnosis.to_json(), indent=1))
    else:
        _show(diagnosis, symbols)
    raise typer.Exit(exit_codes.OK if diagnosis.is_good else exit_codes.FAILED)


def _show(diagnosis: Diagnosis, with_symbols: bool) -> None:
    console = plain_console()
    for finding in diagnosis.findings:
        word, colour = _MARKS[finding.verdict]
        line = Text.assemble((f"{word:>6}", colour), " ", (finding.what, "bold"), f": {finding.found}")
        console.print(line, soft_wrap=True)
        if finding.hint and finding.verdict is not Verdict.GOOD:
            console.print(f"       hint: {finding.hint}", soft_wrap=True)
    shown = [symbol for symbol in diagnosis.symbols if with_symbols or symbol.policy is Policy.ABSENT]
    if shown:
        table = Table("library", "function", "policy", box=None, header_style="bold")
        for symbol in shown:
            table.add_row(symbol.library, symbol.name, symbol.policy.value)
        console.print(table)
