"""Every emulated function takes and gives what NVIDIA's header declares: number, kind and size of its parameters.

Both sides are compiled only, never linked or run: a constant beside each function spells its signature, and is read
from the object file. Headers are used where a wheel or toolkit holds them.
"""

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).parents[2]
SHIMS = ROOT / "native" / "shims"
RUNTIME = ROOT / "native" / "runtime" / "include"

HEADERS = {
    "cublas": ["cublas_v2.h"],
    "cublaslt": ["cublasLt.h"],
    "cudnn": ["cudnn.h"],
    "cufft": ["cufftXt.h"],
    "cusolver": ["cusolverDn.h"],
    "cusparse": ["cusparse.h"],
    "nvrtc": ["nvrtc.h"],
}

# NVIDIA's header adds C++ overloads of these, so that their addresses are ambiguous. Their _64 forms are checked.
OVERLOADED = {"cublasGemmEx", "cublasGemmBatchedEx", "cublasGemmStridedBatchedEx"}

# Stand for headers that pull in other packages (nv/target); declarations need the types alone.
PRELUDE = """
#define __CUDA_FP16_H__
#define __CUDA_BF16_H__
struct __half { unsigned short bits; };
struct __nv_bfloat16 { unsigned short bits; };
"""

SPELLING = r"""
#include <cstddef>
#include <type_traits>
namespace spelling {
template <typename T> constexpr char kind() {
  if constexpr (std::is_pointer_v<T>) return 'p';
  else if constexpr (std::is_floating_point_v<T>) return 'f';
  else if constexpr (std::is_void_v<T>) return 'v';
  else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return 'i';
  else return 's';
}
template <typename T> constexpr char size() {
  if constexpr (std::is_void_v<T>) return '0'; else return sizeof(T) < 10 ? '0' + sizeof(T) : 'L';
}
struct Text { char text[160]; };
template <typename R, typename... A> constexpr Text of(R (*)(A...)) {
  Text out{};
  size_t n = 0;
  ((out.text[n++] = kind<R>(), out.text[n++] = size<R>()));
  ((out.text[n++] = ' ', out.text[n++] = kind<A>(), out.text[n++] = size<A>()), ...);
  return out;
}
struct Entry { char name[96]; Text text; };
}
#define SPELL(f) \
  __attribute__((used, section("spelled"))) extern const spelling::Entry spelled_##f; \
  constexpr spelling::Entry spelled_##f{#f, spelling::of(&f)};
"""


def include_folders() -> list[Path]:
    nvidia = pytest.importorskip("nvidia")
    return [path for root in nvidia.__path__ for path in Path(root).glob("*/include")]


def spelled(folder: Path, source: str, names: list[str], options: list[str]) -> dict[str, str]:
    """Function name → its signature, spelled by the compiler for the declarations that `source` makes."""
    code = folder / "spelled.cpp"
    code.write_text("\n".join([source, SPELLING, *(f"SPELL({name})" for name in names)]))
    built = folder / "spelled.o"
    command = ["g++", "-std=c++20", "-O0", "-w", "-DPHANTORA_CUDA=13", *options, "-c", str(code), "-o", str(built)]
    subprocess.run(command, check=True)
    with built.open("rb") as file:
        section = ELFFile(file).get_section_by_name("spelled")
        data = section.data() if section else b""
    text = [part.decode() for part in data.split(b"\0") if part]
    return dict(zip(text[::2], text[1::2], strict=True))


def defined(source: Path, folder: Path, options: list[str]) -> list[str]:
    """C functions that a source defines."""
    built = folder / "defined.o"
    command = [
        "g++",
        "-std=c++20",
        "-O0",
        "-fPIC",
        "-w",
        "-DPHANTORA_CUDA=13",
        *options,
        "-c",
        str(source),
        "-o",
        str(built),
    ]
    subprocess.run(command, check=True)
    with built.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab")
        return sorted(
            symbol.name
            for symbol in symbols.iter_symbols()
            if symbol["st_info"]["bind"] == "STB_GLOBAL"
            and symbol["st_info"]["type"] == "STT_FUNC"
            and symbol["st_shndx"] != "SHN_UNDEF"
            and not symbol.name.startswith("_Z")
        )


@pytest.mark.parametrize("library", sorted(HEADERS))
def test_signatures_are_nvidias(library: str, tmp_path: Path) -> None:
    folders = include_folders()
    header = next((path / HEADERS[library][0] for path in folders if (path / HEADERS[library][0]).is_file()), None)
    if header is None:
        pytest.skip(f"no {HEADERS[library][0]} on this machine")
    ours = ["-I", str(SHIMS), "-I", str(RUNTIME)]
    theirs = [option for path in [*folders, *crt_folders()] for option in ("-isystem", str(path))]
    includes = PRELUDE + "".join(f"#include <{each}>\n" for each in HEADERS[library])
    mine: dict[str, str] = {}
    for source in sorted((SHIMS / library).glob("*.cpp")):
        names = [name for name in defined(source, tmp_path, ours) if name not in OVERLOADED]
        if names:
            mine |= spelled(tmp_path, f'#include "{source}"', names, ours)
    assert mine == spelled(tmp_path, includes, sorted(mine), theirs), f"differs from {header}"


def crt_folders() -> list[Path]:
    """Where crt/host_config.h lies: the toolkit's own package, or Triton's copy."""
    triton = pytest.importorskip("triton")
    return [Path(path) / "backends" / "nvidia" / "include" for path in triton.__path__]
