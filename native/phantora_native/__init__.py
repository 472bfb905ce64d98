"""Where the files that live inside a training process are: shims, runtime, preload library, hook sources."""

from pathlib import Path

_HERE = Path(__file__).parent

LIBRARY_DIR = _HERE / "lib"
"""libphantora_preload.so, libphantora_rt.so and cuda13/ with the shims under NVIDIA's SONAMEs."""

INCLUDE_DIR = _HERE / "include"
"""Headers of the runtime, for the hook."""

HOOK_SOURCE_DIR = _HERE / "aten"
"""C++ sources of the ATen hook, compiled against the user's torch at first use."""
