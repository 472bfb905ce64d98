"""Known ranges, the value queue, and copies with states: C++ programs without torch."""

import subprocess
from pathlib import Path

from phantora_native import INCLUDE_DIR, LIBRARY_DIR

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "native" / "runtime"

MACHINE = """
device.name = NVIDIA H100 80GB HBM3
device.count = 1
device.memory_bytes = 85000000000
device.context_bytes = 500000000
device.sm_count = 132
device.cc_major = 9
device.cc_minor = 0
value.unknown_read_limit = 100
"""


def compiled(folder: Path, name: str, *options: str | Path) -> Path:
    program = folder / name
    includes = ["-I", INCLUDE_DIR, "-I", RUNTIME, "-I", HERE]
    command = ["g++", "-std=c++20", "-O1", "-pthread", *includes, HERE / f"{name}.cpp", *options, "-o", program]
    subprocess.run(command, check=True)
    return program


def run_as_rank(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "machine.conf").write_text(MACHINE)
    variables = {
        "PHANTORA_RUN_DIR": str(folder),
        "PHANTORA_RANK": "0",
        "PHANTORA_NODE": "0",
        "PHANTORA_LOCAL_RANK": "0",
        "PHANTORA_SINK": "null",
    }
    return subprocess.run([program], env=variables, capture_output=True, text=True, timeout=120, check=False)


def test_against_models(tmp_path: Path) -> None:
    sources = [RUNTIME / f"{name}.cpp" for name in ("known_ranges", "state_map", "value_queue", "zero_pages")]
    program = compiled(tmp_path, "values_model_test", *sources)
    subprocess.run([program], check=True, timeout=300)


def test_copies_and_states(tmp_path: Path) -> None:
    library = [f"-L{LIBRARY_DIR}", f"-Wl,-rpath,{LIBRARY_DIR}", "-lphantora_rt"]
    done = run_as_rank(compiled(tmp_path, "values_memory_test", *library), tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_loop_that_waits_for_an_unknown_value_ends(tmp_path: Path) -> None:
    library = [f"-L{LIBRARY_DIR}", f"-Wl,-rpath,{LIBRARY_DIR}", "-lphantora_rt"]
    done = run_as_rank(compiled(tmp_path, "values_endless_test", *library), tmp_path)
    assert done.returncode == 70
    assert "read a value that was never computed 100 times in a row" in done.stderr
    assert "hint:" in done.stderr
