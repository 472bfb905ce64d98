"""The `phantora` command."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Annotated

import typer

from phantora_launcher import exit_codes
from phantora_launcher.commands import bench, clusters, compare, demo, doctor, dump, replay, run, topology
from phantora_launcher.errors import LaunchError

_HELP = """Tells how long a training iteration of your own PyTorch job takes on a GPU cluster, without one.

\b
Examples:
  phantora demo
  phantora run --cluster dgx-h100 -- python train.py
  phantora run --cluster dgx-h100:2 --json report.json -- torchrun --nnodes 2 --nproc-per-node 8 train.py
  phantora run --cluster mine.toml --trace trace.json.gz -- bash run.sh
  phantora doctor
"""

_EPILOG = (
    "Exit codes: 0 all well; 2 wrong command line, cluster or machine, nothing was started; 70 the emulation could not "
    "go on; 128+n ended by signal n (130: Ctrl-C). `phantora run` otherwise ends with the job's own code."
)

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"phantora_py {importlib.metadata.version('phantora_py')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command."""


for _command in (run, replay, compare, demo, doctor, clusters, topology, bench, dump):
    _command.add_to(app)


def run_command() -> None:
    """Runs the command line; ends the process with the exit code."""
    try:
        app()
    except LaunchError as error:
        print(f"phantora: {error}", file=sys.stderr)
        sys.exit(exit_codes.USAGE)
