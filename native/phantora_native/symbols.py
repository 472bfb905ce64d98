"""Which CUDA functions an installed PyTorch imports, and what this installation makes of each.

Read from the ELF symbol tables of torch/lib/*.so; nothing of torch is loaded. `phantora doctor` shows the list, and
absent.py makes stubs for what no emulated library defines.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from phantora_native.functions import Library, Policy, load_all

_SONAME = re.compile(
    r"lib(cuda|cudart|cublas|cublasLt|cudnn|cufft|cufile|cupti|curand|cusolver|cusolverMg|cusparse|cusparseLt|nccl|nvrtc"
    r"|nvshmem_host|nvidia-ml|nvJitLink|nvToolsExt)\.so(\.\d+)*"
)
_UNVERSIONED = (  # functions that carry no version tag and are in no spec: by prefix, the longest first
    (re.compile(r"cusparseLt[A-Z]"), "libcusparseLt.so.0"),
    (re.compile(r"nvshmem"), "libnvshmem_host.so.3"),
    (re.compile(r"cuFile[A-Z]"), "libcufile.so.0"),
    (re.compile(r"p?nccl[A-Z]"), "libnccl.so.2"),
    (re.compile(r"nvml[A-Z]"), "libnvidia-ml.so.1"),
    (re.compile(r"cu[A-Z]"), "libcuda.so.1"),
)
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_HALF = struct.Struct("<H")


@dataclass(frozen=True, order=True)
class Symbol:
    """A CUDA function that some shared library of torch imports."""

    library: str
    """SONAME of the library that should define it."""
    name: str
    version: str
    """Version tag that the importer asks for; empty when it asks for none."""
    policy: Policy


class TorchNotFound(FileNotFoundError):
    """The given directory is not that of an installed torch."""


def imported_symbols(torch_dir: Path, libraries: Iterable[Library] | None = None) -> list[Symbol]:
    """All CUDA functions that the shared libraries in `torch_dir`/lib import, sorted by library and name.

    `torch_dir` is the package's directory (…/site-packages/torch); `libraries` the spec, by default the installed one.
    A CPU-only torch imports none. Raises TorchNotFound.
    """
    objects = sorted((torch_dir / "lib").glob("*.so*"))
    if not objects:
        raise TorchNotFound(
            f"{torch_dir}/lib holds no shared library\n  hint: give the directory of an installed torch"
        )
    listed = _listed(load_all() if libraries is None else libraries)
    owners = {name: soname for soname, name in listed}
    return sorted(
        {
            Symbol(soname, name, version, listed.get((soname, name), Policy.ABSENT))
            for path in objects
            for name, soname, version in _cuda_imports(path, owners)
        }
    )


def cuda_major(symbols: Iterable[Symbol]) -> int | None:
    """CUDA major version of these imports, from the CUDA runtime's SONAME; None if they do not name one."""
    for symbol in symbols:
        if match := re.fullmatch(r"libcudart\.so\.(\d+).*", symbol.library):
            return int(match[1])
    return None


def _listed(libraries: Iterable[Library]) -> dict[tuple[str, str], Policy]:
    return {
        (build.soname, function.name): function.policy
        for library in libraries
        for build in library.builds.values()
        for function in library.functions
    }


def _cuda_imports(path: Path, owners: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """(name, SONAME, version) of each undefined CUDA function of one shared object."""
    for name, soname, version in _undefined(path):
        if soname:
            if _SONAME.fullmatch(soname):
                yield name, soname, version
        elif owner := owners.get(name) or _owner_by_prefix(name):
            yield name, owner, version


def _owner_by_prefix(name: str) -> str:
    return next((soname for prefix, soname in _UNVERSIONED if prefix.match(name)), "")


def _undefined(path: Path) -> Iterator[tuple[str, str, str]]:
    """(name, SONAME, version) of each undefined symbol; SONAME and version are empty for one without version.

    The tables are unpacked here: libtorch_cpu has some hundred thousand symbols, too many for pyelftools' objects.
    """
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".dynsym")
        if table is None:
            return
        names = elf.get_section(table["sh_link"]).data()
        indices = elf.get_section_by_name(".gnu.version")
        version_indices = indices.data() if indices else bytes(2 * (table["sh_size"] // _SYMBOL.size))
        versions = _needed_versions(elf)
        symbols = zip(_SYMBOL.iter_unpack(table.data()), _HALF.iter_unpack(version_indices), strict=True)
        for (name, _info, _other, section, _value, _size), (version,) in symbols:
            if section == 0 and name != 0:
                yield names[name : names.index(b"\0", name)].decode(), *versions.get(version, ("", ""))


def _needed_versions(elf: ELFFile) -> dict[int, tuple[str, str]]:
    """Version index of the symbol table → (SONAME, version tag)."""
    section = elf.get_section_by_name(".gnu.version_r")
    if not isinstance(section, GNUVerNeedSection):
        return {}
    return {
        version["vna_other"]: (str(library.name), str(version.name))
        for library, versions in section.iter_versions()
        for version in versions
    }
