"""Where the ranks' output goes: through, to files, or both with a prefix, as torchrun does it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from string import Template
from typing import TextIO

from phantora_launcher.errors import LaunchError
from phantora_launcher.torchrun.plan import Plan, RankPlan

_TAIL_INTERVAL_S = 0.1
_PREFIX_VARIABLE = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"


class Streams(IntFlag):
    NONE = 0
    OUT = 1
    ERR = 2


@dataclass(frozen=True)
class Destination:
    """Files of one rank; a stream without one is passed through."""

    stdout: Path | None
    stderr: Path | None
    error_file: Path | None
    """Where torch's @record writes the exception that ended the rank."""


@dataclass(frozen=True)
class Tail:
    """A file that is copied to a stream, line by line, with a prefix."""

    file: Path
    target: TextIO
    prefix: str
    needles: Sequence[str] | None = None
    """Only lines that hold one of these; None: every line."""


class Output:
    """The folder tree of torchrun's log files, one run folder a node, and the tails that show them."""

    def __init__(self, options: Namespace, plan: Plan, private: Path) -> None:
        self._options = options
        self._plan = plan
        self._redirects = parse_streams("--redirects", options.redirects)
        self._tee = parse_streams("--tee", options.tee)
        self._shown = _parse_filter(options.local_ranks_filter)
        self._template = options.log_line_prefix_template or os.environ.get(_PREFIX_VARIABLE, "")
        self._filtered: list[TextIO] = []
        self._tails: list[Tail] = []
        self._discard = options.log_dir == os.devnull
        self.destinations: list[Destination] = []
        folders = [
            self._attempt_folder(Path(options.log_dir) if options.log_dir else private) for _ in range(plan.nodes)
        ]
        for node, folder in enumerate(folders):
            self._add_node(node, folder)
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._tails:
            self._thread = threading.Thread(target=_follow, args=(self._tails, self._finished), name="tails")
            self._thread.start()

    def finish(self) -> None:
        """Shows what is left of the files and closes everything."""
        self._finished.set()
        if self._thread is not None:
            self._thread.join()
        for file in self._filtered:
            file.close()

    def _attempt_folder(self, base: Path) -> Path | None:
        if self._discard:
            return None
        try:
            base.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f"{self._plan.run_id}_", dir=base)) / "attempt_0"
            folder.mkdir()
        except OSError as error:
            raise LaunchError(
                f"cannot make a log folder in {base}: {error.strerror}", "choose another --log-dir"
            ) from error
        return folder

    def _add_node(self, node: int, folder: Path | None) -> None:
        duplicates = [
            (Streams.OUT, self._options.duplicate_stdout_filters, "filtered_stdout.log"),
            (Streams.ERR, self._options.duplicate_stderr_filters, "filtered_stderr.log"),
        ]
        filtered: dict[Streams, tuple[Sequence[str], TextIO]] = {}
        for stream, needles, name in duplicates:
            if needles and folder is not None:
                file = open(folder / name, "w", buffering=1, errors="replace")  # noqa: SIM115  closed by finish()
                self._filtered.append(file)
                filtered[stream] = (needles, file)
        for rank in self._plan.ranks:
            if rank.node == node:
                self._add_rank(rank, folder, filtered)

    def _add_rank(
        self, rank: RankPlan, folder: Path | None, filtered: dict[Streams, tuple[Sequence[str], TextIO]]
    ) -> None:
        if folder is None:
            self.destinations.append(Destination(None, None, None))
            return
        own = folder / str(rank.local_rank)
        own.mkdir()
        tee = _of(self._tee, rank.local_rank)
        to_file = _of(self._redirects, rank.local_rank) | tee
        is_shown = self._shown is None or rank.local_rank in self._shown
        otherwise = None if is_shown else Path(os.devnull)
        stdout = own / "stdout.log" if Streams.OUT in to_file else otherwise
        stderr = own / "stderr.log" if Streams.ERR in to_file else otherwise
        self.destinations.append(Destination(stdout, stderr, own / "error.json"))
        if is_shown:
            for stream, file, target in ((Streams.OUT, stdout, sys.stdout), (Streams.ERR, stderr, sys.stderr)):
                if stream in tee and file is not None:
                    self._add_tails(rank, file, target, filtered.get(stream))

    def _add_tails(
        self, rank: RankPlan, file: Path, target: TextIO, filtered: tuple[Sequence[str], TextIO] | None
    ) -> None:
        prefix = self._prefix(rank)
        self._tails.append(Tail(file, target, prefix))
        if filtered is not None:
            needles, duplicate = filtered
            self._tails.append(Tail(file, duplicate, prefix, needles))

    def _prefix(self, rank: RankPlan) -> str:
        if not self._template:
            return f"[{self._plan.role}{rank.local_rank}]:"
        return Template(self._template).safe_substitute(
            role_name=self._plan.role, rank=rank.rank, local_rank=rank.local_rank, hostname=rank.hostname
        )


def parse_streams(option: str, text: str) -> Streams | dict[int, Streams]:
    """Reads "3", or "0:1,2:3" for single local ranks. Raises LaunchError."""
    if re.fullmatch(r"[0-3]", text):
        return Streams(int(text))
    if not re.fullmatch(r"\d+:[0-3](,\d+:[0-3])*", text):
        raise LaunchError(
            f"{option} is {text!r}", "it must be 0, 1, 2 or 3, or a list like 0:1,1:3 (local rank:streams)"
        )
    pairs = (item.split(":") for item in text.split(","))
    return {int(local): Streams(int(streams)) for local, streams in pairs}


def _of(streams: Streams | dict[int, Streams], local_rank: int) -> Streams:
    return streams.get(local_rank, Streams.NONE) if isinstance(streams, dict) else streams


def _parse_filter(text: str) -> set[int] | None:
    if not text:
        return None
    try:
        return {int(item) for item in text.split(",")}
    except ValueError:
        raise LaunchError(f"--local-ranks-filter is {text!r}", "it must be local ranks between commas: 0,1") from None


def _follow(tails: Sequence[Tail], finished: threading.Event) -> None:
    """Copies whole lines from the files until all writers have finished."""
    files = [open(tail.file, errors="replace") for tail in tails]  # noqa: SIM115  closed below
    try:
        while True:
            is_last_round = finished.wait(_TAIL_INTERVAL_S)
            for tail, file in zip(tails, files, strict=True):
                _copy_lines(tail, file, is_last_round)
            if is_last_round:
                return
    finally:
        for file in files:
            file.close()


def _copy_lines(tail: Tail, file: TextIO, is_last_round: bool) -> None:
    while True:
        start = file.tell()
        line = file.readline()
        if not line:
            break
        if not line.endswith("\n") and not is_last_round:
            file.seek(start)  # its end has not been written yet
            break
        if tail.needles is None or any(needle in line for needle in tail.needles):
            tail.target.write(tail.prefix + line)
    tail.target.flush()
