"""The list of functions, its generator, and what an installed torch imports."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from phantora_native.absent import stub_source
from phantora_native.functions import Policy, SpecError, load, load_all
from phantora_native.symbols import Symbol, TorchNotFound, cuda_major, imported_symbols

NATIVE = Path(__file__).parents[2] / "native"


def torch_dir() -> Path:
    """Directory of the installed torch, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    return Path(spec.origin).parent


def test_generated_files_are_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "codegen", "--check"], cwd=NATIVE, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr


def test_every_cuda_import_of_the_installed_torch_is_listed() -> None:
    symbols = imported_symbols(torch_dir(), load_all(NATIVE / "spec"))
    if not symbols:
        pytest.skip("torch was built without CUDA")
    if cuda_major(symbols) != 13:
        pytest.skip(f"torch was built for CUDA {cuda_major(symbols)}")
    assert len(symbols) > 600
    assert [symbol for symbol in symbols if symbol.policy is Policy.ABSENT] == []


def test_version_tags_are_those_of_the_spec() -> None:
    tags = {build.soname: build.version for library in load_all(NATIVE / "spec") for build in library.builds.values()}
    for symbol in imported_symbols(torch_dir(), load_all(NATIVE / "spec")):
        if symbol.version and symbol.library in tags:
            assert symbol.version == tags[symbol.library], symbol


def test_constants_state_a_reason() -> None:
    constants = [f for library in load_all(NATIVE / "spec") for f in library.with_policy(Policy.CONSTANT)]
    assert constants
    assert all(function.constant and len(function.constant.reason) > 10 for function in constants)


@pytest.mark.parametrize(
    ("functions", "complaint"),
    [
        ('b = "emulated"\na = "emulated"', "a stands after b"),
        ('a = "perhaps"', "'perhaps'"),
        ('a = { returns = "0" }', "no reason"),
        ('a = { reason = "why", result = "0" }', "result"),
        ("a = ", "TOMLDecodeError"),
    ],
)
def test_a_wrong_spec_says_where(tmp_path: Path, functions: str, complaint: str) -> None:
    path = tmp_path / "example.toml"
    path.write_text(f'title = "x"\n[cuda.13]\nsoname = "libx.so.1"\nversion = ""\n[functions]\n{functions}\n')
    with pytest.raises(SpecError, match=r"example\.toml") as error:
        load(path)
    assert complaint in str(error.value)


def test_stub_source_names_function_and_library() -> None:
    absent = [Symbol("libcublas.so.13", "cublasNew", "libcublas.so.13", Policy.ABSENT)]
    assert 'phantora_unsupported("libcublas.so.13", "cublasNew")' in stub_source(absent)


def test_a_directory_without_torch_is_told(tmp_path: Path) -> None:
    with pytest.raises(TorchNotFound, match="hint"):
        imported_symbols(tmp_path)
