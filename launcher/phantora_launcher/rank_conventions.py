"""How launchers of MPI programs tell a process in its environment which rank it is.

The preloaded library reads it in the ranks (native/preload/launched_rank.cpp); a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple


class RankConvention(NamedTuple):
    """Names of environment variables."""

    rank: str
    size: str
    local_rank: str


RANK_CONVENTIONS = (
    RankConvention("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    RankConvention("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    RankConvention("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)
"""Open MPI's mpirun; hydra, the mpiexec of MPICH and Intel MPI; Slurm's srun."""

RANK_NAMES = frozenset(name for each in RANK_CONVENTIONS for name in (each.rank, each.local_rank))
"""What only a launcher within the job may set: `phantora run` may itself be started as a rank, in a batch job."""
