"""Every emulated function takes and gives what NVIDIA's header declares: number, kind and size of its parameters.

Both sides are compiled only, never linked or run: a constant beside each function spells its signature, and is read
from the object file. Headers are used where a wheel or toolkit holds them.
"""

import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from phantora_native.functions import Policy, load

NATIVE = Path(__file__).parents[2] / "native"
SHIMS = NATIVE / "shims"
RUNTIME = NATIVE / "runtime" / "include"

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


def declared(source: Path, emulated: set[str], options: list[str]) -> list[str]:
    """Which of the emulated functions a source defines or calls; macros make many of the names."""
    command = ["g++", "-std=c++20", "-E", "-P", "-DPHANTORA_CUDA=13", *options, str(source)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted((set(re.findall(r"\b(\w+)\(", text)) & emulated) - OVERLOADED)


@pytest.mark.parametrize("library", sorted(HEADERS))
def test_signatures_are_nvidias(library: str, tmp_path: Path) -> None:
    folders = include_folders()
    header = next((path / HEADERS[library][0] for path in folders if (path / HEADERS[library][0]).is_file()), None)
    if header is None:
        pytest.skip(f"no {HEADERS[library][0]} on this machine")
    ours = ["-I", str(SHIMS), "-I", str(RUNTIME)]
    theirs = [option for path in [*folders, *crt_folders()] for option in ("-isystem", str(path))]
    includes = PRELUDE + "".join(f"#include <{each}>\n" for each in HEADERS[library])
    emulated = {f.name for f in load(NATIVE / "spec" / f"{library}.toml").with_policy(Policy.EMULATED)}
    mine: dict[str, str] = {}
    for source in sorted((SHIMS / library).glob("*.cpp")):
        if names := declared(source, emulated, ours):
            mine |= spelled(tmp_path, f'#include "{source}"', names, ours)
    assert mine.keys() == emulated - OVERLOADED
    assert mine == spelled(tmp_path, includes, sorted(mine), theirs), f"differs from {header}"


def crt_folders() -> list[Path]:
    """Where crt/host_config.h lies: the toolkit's own package, or Triton's copy."""
    triton = pytest.importorskip("triton")
    return [Path(path) / "backends" / "nvidia" / "include" for path in triton.__path__]


def test_layouts_are_nvidias() -> None:
    folders = include_folders()
    if not any((path / "cudnn.h").is_file() for path in folders):
        pytest.skip("no cudnn.h on this machine")
    theirs = [option for path in [*folders, *crt_folders()] for option in ("-isystem", str(path))]
    command = ["g++", "-std=c++20", "-fsyntax-only", "-w", "-I", str(SHIMS), "-I", str(RUNTIME), *theirs]
    subprocess.run([*command, str(Path(__file__).parent / "library_layouts.cpp")], check=True)
