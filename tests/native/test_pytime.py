"""Virtual time of Python's clocks, without a runtime: the clock stands still and only sleeping moves it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import phantora_native

EPOCH_NS = 1_800_000_000_000_000_000
PRELUDE = f"""
import time, datetime
from time import time as early_time, sleep as early_sleep, perf_counter as early_counter, monotonic_ns as early_ns
from datetime import datetime as early_datetime
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
real_start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
library = {str(phantora_native.LIBRARY_DIR / "phantora_pytime.abi3.so")!r}
loader = ExtensionFileLoader("phantora_pytime", library)
module = module_from_spec(ModuleSpec("phantora_pytime", loader, origin=library))
loader.exec_module(module)
module.start({EPOCH_NS}, {{"threading", "queue", "waits"}})
"""


def run(code: str, tmp_path: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["time.time()", "early_time()", "time.time_ns() / 1e9"])
def test_wall_clock_begins_at_the_epoch(name: str) -> None:
    assert float(run(f"print({name})")) == EPOCH_NS / 1e9


@pytest.mark.parametrize(
    "name",
    [
        "time.time()",
        "early_time()",
        "time.monotonic()",
        "time.perf_counter()",
        "early_counter()",
        "early_ns() / 1e9",
        "time.perf_counter_ns() / 1e9",
        "time.clock_gettime(time.CLOCK_MONOTONIC)",
        "time.clock_gettime_ns(time.CLOCK_REALTIME) / 1e9",
        "early_datetime.now().timestamp()",
        "datetime.datetime.today().timestamp()",
        "datetime.datetime.now(datetime.timezone.utc).timestamp()",
    ],
)
def test_only_sleep_moves_the_clock(name: str) -> None:
    moved = run(
        f"before = {name}\nsame = {name}\nearly_sleep(2.5)\nafter = {name}\n"
        "print(same - before, round(after - before, 6))"
    )
    assert moved == "0.0 2.5"


def test_calendar() -> None:
    code = """
early_sleep(86400)
print(time.strftime("%Y-%m-%d", time.gmtime()), time.gmtime(None).tm_year, datetime.datetime.utcnow().isoformat())
print(time.localtime()[:3] == datetime.date.today().timetuple()[:3])
print(time.strftime("%Y"), time.ctime()[-4:], time.asctime()[-4:])
print(time.gmtime(0).tm_year, time.strftime("%Y", time.gmtime(0)), time.ctime(0)[-4:])
"""
    assert run(code).splitlines() == ["2027-01-16 2027 2027-01-16T08:00:00", "True", "2027 2027 2027", "1970 1970 1970"]


def test_subclasses_of_datetime_stay() -> None:
    code = (
        "class D(datetime.datetime): pass\nprint(type(D.now()).__name__, type(D.utcnow()).__name__, D.utcnow().tzinfo)"
    )
    assert run(code) == "D D None"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("time.sleep(-1)", "ValueError"),
        ("time.sleep('x')", "TypeError"),
        ("time.sleep(float('nan'))", "ValueError"),
        ("datetime.datetime.now(1, 2)", "TypeError"),
        ("datetime.datetime.now(zone=None)", "TypeError"),
        ("time.clock_gettime('x')", "TypeError"),
        ("time.localtime(1, 2)", "TypeError"),
    ],
)
def test_wrong_calls_fail_as_ever(call: str, error: str) -> None:
    assert run(f"try:\n    {call}\nexcept Exception as error:\n    print(type(error).__name__)") == error


def test_long_sleeps_take_little_real_time() -> None:
    code = "cpu = time.process_time\nfor _ in range(20): time.sleep(1000)\nprint(time.time() - 1_800_000_000)"
    assert run(code) == "20000.0"  # and not after five hours


def test_a_loop_that_only_reads_the_clock_ends() -> None:
    assert run("end = time.time() + 0.01\nwhile time.time() < end: pass\nprint('ended')") == "ended"


def test_cpu_clocks_stay_real() -> None:
    assert run("before = time.process_time()\nsum(range(10**6))\nprint(time.process_time() > before)") == "True"


def test_waiting_packages_keep_real_time() -> None:
    code = """
import queue, threading
try:
    queue.Queue().get(timeout=0.02)
except queue.Empty:
    print("empty")
condition = threading.Condition()
with condition:
    print(condition.wait_for(lambda: False, timeout=0.02))
print(time.time() == 1_800_000_000)
"""
    assert run(code).split() == ["empty", "False", "True"]


def test_submodules_of_waiting_packages_keep_real_time(tmp_path: Path) -> None:
    (tmp_path / "waits").mkdir()
    text = """
import time
def pause():
    start = time.monotonic()
    time.sleep(0.01)
    return time.monotonic() - start
"""
    for name in ("waits/__init__.py", "waits/deep.py", "waitsnot.py"):
        (tmp_path / name).write_text(text)
    code = """
import sys; sys.path.insert(0, ".")
import waits, waits.deep, waitsnot
print(0.01 <= waits.pause() != 0.01, 0.01 <= waits.deep.pause(), time.time() - 1_800_000_000)
print(round(waitsnot.pause(), 9), time.time() - 1_800_000_000)
"""
    first, second = run(code, tmp_path).splitlines()
    assert first == "True True 0.0"
    assert second.split()[0] == "0.01"


def test_forked_children_live_in_real_time() -> None:
    code = """
import os, sys
early_sleep(1000)
if os.fork() == 0:
    before = time.monotonic()
    time.sleep(0.02)
    print(0.02 <= time.monotonic() - before < 20, time.time() < 1_800_000_000)
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""
    assert run(code) == "True True"


def test_side_threads_sleep_without_burning_a_core() -> None:
    code = """
import threading
def poll():
    for _ in range(20):
        time.sleep(0.1)
thread = threading.Thread(target=poll)
before = time.process_time()
thread.start(); thread.join()
print(time.process_time() - before < 0.5)
"""
    assert run(code) == "True"
