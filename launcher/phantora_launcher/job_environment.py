"""The environment of the user's command, from which all its children inherit."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import phantora_native
from phantora_launcher import environment
from phantora_launcher.errors import LaunchError
from phantora_launcher.rank_conventions import RANK_NAMES
from phantora_launcher.run_folder import RunFolder

BOOTSTRAP_DIR = Path(__file__).parent / "rank" / "bootstrap"
"""Holds nothing but sitecustomize.py, which every Python of the job runs at its start."""

PRELOAD_LIBRARY = "libphantora_preload.so"
CUDA_LIBRARY_DIR = "cuda13"


def job_environment(folder: RunFolder, inherited: Mapping[str, str], native_clock: bool = False) -> dict[str, str]:
    """The caller's environment, with what makes the emulated machine visible to the job."""
    preload = phantora_native.LIBRARY_DIR / PRELOAD_LIBRARY
    if not preload.is_file():
        raise LaunchError(f"{preload} is missing", "install phantora_py again: pip install --force-reinstall .")
    cuda = phantora_native.LIBRARY_DIR / CUDA_LIBRARY_DIR
    foreign = {*environment.OWN, *RANK_NAMES}
    variables = {name: value for name, value in inherited.items() if name not in foreign}
    _prepend(variables, "LD_PRELOAD", preload)
    _prepend(variables, "LD_LIBRARY_PATH", cuda)
    _prepend(variables, "PYTHONPATH", BOOTSTRAP_DIR)
    variables["TRITON_LIBCUDA_PATH"] = str(cuda)
    variables |= {
        environment.RUN_DIR: str(folder.path),
        environment.PYTHON: sys.executable,
        environment.NATIVE_DIR: str(phantora_native.LIBRARY_DIR.parent),
        environment.BOOTSTRAP_DIR: str(BOOTSTRAP_DIR),
    }
    if native_clock:
        variables[environment.NATIVE_CLOCK] = "1"
    for name, value in _DEFAULTS.items():
        variables.setdefault(name, value)
    return variables


_DEFAULTS = {
    # The nodes' host names are made up, and all ranks are on this machine.
    "GLOO_SOCKET_IFNAME": "lo",
    "TP_SOCKET_IFNAME": "lo",
    # Its heartbeat is in real time; an emulated job may rightly be slow.
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    # Open MPI: all ranks are on this machine, which has fewer cores, and must not spin on them.
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # The same from version 5 on.
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
"""What the user may have set otherwise."""


def rank_variables(rank: int, node: int, local_rank: int, hostname: str) -> dict[str, str]:
    return {
        environment.RANK: str(rank),
        environment.NODE: str(node),
        environment.LOCAL_RANK: str(local_rank),
        environment.HOSTNAME: hostname,
    }


def _prepend(variables: dict[str, str], name: str, entry: os.PathLike[str]) -> None:
    before = variables.get(name)
    variables[name] = f"{entry}{os.pathsep}{before}" if before else str(entry)
