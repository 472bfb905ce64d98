"""Code that is loaded at run time: what is read from its images."""

import ctypes
import importlib.util
import re
import struct
import subprocess
from pathlib import Path

import pytest
from cuda_programs import HERE, compiled, run_as_rank

PTX = HERE / "modules.ptx"
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
CUBIN, ZSTD, LZ4 = 2, 0x8000, 0x2000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("modules"), "cuda_modules_test", "-l:libcuda.so.1")


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    triton = importlib.util.find_spec("triton")
    if triton is None or triton.origin is None:
        pytest.skip("no triton, which brings the assembler")
    image = tmp_path_factory.mktemp("cubin") / "modules.cubin"
    ptxas = Path(triton.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    subprocess.run([ptxas, "-arch=sm_90", "-o", image, PTX], check=True)
    return image


def fat_binary(cubin: bytes, packed: bytes, flags: int) -> bytes:
    padded = packed + b"\0" * (-len(packed) % 8)
    entry = ENTRY.pack(CUBIN, 0x101, ENTRY.size, len(padded), len(packed), 0, 0, 8, 90, 0, 0, flags, 0, len(cubin))
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(padded)) + entry + padded


def lz4(data: bytes) -> bytes:
    """A block of LZ4: literals, but for the longest run of zeros, which is one zero and a match with it."""
    run = max(re.findall(rb"\0+", data), key=len)
    before, _, after = data.partition(run)
    return lz4_sequence(before + b"\0", len(run) - 1) + lz4_sequence(after, None)


def lz4_sequence(literals: bytes, match: int | None) -> bytes:
    """Literals, then `match` bytes (at least 19) that repeat the last of them."""
    token = 0xF0 | (0xF if match is not None else 0)
    sequence = bytes([token]) + lz4_length(len(literals) - 15) + literals
    return sequence + (b"\x01\x00" + lz4_length(match - 19) if match is not None else b"")


def lz4_length(rest: int) -> bytes:
    assert rest >= 0
    return b"\xff" * (rest // 255) + bytes([rest % 255])


def zstd(data: bytes) -> bytes:
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = ctypes.c_size_t
    packed = ctypes.create_string_buffer(2 * len(data))
    size = library.ZSTD_compress(packed, ctypes.c_size_t(len(packed)), data, ctypes.c_size_t(len(data)), 3)
    return packed.raw[:size]


def check(program: Path, image: Path, tmp_path: Path) -> None:
    done = run_as_rank(program, str(image), run_dir=tmp_path, sink="null")
    assert done.returncode == 0, done.stdout + done.stderr


def test_cubin(program: Path, cubin: Path, tmp_path: Path) -> None:
    check(program, cubin, tmp_path)


def test_ptx(program: Path, tmp_path: Path) -> None:
    check(program, PTX, tmp_path)


@pytest.mark.parametrize("flags", [0, LZ4, ZSTD])
def test_fat_binary(program: Path, cubin: Path, tmp_path: Path, flags: int) -> None:
    code = cubin.read_bytes()
    packed = {0: bytes, LZ4: lz4, ZSTD: zstd}[flags](code)
    image = tmp_path / "modules.fatbin"
    image.write_bytes(fat_binary(code, packed, flags))
    check(program, image, tmp_path)
