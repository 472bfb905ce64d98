"""Feeds a recording to a fresh simulation, of the cluster on which it was made or of another one."""

from __future__ import annotations

from collections.abc import Iterable

from phantora_py.cluster import Cluster, ClusterError
from phantora_py.definitions import CostEngine
from phantora_py.frames import FrameType, ProtocolError
from phantora_py.job import Job, Observer
from phantora_py.outbox import NullOutbox
from phantora_py.recording import Recording, in_turn, interleave


def recorded_job(recording: Recording, engine: CostEngine, cluster: Cluster | None = None) -> Job:
    """The job that was recorded, as yet without what its ranks did. Raises ClusterError if they do not fit."""
    chosen = cluster or recording.cluster
    for place in recording.placements:
        if place.node >= chosen.nodes or place.local_rank >= chosen.node.gpus:
            raise ClusterError(
                f"rank {place.rank} was recorded on GPU {place.local_rank} of node {place.node}; {chosen.name} has "
                f"{chosen.nodes} nodes of {chosen.node.gpus} GPUs\n  hint: NAME:N has N nodes; or record the job anew"
            )
    return Job(chosen, recording.placements, engine, NullOutbox())


def feed(job: Job, recording: Recording, order: Iterable[int] | None = None) -> None:
    """Simulates all of it. `order` names the rank of each next frame; the simulated times do not depend on it.

    Raises JobError, ProtocolError.
    """
    for rank, kind, payload in interleave(recording, in_turn(recording) if order is None else order):
        if kind != FrameType.HELLO:
            try:
                job.frame(rank, kind, payload)
            except ProtocolError as error:
                raise ProtocolError(f"the recording of rank {rank}: {error}") from error
            job.pump()
    job.check_agreement()
    job.finish()


def replay(
    recording: Recording,
    engine: CostEngine,
    observers: Iterable[Observer] = (),
    order: Iterable[int] | None = None,
) -> Job:
    """Simulates the recorded job anew and returns it, finished. Raises JobError, ProtocolError."""
    job = recorded_job(recording, engine)
    job.observers += observers
    feed(job, recording, order)
    return job
