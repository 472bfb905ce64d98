"""The preloaded library: our libraries under NVIDIA's names, and nothing else changed in the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_programs import MACHINE

from phantora_native import LIBRARY_DIR
from phantora_py.endings import noted_endings

PRELOAD = LIBRARY_DIR / "libphantora_preload.so"
CUDART = LIBRARY_DIR / "cuda13" / "libcudart.so.13"


def library(folder: Path, name: str, source: str, *options: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    path = folder / name
    subprocess.run(["gcc", "-shared", "-fPIC", folder / f"{name}.c", "-o", path, *options], check=True)
    return path


def run(program: list[str | Path], run_dir: Path | None, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(PRELOAD), **variables}
    if run_dir:
        (run_dir / "machine.conf").write_text(MACHINE)
        environment |= {"PHANTORA_RUN_DIR": str(run_dir), "PHANTORA_RANK": "0", "PHANTORA_SINK": "null"}
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)


def python(code: str, run_dir: Path | None, **variables: str) -> str:
    done = run([sys.executable, "-S", "-c", code], run_dir, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def needy(tmp_path: Path) -> Path:
    """A library that needs cudart and whose DT_RPATH leads to another one, as those of the torch wheels do."""
    (tmp_path / "nvidia").mkdir()
    other = "int cudaGetDeviceCount(int* n) { *n = -1; return 0; }"
    library(tmp_path / "nvidia", "libcudart.so.13", other, "-Wl,-soname,libcudart.so.13")
    source = "int cudaGetDeviceCount(int*); int count(void) { int n = 0; cudaGetDeviceCount(&n); return n; }"
    options = (f"-L{tmp_path}/nvidia", "-l:libcudart.so.13", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/nvidia")
    return library(tmp_path, "libneedy.so", source, *options)


COUNT = "import ctypes; print(ctypes.CDLL('{}').count())"


def test_ours_comes_before_rpath(needy: Path, tmp_path: Path) -> None:
    assert python(COUNT.format(needy), tmp_path) == "4"


def test_nothing_happens_outside_a_run(needy: Path) -> None:
    assert python(COUNT.format(needy), None) == "-1"


def test_path_with_one_of_our_names_gives_ours(tmp_path: Path) -> None:
    code = "import ctypes; print(ctypes.CDLL('/nowhere/libcuda.so.1').cuInit(0))"
    assert python(code, tmp_path) == "0"
    code = "import ctypes; print(ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2())"
    assert python(code, tmp_path) == "0"


def test_callers_rpath_still_counts(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    library(tmp_path / "hidden", "libhidden.so", "int answer(void) { return 42; }")
    source = """
        #include <dlfcn.h>
        int found(void) { return dlopen("libhidden.so", RTLD_NOW) != 0; }
    """
    finder = library(tmp_path, "libfinder.so", source, "-ldl", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/hidden")
    assert python(f"import ctypes; print(ctypes.CDLL('{finder}').found())", tmp_path) == "1"


def test_deepbind_is_refused(needy: Path, tmp_path: Path) -> None:
    code = f"import ctypes, os; ctypes.CDLL('{needy}', os.RTLD_DEEPBIND | os.RTLD_NOW)"
    done = run([sys.executable, "-S", "-c", code], tmp_path)
    assert done.returncode == 70
    assert "RTLD_DEEPBIND" in done.stderr
    assert "hint:" in done.stderr


def test_node_name_is_shown_and_resolves(tmp_path: Path) -> None:
    code = "import os, socket; print(socket.gethostname(), os.uname().nodename, socket.gethostbyname('node-7'))"
    assert python(code, tmp_path, PHANTORA_HOSTNAME="node-7") == "node-7 node-7 127.0.0.1"
    own = subprocess.run(["uname", "-n"], capture_output=True, text=True, check=True).stdout.strip()
    assert python("import socket; print(socket.gethostname())", None, PHANTORA_HOSTNAME="node-7") == own


def test_other_programs_load_nothing_of_ours(tmp_path: Path) -> None:
    done = run(["bash", "-c", "cat /proc/self/maps"], tmp_path)
    assert done.returncode == 0
    assert "libphantora_preload" in done.stdout
    for loaded in ("libphantora_rt", "cuda13", "libstdc++"):
        assert loaded not in done.stdout


@pytest.mark.parametrize(
    "wait", ["os.waitpid(pid, 0)", "os.wait()", "os.wait3(0)", "os.waitid(os.P_PID, pid, os.WEXITED)"]
)
def test_failures_of_children_are_noted(wait: str, tmp_path: Path) -> None:
    code = f"""
import os
for end in (lambda: os._exit(0), lambda: os._exit(3), lambda: os.kill(os.getpid(), 9)):
    pid = os.fork()
    if pid == 0:
        end()
    print(pid)
    {wait}
"""
    _well, failed, killed = map(int, python(code, tmp_path).split())
    assert noted_endings(tmp_path) == {failed: 3, killed: -9}


def test_threads_that_want_python_while_it_ends_do_not_abort(tmp_path: Path) -> None:
    (tmp_path / "late.cpp").write_text("""
        #include <thread>
        #include <unistd.h>
        extern "C" int PyGILState_Ensure();
        extern "C" void start() {
          std::thread([]() noexcept { usleep(200'000); PyGILState_Ensure(); }).detach();
        }
    """)
    late = tmp_path / "late.so"
    subprocess.run(["g++", "-shared", "-fPIC", tmp_path / "late.cpp", "-o", late], check=True)
    code = f"""
import builtins, ctypes, time
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1)
builtins.slow = Slow()
ctypes.CDLL('{late}').start()
"""
    assert python(code, tmp_path) == ""
    alone = run([sys.executable, "-S", "-c", code], tmp_path, LD_PRELOAD="")
    assert (alone.returncode, "terminate called" in alone.stderr) == (-6, True) or sys.version_info >= (3, 14)


CLOCKS = r"""
    #include <chrono>
    #include <cstdio>
    #include <ctime>
    extern "C" int cudaDeviceSynchronize();
    extern "C" void phantora_sleep_ns(long);
    double now() {
      timespec time;
      clock_gettime(CLOCK_MONOTONIC, &time);
      return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
    }
    int main() {
      cudaDeviceSynchronize();
      auto steady = std::chrono::steady_clock::now();
      auto wall = std::chrono::system_clock::now();
      double start = now();
      phantora_sleep_ns(3'600'000'000'000);
      auto seconds = [](auto span) { return std::chrono::duration<double>(span).count(); };
      std::printf("%.0f %.0f %.0f\n", seconds(std::chrono::steady_clock::now() - steady),
                  seconds(std::chrono::system_clock::now() - wall), now() - start);
      double until = now() + 0.02;
      while (now() < until) continue;
    }
"""


def test_a_program_in_c_sees_virtual_time_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "clocks.cpp").write_text(CLOCKS)
    program = tmp_path / "clocks"
    libraries = [CUDART, LIBRARY_DIR / "libphantora_rt.so", f"-Wl,-rpath,{LIBRARY_DIR}", f"-Wl,-rpath,{CUDART.parent}"]
    subprocess.run(["g++", "-std=c++17", tmp_path / "clocks.cpp", "-o", program, *libraries], check=True)
    asked = run([program], tmp_path, PHANTORA_NATIVE_CLOCK="1")
    assert (asked.returncode, asked.stdout) == (0, "3600 3600 3600\n"), asked.stderr
    assert run([program], tmp_path).stdout == "0 0 0\n"
