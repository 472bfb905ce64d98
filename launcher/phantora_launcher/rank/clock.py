"""Virtual time for this Python's clocks (native/pytime).

The rule: time that the job *reads* or *sleeps* is virtual; *waiting with a timeout* for locks, queues, sockets, pipes
and processes is real, because what is waited for happens in real time. So the packages below, whose business is such
waiting, keep the real clock. docs/virtual_time.md explains it to users.
"""

from __future__ import annotations

import os
from importlib.machinery import ExtensionFileLoader, ModuleSpec

from phantora_launcher import environment

WAITING_PACKAGES = frozenset(
    {
        "asyncio",
        "concurrent",
        "filelock",
        "multiprocessing",
        "phantora_launcher",
        "queue",
        "selectors",
        "socketserver",
        "ssl",
        "subprocess",
        "threading",
        "torch.distributed.distributed_c10d",
        "torch.distributed.elastic",
        "torch.distributed.rendezvous",
        "torch.multiprocessing",
        "torch.utils.file_baton",
    }
)

_MODULE = "phantora_pytime"
_LIBRARY = "phantora_pytime.abi3.so"
_EPOCH_KEY = "job.epoch_ns"


def start() -> None:
    """From now on this process shows virtual time."""
    library = os.path.join(os.environ[environment.NATIVE_DIR], "lib", _LIBRARY)
    loader = ExtensionFileLoader(_MODULE, library)
    module = loader.create_module(ModuleSpec(_MODULE, loader, origin=library))
    loader.exec_module(module)
    module.start(_epoch_ns(), WAITING_PACKAGES)


def _epoch_ns() -> int:
    with open(os.path.join(os.environ[environment.RUN_DIR], "machine.conf")) as lines:
        for line in lines:
            key, _, value = line.partition("=")
            if key.strip() == _EPOCH_KEY:
                return int(value)
    raise KeyError(f"machine.conf has no {_EPOCH_KEY}")
