"""Runs at the start of every Python of the job: this folder is on PYTHONPATH and holds nothing else.

It must be fast and must never disturb a program that has nothing to do with training. After our part, the sitecustomize
that this one hides is run.
"""

import os
import sys


def _start() -> None:
    if "PHANTORA_RUN_DIR" not in os.environ:
        return
    here = os.path.dirname(os.path.abspath(__file__))
    _make_package_importable(os.path.dirname(os.path.dirname(here)))
    from phantora_launcher.rank import start

    start.begin()
    _run_hidden(here)


def _make_package_importable(folder: str) -> None:
    """The job's Python need not have phantora_py installed: the package is taken from where this file lies."""
    name = "phantora_launcher"
    package = type(sys)(name)
    package.__path__ = [folder]
    package.__file__ = os.path.join(folder, "__init__.py")
    sys.modules.setdefault(name, package)


def _run_hidden(here: str) -> None:
    """Runs the user's or the distribution's sitecustomize, as if ours were not there."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if os.path.abspath(entry) != here])
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__file__, module.__loader__ = spec, spec.origin, spec.loader
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
