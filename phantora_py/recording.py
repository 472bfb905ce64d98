"""Recordings of a job: what each rank sent, as it came, with the cluster and the placement of the ranks.

A folder with `job.json` and one `rank-N.bin` a rank (frames of docs/protocol.md, one after the other). It can be fed
to a fresh simulation in any interleaving of the ranks; the simulated times must not depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from phantora_py.cluster import Cluster
from phantora_py.frames import FrameReader, FrameType, ProtocolError, frame
from phantora_py.output import Output, until_it_fails
from phantora_py.placement import Placement

SCHEMA = "phantora.recording/1"
_CHUNK_BYTES = 1 << 20


class Recorder(Output):
    """Writes a recording while the job runs. Raises OSError if the folder cannot be made."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._cluster = cluster
        self._files: dict[int, BinaryIO] = {}

    @until_it_fails
    def job(self, placements: Sequence[Placement]) -> None:
        table = {
            "schema": SCHEMA,
            "cluster": self._cluster.model_dump(mode="json", by_alias=True),
            "ranks": [{"rank": place.rank, "node": place.node, "local_rank": place.local_rank} for place in placements],
        }
        (self._folder / "job.json").write_text(json.dumps(table, indent=1) + "\n")

    @until_it_fails
    def frame(self, rank: int, kind: int, payload: bytes) -> None:
        if rank not in self._files:
            self._files[rank] = open(_rank_file(self._folder, rank), "wb")  # noqa: SIM115  closed by close()
        self._files[rank].write(frame(FrameType(kind), payload))

    @until_it_fails
    def close(self) -> None:
        for file in self._files.values():
            file.close()


@dataclass(frozen=True)
class Recording:
    cluster: Cluster
    placements: tuple[Placement, ...]
    streams: tuple[tuple[tuple[int, bytes], ...], ...]
    """Per rank its (type, payload) in order."""

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Raises OSError, ProtocolError."""
        table = json.loads((folder / "job.json").read_text())
        if table.get("schema") != SCHEMA:
            raise ProtocolError(
                f"{folder}: schema {table.get('schema')!r}, this version reads {SCHEMA!r}\n  hint: record the job again"
            )
        placements = tuple(Placement(place["rank"], place["node"], place["local_rank"], 0) for place in table["ranks"])
        streams = (tuple(read_frames(_rank_file(folder, place.rank))) for place in placements)
        return cls(Cluster.model_validate(table["cluster"]), placements, tuple(streams))


def read_frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """(type, payload) of each frame in a rank's file; none if the rank never connected. Raises ProtocolError."""
    if not path.exists():
        return
    reader = FrameReader()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield from reader.feed(chunk)
    if reader.pending_bytes:
        raise ProtocolError(f"{path}: ends in the middle of a frame\n  hint: was the recording cut short?")


def in_turn(recording: Recording) -> Iterator[int]:
    """The plainest interleaving: one frame of each rank, again and again."""
    longest = max((len(stream) for stream in recording.streams), default=0)
    for position in range(longest):
        yield from (rank for rank, stream in enumerate(recording.streams) if position < len(stream))


def interleave(recording: Recording, order: Iterable[int]) -> Iterator[tuple[int, int, bytes]]:
    """(rank, type, payload) as `order`, a sequence of ranks, says; what it leaves over follows rank by rank."""
    rests = [iter(stream) for stream in recording.streams]
    for rank in order:
        for kind, payload in rests[rank]:
            yield rank, kind, payload
            break
    for rank, rest in enumerate(rests):
        for kind, payload in rest:
            yield rank, kind, payload


def _rank_file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.bin"
