"""`phantora compare`: what it says of two reports, and files that are none."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from phantora_launcher.cli import app
from phantora_launcher.errors import LaunchError


def report(compute_ns: int, ops: dict[str, tuple[int, int]], **more: Any) -> dict[str, Any]:
    """Of two ranks with a warm-up and four steady iterations of 2 ms; `ops`: calls and ns of a rank's iteration."""
    times = 2 * 4
    breakdown = {
        "device_ns": 2_000_000 * times,
        "compute": compute_ns / 2_000_000,
        "exposed_communication": 0.0,
        "idle": 1 - compute_ns / 2_000_000,
    }
    iteration_ops = [
        {"op": op, "category": "kernel", "calls": calls * times, "device_ns": ns * times}
        for op, (calls, ns) in ops.items()
    ]
    ranks = [{"peak_allocated_bytes": 2**30, "peak_reserved_bytes": None}] * 2
    made = {
        "schema": "phantora.report/1",
        "cluster": "dgx-h100",
        "world_size": 2,
        "iteration_ns": 2_000_000,
        "iterations": [{"warm_up": index == 0} for index in range(5)],
        "breakdown": breakdown,
        "ops": iteration_ops,
        "tokens": None,
        "ranks": ranks,
    }
    return made | more


def compared(folder: Path, *reports: dict[str, Any]) -> list[list[str]]:
    """The cells of each line that `phantora compare` prints."""
    files = [folder / f"{name}.json" for name in "ab"]
    for file, made in zip(files, reports, strict=True):
        file.write_text(json.dumps(made))
    done = CliRunner().invoke(app, ["compare", *map(str, files)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] or [line] for line in done.output.splitlines()]


def test_what_differs_is_listed_the_largest_first(tmp_path: Path) -> None:
    first = report(1_000_000, {"aten::mm": (4, 800_000), "aten::add_": (2, 10_000)})
    second = report(1_500_000, {"aten::mm": (4, 800_000), "aten::add_": (3, 15_000), "aten::fill_": (1, 495_000)})
    second |= {"iteration_ns": 2_500_000, "tokens": {"per_s": 1000.0}}
    lines = compared(tmp_path, first, second)
    assert ["iteration (steady median)", "2.000 ms", "2.500 ms", "+500.000 µs (+25.0 %)"] in lines
    assert ["compute", "1.000 ms", "1.500 ms", "+500.000 µs (+50.0 %)"] in lines
    assert ["tokens/s", "not known", "1,000", ""] in lines
    assert ["peak memory allocated", "1.00 GiB", "1.00 GiB", "none"] in lines
    assert [line for line in lines if line[0].startswith("aten")] == [
        ["aten::fill_", "0", "1", "0.000 µs", "495.000 µs", "+495.000 µs"],
        ["aten::add_", "2", "3", "10.000 µs", "15.000 µs", "+5.000 µs"],
    ]


def test_many_differences_are_summed_up(tmp_path: Path) -> None:
    first, second = ({f"op{index}": (1, times * index * 1000) for index in range(1, 21)} for times in (2, 1))
    lines = compared(tmp_path, report(1_000_000, first), report(1_000_000, second))
    assert ["op20", "1", "1", "40.000 µs", "20.000 µs", "-20.000 µs"] in lines
    assert ["4 more", "", "", "20.000 µs", "10.000 µs", "-10.000 µs"] in lines


def test_equal_reports(tmp_path: Path) -> None:
    same = report(1_000_000, {"aten::mm": (4, 800_000)})
    assert ["each op ran as often on both, and for as long"] in compared(tmp_path, same, same)


def test_an_iteration_is_not_compared_with_a_whole_run(tmp_path: Path) -> None:
    steps = report(1_000_000, {"aten::mm": (4, 800_000)})
    run = report(1_500_000, {"aten::mm": (16, 3_200_000)}, iterations=[], iteration_ns=None)
    lines = compared(tmp_path, steps, run)
    assert ["A holds times of an iteration, B of the run: ops and device time are not compared"] in lines
    assert not any(line[0] in ("compute", "aten::mm") for line in lines)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("iteration_ns", "12"),
        ("iteration_ns", 10**30),
        ("iteration_ns", float("nan")),
        ("iteration_ns", True),
        ("world_size", 0),
        ("world_size", -2),
        ("iterations", 3),
        ("iterations", [{}]),
        ("ops", "abc"),
        ("ops", [{"op": "aten::mm", "category": "kernel", "device_ns": 1}]),
        ("ops", [{"op": "aten::\ud800", "category": "kernel", "calls": 1, "device_ns": 1}]),
        ("ranks", [None]),
        ("breakdown", {"device_ns": 10**400}),
        ("tokens", {"per_s": float("inf")}),
    ],
)
def test_damaged_reports(key: str, value: Any, tmp_path: Path) -> None:
    for name, made in (("a", report(1, {})), ("b", report(1, {}) | {key: value})):
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")])
    assert isinstance(done.exception, LaunchError), done.exception
    assert "b.json" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "b.json: No such file"),
        ("{", "b.json is no JSON"),
        ("[1]", "b.json is no report: it holds no JSON object"),
        ('{"schema": "phantora.doctor/1"}', "schema 'phantora.doctor/1', this version reads 'phantora.report/1'"),
        ('{"schema": "phantora.report/1"}', "b.json: cluster is missing or not what docs/report.md says"),
        ("[" * 100_000, "b.json is no JSON"),
    ],
)
def test_files_that_are_no_reports(text: str | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(report(1, {})))
    if text is not None:
        (tmp_path / "b.json").write_text(text)
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")])
    assert isinstance(done.exception, LaunchError)
    assert said in str(done.exception)
    assert "hint: name files that `phantora run --json FILE`" in str(done.exception)
