"""The files that a user asks for beside the table."""

from __future__ import annotations

import os
from pathlib import Path

from phantora_launcher.errors import LaunchError


def check_outputs(json_file: Path | None, trace_file: Path | None) -> None:
    """Before the job, which may take hours, and not when its report is lost. Raises LaunchError."""
    for option, file in (("--json", json_file), ("--trace", trace_file)):
        if file is None:
            continue
        if file.is_dir():
            raise LaunchError(f"{option} {file}: is a folder", "name a file in it")
        if not os.access(file.absolute().parent, os.W_OK | os.X_OK):
            raise LaunchError(f"{option} {file}: no file can be made in {file.absolute().parent}", "does it exist?")
    if json_file is not None and trace_file is not None and _is_one_file(json_file, trace_file):
        raise LaunchError(f"--json and --trace both name {json_file}", "give them files of their own")


def _is_one_file(one: Path, other: Path) -> bool:
    """Of which only one content would be left; /dev/null takes both."""
    return one.resolve() == other.resolve() and (one.is_file() or not one.exists())
