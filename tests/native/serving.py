"""A real simulator in a thread, for ranks that are programs of this folder."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from cuda_programs import MACHINE
from fake_rank import FakeEngine

from phantora_py.cluster import load_cluster
from phantora_py.job import Job
from phantora_py.placement import placements
from phantora_py.server import Server


@contextlib.contextmanager
def serving(run_dir: Path, cluster_name: str) -> Iterator[Server]:
    """Serves one job in a run folder, and has not failed when it ends."""
    (run_dir / "machine.conf").write_text(MACHINE)
    cluster = load_cluster(cluster_name)
    server = Server(
        run_dir,
        lambda where, outbox: Job(cluster, where, FakeEngine(), outbox),
        lambda fields: placements(fields, cluster),
    )
    thread = threading.Thread(target=server.serve)
    thread.start()
    while not (run_dir / "sim.sock").exists():
        time.sleep(0.002)
    yield server
    server.stop()
    thread.join(20)
    assert server.failure is None
