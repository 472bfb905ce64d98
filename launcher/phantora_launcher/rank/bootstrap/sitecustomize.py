"""Runs at the start of every Python of the job: this folder is on PYTHONPATH and holds nothing else.

It must be fast and must never disturb a program that has nothing to do with training. After our part, the sitecustomize
that this one hides is run.
"""

import os
import sys


def _start() -> None:
    if "PHANTORA_RUN_DIR" not in os.environ:
        return
    from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    launcher = os.path.dirname(os.path.dirname(here))
    name = "phantora_launcher"
    # The job's Python need not have phantora_py installed: the package is taken from where this file lies.
    if name not in sys.modules:
        spec = ModuleSpec(name, SourceFileLoader(name, os.path.join(launcher, "__init__.py")), is_package=True)
        spec.submodule_search_locations = [launcher]
        sys.modules[name] = module_from_spec(spec)
    from phantora_launcher.rank import start

    start.begin()
    _run_hidden(PathFinder, here)


def _run_hidden(finder: type, here: str) -> None:
    """Runs the user's or the distribution's sitecustomize, as if ours were not there."""
    from importlib.util import module_from_spec

    path = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = finder.find_spec("sitecustomize", path)  # type: ignore[attr-defined]
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
