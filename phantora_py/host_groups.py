"""What a host-side rendezvous costs once its last member has come.

gloo's collectives on small tensors are trees of TCP messages: each of the 2 ceil(log2 n) levels takes a one-way message
between hosts. MPI's are the same over RDMA. Setting up an NCCL communicator (bootstrap, topology search, buffers) takes
some tenths of a second; it falls into the warm-up and no public measurement is fine enough to do better. All three
figures are guesses.
"""

from __future__ import annotations

TCP_MESSAGE_NS = 25_000
RDMA_MESSAGE_NS = 2_000
COMM_INIT_NS = 200_000_000


def host_group_cost_ns(what: str, size: int) -> int:
    """`what` is "comm_init", "gloo:<operation>" or "MPI_<Operation>", `size` the number of members."""
    if size <= 1:
        return 0
    if what == "comm_init":
        return COMM_INIT_NS
    levels = (size - 1).bit_length()
    return 2 * levels * (RDMA_MESSAGE_NS if what.startswith("MPI_") else TCP_MESSAGE_NS)
