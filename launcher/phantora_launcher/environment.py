"""Every environment variable that phantora sets or reads; docs/protocol.md says what a rank may rely on.

The native side declares its share in native/runtime/include/phantora/environment.h; a test compares the two.
"""

RUN_DIR = "PHANTORA_RUN_DIR"
"""The run's private folder: socket, machine.conf, job.json."""
RANK = "PHANTORA_RANK"
"""Global rank of the process, set for each rank (a plain `python train.py` is rank 0)."""
NODE = "PHANTORA_NODE"
"""Index of the emulated node on which the rank runs."""
LOCAL_RANK = "PHANTORA_LOCAL_RANK"
"""Index of the rank within its node."""
RANKS_PER_NODE = "PHANTORA_RANKS_PER_NODE"
"""How many ranks of an MPI program each emulated node takes; absent from ranks that torchrun's front has placed."""
WORLD_SIZE = "PHANTORA_WORLD_SIZE"
"""Number of ranks of an MPI program; the preloaded library sets it in each of them."""
HOSTNAME = "PHANTORA_HOSTNAME"
"""Host name that the rank's node shows."""
SINK = "PHANTORA_SINK"
"""`socket` (default), or `null` for tests without a simulator."""

NATIVE_CLOCK = "PHANTORA_NATIVE_CLOCK"
"""Set: programs other than Python read virtual time too (`--native-clock`)."""

PYTHON = "PHANTORA_PYTHON"
"""The Python that runs phantora itself, and torchrun's front with it."""
RANK_PID = "PHANTORA_RANK_PID"
"""Process that became the rank by importing torch; what it starts inherits this and is no rank."""
NATIVE_DIR = "PHANTORA_NATIVE_DIR"
"""Where lib/, include/ and aten/ of the installed phantora_native lie."""
BOOTSTRAP_DIR = "PHANTORA_BOOTSTRAP_DIR"
"""Folder of the sitecustomize.py that every Python of the job runs; the preload library keeps it on PYTHONPATH."""
CACHE_DIR = "PHANTORA_CACHE_DIR"
"""Read: where compiled ATen hooks are kept, instead of XDG_CACHE_HOME/phantora."""
CXX = "CXX"
"""Read: the compiler that builds the ATen hook, instead of g++ or c++."""

OWN = (
    RUN_DIR,
    RANK,
    NODE,
    LOCAL_RANK,
    RANKS_PER_NODE,
    WORLD_SIZE,
    HOSTNAME,
    SINK,
    NATIVE_CLOCK,
    PYTHON,
    RANK_PID,
    NATIVE_DIR,
    BOOTSTRAP_DIR,
)
"""What `phantora run` sets anew, so that a run inside a run starts from nothing."""
