"""The cluster of a job: what `--cluster` names, with the NCCL_... variables that the command was started with."""

from __future__ import annotations

import os
import sys

from phantora_launcher.errors import LaunchError
from phantora_py.cluster import Cluster, ClusterError, load_cluster
from phantora_py.nccl.settings import not_modelled


def job_cluster(name: str) -> Cluster:
    """Raises LaunchError."""
    try:
        return in_our_environment(load_cluster(name))
    except ClusterError as error:
        what, _, hint = str(error).partition("\n  hint: ")
        raise LaunchError(what, hint) from error


def in_our_environment(cluster: Cluster) -> Cluster:
    """Tells of variables that would change times on a real machine and do not here. Raises ClusterError."""
    chosen = cluster.in_environment(os.environ)
    if names := not_modelled(os.environ):
        print(f"phantora: not modelled, and without effect: {', '.join(names)}", file=sys.stderr, flush=True)
    return chosen
