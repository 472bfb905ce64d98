"""Starts, watches and ends emulated jobs: the `phantora` command, torchrun's front, and what runs at a rank's start.

`rank/`, `environment.py` and `aten_hook.py` also run inside the job's own Python, which need not have this package or
its dependencies installed: they use the standard library only and work on Python 3.10 or newer.
"""
