"""The ATen hook: compiled against the job's own torch at its first use, cached, and loaded into ranks.

Runs in the job's Python: standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from phantora_launcher import environment
from phantora_launcher.errors import LaunchError
from phantora_launcher.rank import benchmarks, memory_peaks, triton_kernels

LIBRARY = "libphantora_aten.so"
INSTALL_FUNCTION = "phantora_aten_install"

_FLAGS = (
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-DNDEBUG",
    "-D_GLIBCXX_USE_CXX11_ABI=1",
    "-w",
)
_TORCH_LIBRARIES = ("torch_cuda", "torch_cpu", "c10_cuda", "c10")
_TYPICAL_S = 25
_PROBE_LIMIT_S = 60.0


@dataclass(frozen=True)
class Torch:
    """An installed torch, found without importing it."""

    version: str
    git_version: str
    cuda: str | None
    root: str
    """Folder of the package."""
    python_include: str
    python_abi: str

    @property
    def include_dirs(self) -> list[str]:
        return [f"{self.root}/include", f"{self.root}/include/torch/csrc/api/include", self.python_include]


def find_torch() -> Torch | None:
    """The torch that this Python would import."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("torch")
    return None if spec is None or spec.origin is None else torch_in(os.path.dirname(spec.origin))


def torch_in(root: str) -> Torch:
    """What the torch in this folder is, for this Python. Imports nothing of it."""
    import runpy
    import sysconfig

    facts = runpy.run_path(f"{root}/version.py")
    return Torch(
        version=str(facts["__version__"]),
        git_version=str(facts.get("git_version", "")),
        cuda=facts.get("cuda"),
        root=root,
        python_include=sysconfig.get_path("include"),
        python_abi=sysconfig.get_config_var("SOABI") or "",
    )


def find_torch_of(python: str, variables: Mapping[str, str]) -> Torch | None:
    """The torch that another Python would import; None if it has none or cannot be asked."""
    here = str(Path(__file__).parent.parent)
    code = f"import sys; sys.path.append({here!r}); from phantora_launcher import aten_hook; aten_hook.tell()"
    asked = {name: value for name, value in variables.items() if name != "LD_PRELOAD"}
    try:
        answer = subprocess.run(
            [python, "-c", code], env=asked, capture_output=True, text=True, timeout=_PROBE_LIMIT_S, check=True
        )
        facts = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Torch(**facts) if facts is not None else None


def tell() -> None:
    """Prints what find_torch() finds, for find_torch_of()."""
    torch = find_torch()
    print(json.dumps(asdict(torch) if torch is not None else None))


def prepare(python: str, variables: Mapping[str, str]) -> None:
    """Builds the hook for the torch of `python`, if it has a CUDA build of it, so that ranks find it ready."""
    torch = find_torch_of(python, variables)
    if torch is not None and torch.cuda is not None:
        ensure_built(torch)


def library_path(torch: Torch) -> Path:
    """Where the hook for this torch is, or will be."""
    return _cache_dir() / f"aten-{torch.version}-{_fingerprint(torch)}" / LIBRARY


def ensure_built(torch: Torch) -> Path:
    """Builds the hook unless it is there; one process builds, others wait. Raises LaunchError."""
    library = library_path(torch)
    if library.exists():
        return library
    with _lock(library.parent.with_name(f"{library.parent.name}.lock")):
        if not library.exists():
            _build(torch, library)
    return library


def load(torch: Torch) -> None:
    """Loads the hook into this process, which has imported torch, and switches it on. Raises LaunchError."""
    import ctypes

    library = ensure_built(torch)
    try:
        hook = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        install = getattr(hook, INSTALL_FUNCTION)
    except (OSError, AttributeError) as error:
        raise LaunchError(
            f"cannot load the ATen hook: {error}", f"remove {library.parent}; it is built again"
        ) from error
    install()
    memory_peaks.keep_before_resets(hook)
    triton_kernels.watch(hook)
    benchmarks.watch()


def compiler() -> str:
    """The C++ compiler. Raises LaunchError if there is none."""
    wanted = os.environ.get(environment.CXX)
    for name in [wanted] if wanted else ["g++", "c++", "clang++"]:
        found = shutil.which(name)
        if found:
            return found
    raise LaunchError(
        f"no C++ compiler ({wanted or 'g++, c++ or clang++'}) is on PATH",
        "install one (apt install g++), or set CXX to it",
    )


def _native_dir() -> Path:
    return Path(os.environ[environment.NATIVE_DIR])


def _fingerprint(torch: Torch) -> str:
    """Hash of everything that the library's bytes depend on, the compiler excepted."""
    native = _native_dir()
    digest = hashlib.sha256(repr((torch.git_version, torch.python_abi, _FLAGS)).encode())
    for path in sorted([*(native / "aten").rglob("*"), *(native / "include").rglob("*.h")]):
        if path.is_file():
            digest.update(str(path.relative_to(native)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_dir() -> Path:
    chosen = os.environ.get(environment.CACHE_DIR)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "phantora"


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = open(file, "w")  # noqa: SIM115  closed below
    except OSError as error:
        raise LaunchError(
            f"cannot write to the cache folder {file.parent}: {error.strerror}",
            f"set {environment.CACHE_DIR} to a folder",
        ) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(torch: Torch, library: Path) -> None:
    cxx = compiler()
    _say(f"compiling the ATen hook for torch {torch.version} (once, about {_TYPICAL_S} s) ...")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=".building-", dir=library.parent.parent) as folder:
        fresh = Path(folder) / LIBRARY
        _run(
            [
                cxx,
                *_FLAGS,
                *_include_flags(torch),
                str(_write_unit(Path(folder))),
                "-o",
                str(fresh),
                *_link_flags(torch),
            ]
        )
        library.parent.mkdir(exist_ok=True)
        os.replace(fresh, library)
    _say(f"the ATen hook is ready after {time.monotonic() - started:.0f} s")


def _write_unit(folder: Path) -> Path:
    """One source that includes all: nearly all of the time goes into torch's headers, which are so read once."""
    sources = sorted((_native_dir() / "aten").rglob("*.cpp"))
    if not sources:
        raise LaunchError(f"no sources in {_native_dir() / 'aten'}", "pip install --force-reinstall . installs them")
    unit = folder / "aten.cpp"
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))
    return unit


def _include_flags(torch: Torch) -> list[str]:
    native = _native_dir()
    ours = (native / "include", native / "aten", native / "aten" / "cuda_headers")
    return [*(f"-isystem{path}" for path in torch.include_dirs), *(f"-I{path}" for path in ours)]


def _link_flags(torch: Torch) -> list[str]:
    libraries = [f"-l{name}" for name in _TORCH_LIBRARIES if Path(torch.root, "lib", f"lib{name}.so").exists()]
    return [
        f"-L{torch.root}/lib",
        *libraries,
        f"-L{_native_dir() / 'lib'}",
        "-lphantora_rt",
        "-Wl,--allow-shlib-undefined",
    ]


def _run(command: list[str]) -> None:
    # The compiler is no part of the job: nothing is preloaded into it.
    variables = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    done = subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise LaunchError(
            f"the ATen hook does not compile:\n{' '.join(command)}\n{done.stdout[-4000:]}",
            "is the compiler at least g++ 10 (C++20)? CXX chooses another one",
        )


def _say(text: str) -> None:
    print(f"phantora: {text}", file=sys.stderr, flush=True)
