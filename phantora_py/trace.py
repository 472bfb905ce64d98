"""Writes committed history as a Chrome trace, which Perfetto (ui.perfetto.dev) opens.

A process for each rank, a thread for each stream, a slice for each kernel and collective, a counter for memory, an
instant for each optimizer step. Slices are streamed to the file as they are committed; markers, which are few, go to a
second file first and are appended at the end, so that the result does not depend on how history is cut.
"""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phantora_py.catalogue import Catalogue, CollectiveInfo, KernelInfo
from phantora_py.output import Output, until_it_fails
from phantora_py.placement import Placement

if TYPE_CHECKING:
    from phantora_netsim._core import Marks, Timeline

_KERNEL, _MARK, _MEMORY = 1, 10, 13
_MARK_NAMES = {1: "optimizer step ended", 2: "optimizer step began"}
_GZIP_LEVEL = 4


class TraceWriter(Output):
    """Observer of one job. Raises OSError if the file cannot be made."""

    def __init__(self, path: Path, placements: Sequence[Placement], catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._placements = placements
        self._file = _open(path)
        self._markers: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  closed by close()
        self._streams: set[tuple[int, int, int]] = set()
        self._slices: dict[tuple[int, int, int, int], str] = {}
        self._file.write('{"displayTimeUnit":"ms","traceEvents":[\n')

    @until_it_fails
    def observe(self, timeline: Timeline, marks: Marks) -> None:
        self._write_slices(timeline)
        self._write_markers(marks)

    @until_it_fails
    def close(self) -> None:
        """Completes the file."""
        self._markers.seek(0)
        for line in self._markers:
            self._file.write(line)
        self._file.write(",\n".join(json.dumps(event) for event in self._names()))
        self._file.write("\n]}\n")
        self._file.close()
        self._markers.close()

    def _write_slices(self, timeline: Timeline) -> None:
        durations_ns = timeline.end_ns - timeline.start_ns
        self._streams.update(
            zip(timeline.rank.tolist(), timeline.device.tolist(), timeline.stream.tolist(), strict=True)
        )
        rows = zip(
            timeline.rank.tolist(),
            timeline.stream.tolist(),
            timeline.kind.tolist(),
            timeline.definition.tolist(),
            timeline.later.tolist(),
            *_us_columns(timeline.start_ns),
            *_us_columns(durations_ns),
            *_us_columns(timeline.issue_ns),
            strict=True,
        )
        heads, lines = self._slices, []
        for rank, stream, kind, definition, later, start, start_ns, length, length_ns, issued, issued_ns in rows:
            key = rank, kind, definition, later
            head = heads.get(key)
            if head is None:
                head = heads[key] = self._slice(rank, kind, definition, later)
            lines.append(
                f'{{"ph":"X","pid":{rank},"tid":{stream},"ts":{start}.{start_ns:03d},"dur":{length}.{length_ns:03d},'
                f'{head}"issued_us":{issued}.{issued_ns:03d}}}}},\n'
            )
        self._file.write("".join(lines))

    def _slice(self, rank: int, kind: int, definition: int, later: int) -> str:
        """The part of a slice that its definition gives: name, category and open arguments."""
        if kind == _KERNEL:
            info: KernelInfo | CollectiveInfo = self._catalogue.kernels[rank][definition]
            category, arguments = "kernel", _kernel_arguments(self._catalogue.kernels[rank][definition], later)
        else:
            info = self._catalogue.collectives[rank][definition]
            category, arguments = "collective", _collective_arguments(self._catalogue.collectives[rank][definition])
        head = json.dumps({"name": info.name, "cat": category, "args": arguments | {"": 0}})
        return head[1:].removesuffix('"": 0}}')

    def _write_markers(self, marks: Marks) -> None:
        rows = zip(
            marks.rank.tolist(),
            marks.kind.tolist(),
            marks.time_ns.tolist(),
            marks.a.tolist(),
            marks.b.tolist(),
            strict=True,
        )
        for rank, kind, time_ns, a, b in rows:
            if kind == _MEMORY:
                event = f'"ph":"C","name":"memory","args":{{"allocated_bytes":{a},"reserved_bytes":{b}}}'
            elif kind == _MARK and a in _MARK_NAMES:
                event = f'"ph":"i","s":"p","name":"{_MARK_NAMES[a]}","tid":0'
            else:
                continue
            self._markers.write(f'{{"pid":{rank},"ts":{_us(time_ns)},{event}}},\n')

    def _names(self) -> list[dict[str, Any]]:
        """Metadata: what processes and threads are called."""
        names = [
            _metadata("process_name", place.rank, 0, {"name": f"rank {place.rank} (node {place.node})"})
            for place in self._placements
        ]
        names += [
            _metadata("process_sort_index", place.rank, 0, {"sort_index": place.rank}) for place in self._placements
        ]
        names += [
            _metadata("thread_name", rank, stream, {"name": f"GPU {device} stream {stream}"})
            for rank, device, stream in sorted(self._streams)
        ]
        return names


def _metadata(name: str, rank: int, stream: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": rank, "tid": stream, "args": arguments}


def _kernel_arguments(info: KernelInfo, later: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {"kernel": info.kernel, "shapes": info.shapes, "engine": info.engine, "kind": info.kind}
    if info.fused:
        arguments["fused"] = info.fused
    if later:
        arguments["share"] = "a later launch of an op whose first launch carries its cost"
    return arguments


def _collective_arguments(info: CollectiveInfo) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "bytes": info.bytes,
        "dtype": info.dtype,
        "algorithm": info.algorithm,
        "protocol": info.protocol,
        "group": list(info.ranks),
    }
    if info.peers:
        arguments["peers"] = [f"{direction} {rank}: {size} bytes" for direction, rank, size in info.peers]
    return arguments


def _us(time_ns: int) -> str:
    """Microseconds, the format's unit, with all three decimals."""
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


def _us_columns(times_ns: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Whole microseconds, and the nanoseconds behind the point."""
    return (times_ns // 1000).tolist(), (times_ns % 1000).tolist()


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        # mtime 0 keeps equal traces equal files
        raw = gzip.GzipFile(path, "wb", _GZIP_LEVEL, mtime=0)
        return io.TextIOWrapper(raw, encoding="utf-8")
    return path.open("w", encoding="utf-8")
