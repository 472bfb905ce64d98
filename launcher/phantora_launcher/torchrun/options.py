"""torchrun's options (PyTorch 2.14), with its names, defaults, PET_* variables and ways of abbreviating.

Written without torch, whose import alone would take seconds. A test compares every option with torch's own parser.
"""

from __future__ import annotations

import os
from argparse import REMAINDER, Action, ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any


def parse(arguments: Sequence[str], *, legacy: bool = False, variables: Mapping[str, str] | None = None) -> Namespace:
    """Parses torchrun's command line (`legacy`: torch.distributed.launch's). Exits with code 2 as argparse does."""
    parser = _parser(os.environ if variables is None else variables)
    if legacy:
        parser.add_argument("--use-env", "--use_env", action="store_true", help="pass LOCAL_RANK, not --local-rank")
    return parser.parse_args(arguments)


def comma_separated(text: str) -> list[str]:
    """Items between single commas; a double comma is a comma within an item."""
    return [item.replace("\0", ",") for item in text.replace(",,", "\0").split(",")]


class _Completion(Action):
    """torchrun prints a shell completion; that is not ours to emulate."""

    def __call__(self, parser: ArgumentParser, *_: object, **__: object) -> None:
        parser.exit(2, "phantora: --print-completion is not emulated\n  hint: ask torchrun outside of `phantora run`\n")


class _Table:
    """Adds options whose default may come from PET_<NAME>, as torchrun's do."""

    def __init__(self, parser: ArgumentParser, variables: Mapping[str, str]) -> None:
        self._parser = parser
        self._variables = variables

    def value(self, name: str, default: object, text: str, *, short: str | None = None, **more: Any) -> None:
        default = self._variables.get(_variable(name), default)
        self._parser.add_argument(*_spellings(name, short), default=default, help=text, **more)

    def flag(self, name: str, text: str, *, short: str | None = None) -> None:
        default = bool(int(self._variables.get(_variable(name), "0")))
        self._parser.add_argument(*_spellings(name, short), default=default, action="store_true", help=text)


def _variable(name: str) -> str:
    return "PET_" + name.upper().replace("-", "_")


def _spellings(name: str, short: str | None = None) -> list[str]:
    spellings = [f"--{name}"]
    if "-" in name:
        spellings.append(f"--{name.replace('-', '_')}")
    return [short, *spellings] if short else spellings


def _parser(variables: Mapping[str, str]) -> ArgumentParser:
    parser = ArgumentParser(prog="torchrun", description="torchrun, answered by phantora")
    table = _Table(parser, variables)
    _add_size(table)
    _add_rendezvous(table)
    _add_start(table)
    _add_output(table)
    _add_static(table)
    parser.add_argument(*_spellings("logs-specs"), default=None, help="not emulated")
    parser.add_argument(
        *_spellings("numa-binding"),
        default=None,
        choices=["node", "socket", "exclusive", "core-complex"],
        help="ignored",
    )
    parser.add_argument(*_spellings("print-completion"), action=_Completion, choices=["bash", "zsh", "tcsh"])
    parser.add_argument("training_script", help="the script, followed by its own arguments")
    parser.add_argument("training_script_args", nargs=REMAINDER)
    return parser


def _add_size(table: _Table) -> None:
    table.value("nnodes", "1:1", "number of nodes, or MIN:MAX (MAX counts)")
    table.value("nproc-per-node", "1", "ranks a node: a number, or gpu, auto, cpu")


def _add_rendezvous(table: _Table) -> None:
    table.value("rdzv-backend", "static", "ignored: all ranks are on this machine")
    table.value("rdzv-endpoint", "", "ignored")
    table.value("rdzv-id", "none", "shown to the ranks as TORCHELASTIC_RUN_ID")
    table.value("rdzv-conf", "", "ignored")
    table.flag("standalone", "as --rdzv-backend=c10d with a fresh --rdzv-id")


def _add_start(table: _Table) -> None:
    table.value("max-restarts", 0, "shown to the ranks; a failed job is not restarted", type=int)
    table.value("monitor-interval", 0.1, "ignored: failures are seen at once", type=float)
    table.value("start-method", "spawn", "ignored", choices=["spawn", "fork", "forkserver"])
    table.value("event-log-handler", "null", "ignored")
    table.value("role", "default", "name of the ranks' role")
    table.flag("module", "run the script as `python -m` does", short="-m")
    table.flag("no-python", "execute the script directly")
    table.flag("run-path", "run the script given by an absolute path")
    table.value("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "signals that end the job")
    table.value("shutdown-timeout", None, "seconds between SIGTERM and SIGKILL", type=int)
    table.flag("virtual-local-rank", "each rank sees one GPU, as device 0")


def _add_output(table: _Table) -> None:
    table.value("log-dir", None, "base folder of log files")
    table.value("redirects", "0", "streams to write to files: 1 stdout, 2 stderr, 3 both, or RANK:N,…", short="-r")
    table.value("tee", "0", "streams to write to files and to show, as --redirects", short="-t")
    table.value("log-line-prefix-template", "", "prefix of a tee'd line; knows role_name, local_rank, rank, hostname")
    table.value("local-ranks-filter", "", "local ranks whose output is shown")
    table.value("duplicate-stdout-filters", [], "texts; matching lines of stdout go to a file", type=comma_separated)
    table.value("duplicate-stderr-filters", [], "texts; matching lines of stderr go to a file", type=comma_separated)


def _add_static(table: _Table) -> None:
    table.value("node-rank", 0, "must be 0: one command starts the ranks of all nodes", type=int)
    table.value("master-addr", "127.0.0.1", "ignored: all ranks are on this machine")
    table.value("master-port", None, "ignored: a free port is taken", type=int)
    table.value("local-addr", None, "ignored")
