"""Recordings of a job: what each rank sent, as it came, with the cluster and the placement of the ranks.

A folder with `job.json` and one `rank-N.bin` a rank (frames of docs/protocol.md, one after the other). It can be fed
to a fresh simulation in any interleaving of the ranks; the simulated times must not depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from phantora_py.cluster import Cluster, read_cluster
from phantora_py.fields import Fields
from phantora_py.frames import FrameReader, FrameType, ProtocolError, frame
from phantora_py.output import Output, until_it_fails
from phantora_py.placement import Placement, placements

SCHEMA = "phantora.recording/1"
_JOB_NAME = "job.json"
_CHUNK_BYTES = 1 << 20


class Recorder(Output):
    """Writes a recording while the job runs, in place of an earlier one. Raises OSError if the folder cannot be made or
    be rid of that."""

    def __init__(self, folder: Path, cluster: Cluster, cluster_name: str | None = None) -> None:
        """`cluster_name` is what the user called the cluster."""
        folder.mkdir(parents=True, exist_ok=True)
        _remove_recording(folder)
        self._folder = folder
        self._cluster = cluster
        self._cluster_name = cluster_name or cluster.name
        self._placements: Sequence[Placement] = ()
        self._files: dict[int, BinaryIO] = {}

    @until_it_fails
    def job(self, placements: Sequence[Placement]) -> None:
        self._placements = placements
        self._write_job([])

    def _write_job(self, silent: Sequence[int]) -> None:
        """`silent` are the ranks that said nothing until the end, as those do that use no GPU."""
        table = {
            "schema": SCHEMA,
            "cluster_name": self._cluster_name,
            "cluster": self._cluster.model_dump(mode="json", by_alias=True),
            "ranks": [
                {"rank": place.rank, "node": place.node, "local_rank": place.local_rank} for place in self._placements
            ],
            "silent_ranks": list(silent),
        }
        (self._folder / _JOB_NAME).write_text(json.dumps(table, indent=1) + "\n")

    @until_it_fails
    def frame(self, rank: int, kind: int, payload: bytes) -> None:
        if rank not in self._files:
            self._files[rank] = open(_rank_file(self._folder, rank), "wb")  # noqa: SIM115  closed by close()
        self._files[rank].write(frame(FrameType(kind), payload))

    @until_it_fails
    def close(self) -> None:
        for file in self._files.values():
            file.close()
        if silent := [place.rank for place in self._placements if place.rank not in self._files]:
            self._write_job(silent)


def _remove_recording(folder: Path) -> None:
    """The job may end before it has a rank, and what it leaves must not be taken for what it did. A device stays."""
    for file in (folder / _JOB_NAME, *folder.glob("rank-[0-9]*.bin")):
        if file.is_file():
            file.unlink()


@dataclass(frozen=True)
class Recording:
    cluster: Cluster
    placements: tuple[Placement, ...]
    streams: tuple[tuple[tuple[int, bytes], ...], ...]
    """Per rank its (type, payload) in order; nothing of a rank that uses no GPU."""
    cluster_name: str = ""
    """What the user called the cluster."""

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Raises OSError, ProtocolError, ClusterError."""
        file = folder / _JOB_NAME
        table = _job_table(file)
        cluster = read_cluster(table.get("cluster"), str(file))
        where = _placements(table.get("ranks"), cluster, file)
        silent = Fields(table, str(file)).items("silent_ranks", [])
        streams = tuple(_stream(_rank_file(folder, rank), rank) if rank not in silent else () for rank, *_ in where)
        return cls(cluster, where, streams, str(table.get("cluster_name", cluster.name)))

    @property
    def ended_early(self) -> list[int]:
        """Ranks that have not said farewell."""
        return [
            rank
            for rank, stream in enumerate(self.streams)
            if stream and not any(kind == FrameType.BYE for kind, _payload in reversed(stream))
        ]


def _job_table(file: Path) -> dict[str, Any]:
    try:
        table = json.loads(file.read_text())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{file}: not valid JSON: {error}\n  hint: record the job again") from error
    schema = table.get("schema") if isinstance(table, dict) else None
    if schema != SCHEMA:
        raise ProtocolError(f"{file}: schema {schema!r}, this version reads {SCHEMA!r}\n  hint: record the job again")
    return dict(table)


def _placements(ranks: object, cluster: Cluster, file: Path) -> tuple[Placement, ...]:
    """Where job.json says that the ranks were. Raises ProtocolError."""
    if not isinstance(ranks, list) or not ranks:
        raise ProtocolError(f"{file}: names no ranks\n  hint: record the job again")
    try:
        return placements(Fields({"world_size": len(ranks), "ranks": ranks}, "JOB"), cluster)
    except ProtocolError as error:
        raise ProtocolError(f"{file}: {error}\n  hint: record the job again") from error


def _stream(path: Path, rank: int) -> tuple[tuple[int, bytes], ...]:
    """What a rank sent, from its HELLO on. Raises OSError, ProtocolError."""
    if not path.exists() or not path.stat().st_size:
        state = "is empty" if path.exists() else "is missing"
        raise ProtocolError(
            f"{path}: {state}; nothing is known of what rank {rank} did\n  hint: was the folder copied as a whole?"
        )
    stream = tuple(read_frames(path))
    kind, payload = stream[0]
    if kind != FrameType.HELLO:
        raise ProtocolError(f"{path}: begins with a frame of type {kind}, not HELLO\n  hint: record the job again")
    said = Fields.decode(payload, f"{path}: HELLO").integer("rank")
    if said != rank:
        raise ProtocolError(f"{path}: is what rank {said} sent, not rank {rank}\n  hint: was the file renamed?")
    return stream


def read_frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """(type, payload) of each frame in a rank's file. Raises OSError, ProtocolError."""
    reader = FrameReader()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            try:
                yield from reader.feed(chunk)
            except ProtocolError as error:
                raise ProtocolError(f"{path}: {error}") from error
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
