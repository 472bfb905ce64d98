"""Feeds a recording to a fresh simulation."""

from __future__ import annotations

from collections.abc import Iterable

from phantora_py.definitions import CostEngine
from phantora_py.frames import FrameType
from phantora_py.job import Job, Observer
from phantora_py.outbox import NullOutbox
from phantora_py.recording import Recording, in_turn, interleave


def replay(
    recording: Recording,
    engine: CostEngine,
    observers: Iterable[Observer] = (),
    order: Iterable[int] | None = None,
) -> Job:
    """Simulates the recorded job anew and returns it, finished.

    `order` names the rank of each next frame; the simulated times do not depend on it. Raises JobError, ProtocolError.
    """
    job = Job(recording.cluster, recording.placements, engine, NullOutbox())
    job.observers += observers
    for rank, kind, payload in interleave(recording, in_turn(recording) if order is None else order):
        if kind != FrameType.HELLO:
            job.frame(rank, kind, payload)
            job.pump()
    job.check_agreement()
    job.finish()
    return job
