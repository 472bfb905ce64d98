"""`python -m phantora_launcher.torchrun PYTHON PROGRAM ARGUMENT…`: runs in phantora's own Python, for the job's PYTHON.

PROGRAM is "torchrun" or "launch" (the older torch.distributed.launch). sitecustomize.py (rank/bootstrap) executes it in
the place of torchrun.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from phantora_launcher import aten_hook, environment, exit_codes
from phantora_launcher.errors import LaunchError
from phantora_launcher.run_folder import JOB
from phantora_launcher.torchrun.agent import Agent
from phantora_launcher.torchrun.options import parse
from phantora_launcher.torchrun.output import Output
from phantora_launcher.torchrun.plan import Machine, make_plan
from phantora_launcher.torchrun.simulator_link import SimulatorLink


def main(arguments: Sequence[str]) -> int:
    python, program, *rest = arguments
    options = parse(rest, legacy=program == "launch")
    try:
        run_dir = Path(os.environ[environment.RUN_DIR])
        with _free_port() as port:
            plan = make_plan(options, _machine(run_dir), python, port, os.environ)
            output = Output(options, plan, run_dir)
            aten_hook.prepare(python, os.environ)
            with SimulatorLink(run_dir) as link:
                return Agent(options, plan, output, link).run(os.environ)
    except LaunchError as error:
        print(f"phantora: torchrun: {error}", file=sys.stderr)
        return exit_codes.USAGE


def _machine(run_dir: Path) -> Machine:
    facts = json.loads((run_dir / JOB).read_text())
    return Machine(facts["cluster"], facts["nodes"], facts["gpus_per_node"])


@contextmanager
def _free_port() -> Iterator[int]:
    """A port for rank 0's store. It stays bound here, so that no other program gets it; rank 0 may bind it too."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))
        yield holder.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
