"""Which measured iterations the end-to-end benchmark runs, and how it reads them; no job runs here."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"

sys.path.insert(0, str(ROOT))
try:
    end_to_end = importlib.import_module("benchmarks.end_to_end")
finally:
    sys.path.remove(str(ROOT))

MPT = {
    "id": "mpt",
    "source": "mosaicml/llm-foundry",
    "model": "MPT-7b",
    "hidden": "4096",
    "layers": "32",
    "heads": "32",
    "gpu": "h100_80gb",
    "n_gpus": "8",
    "dp": "8",
    "mbs": "8",
    "gbs": "128",
    "seq": "8192",
    "precision": "amp_bf16",
    "ac": "full",
    "value": "8192",
}
VTRAIN = {
    **MPT,
    "id": "vtrain",
    "source": "VIA-Research/vTrain",
    "model": "GPT h2048 L24",
    "hidden": "2048",
    "layers": "24",
    "heads": "16",
    "gpu": "A100",
    "tp": "2",
    "pp": "2",
    "dp": "2",
    "mbs": "4",
    "gbs": "32",
    "seq": "1024",
    "precision": "fp16",
    "value": "250.0",
}


def test_tokens_a_second_become_the_time_of_an_iteration_of_all_micro_batches() -> None:
    (case,) = end_to_end.chosen([MPT])
    assert case.measured_s == 128 * 8192 / (8 * 8192)
    assert (case.name, case.cluster, case.ranks) == ("h100 mpt-7b 8192 recompute", "dgx-h100", 8)
    assert case.job[-7:] == ("--micro-batch", "8", "--micro-batches", "1", "1", "2", "--checkpoint")
    assert case.command(Path("r.json"))[-len(case.job) - 2 :] == ["--nproc-per-node", "8", *case.job]


@pytest.mark.parametrize(
    "other", [{"n_gpus": "16"}, {"precision": "amp_fp8"}, {"gpu": "a100_40gb"}, {"seq": "4096"}, {"model": "MPT-30b"}]
)
def test_what_the_rule_does_not_name_is_left_out(other: dict[str, str]) -> None:
    assert end_to_end.chosen([{**MPT, **other}]) == []


def test_a_layout_is_stood_for_by_its_largest_micro_batch_and_then_batch() -> None:
    rows = [
        {**VTRAIN, "mbs": "2", "gbs": "128"},
        {**VTRAIN, "gbs": "16"},
        VTRAIN,
        {**VTRAIN, "hidden": "1024", "mbs": "8"},
        {**VTRAIN, "n_gpus": "4", "dp": "1", "mbs": "8"},
        {**VTRAIN, "n_gpus": "2", "tp": "1", "dp": "1", "value": "500"},
    ]
    cases = end_to_end.chosen(rows)
    assert [(case.name, case.ranks, case.measured_s) for case in cases] == [
        ("a100 gpt tp1 pp2 dp1", 2, 0.5),
        ("a100 gpt tp2 pp2 dp2", 8, 0.25),
    ]
    assert cases[1].job[-6:] == ("--micro-batch", "4", "--micro-batches", "4", "--steps", "2")


def test_a_batch_that_micro_batches_do_not_fill_is_refused() -> None:
    with pytest.raises(ValueError, match="row mpt: a batch of 100 is no multiple of 64"):
        end_to_end.chosen([{**MPT, "gbs": "100"}])


def test_micro_batches_beyond_the_emulated_ones_cost_what_the_second_one_did() -> None:
    (three,) = end_to_end.chosen([{**MPT, "gbs": "192"}])
    assert three.emulated == (1, 1, 2)
    assert three.iteration_s([99 * 10**9, 10 * 10**9, 18 * 10**9]) == 26.0
    (one,) = end_to_end.chosen([{**MPT, "gbs": "64"}])
    assert one.emulated == (1, 1)
    assert one.iteration_s([99 * 10**9, 10 * 10**9]) == 10.0


def test_errors_are_of_the_iteration_time_and_the_summary_names_the_worst() -> None:
    (case,) = end_to_end.chosen([MPT])
    report = {
        "breakdown": {"compute": 0.9, "exposed_communication": 0.07, "idle": 0.03},
        "ranks": [{"peak_allocated_bytes": 2**30}, {"peak_allocated_bytes": 2**31}],
        "wall_s": 1.0,
    }
    outcomes = []
    for last_ns in (12 * 10**9, 16 * 10**9, 17 * 10**9):
        iterations = [{"duration_ns": ns} for ns in (20 * 10**9, 6 * 10**9, last_ns)]
        outcomes.append(end_to_end.outcome(case, {**report, "iterations": iterations}))
    assert [outcome.error for outcome in outcomes] == [-0.25, 0.0, 0.0625]
    assert end_to_end.line(outcomes[0]) == (
        "| h100 mpt-7b 8192 recompute | 16.000 | 12.000 | -25.0% | +7.9% | 90.0% | 7.0% | 3.0% | 2.0 | 1 |"
    )
    assert end_to_end.summary(outcomes).splitlines()[1:3] == [
        "3 cases",
        "error: median +0.0%, absolute 6.2%, worst -25.0% (h100 mpt-7b 8192 recompute)",
    ]


def test_flash_attention_1_adds_what_its_published_rate_says() -> None:
    flops = 4.5 * 4 * 8192**2 * 4096 / 2 * 32 * 8
    slower_s = flops / 135e12 - flops / 308e12
    assert end_to_end.older_attention_s(MPT) == pytest.approx(slower_s)
    (case,) = end_to_end.chosen([MPT])
    assert case.then_s == pytest.approx(2 * slower_s)


def test_fused_kernels_save_the_bytes_that_they_do_not_move() -> None:
    scores, hidden, inner = 4 * 8 * 1024 * 1024, 4 * 1024 * 2048, 4 * 1024 * 4096
    saved_s = 2 * 12 * (7 * scores + 4 * inner + 16 * hidden) / (0.87 * 2039e9)
    assert end_to_end.fused_kernels_s(VTRAIN) == pytest.approx(saved_s)
    assert end_to_end.vtrain_case(VTRAIN).then_s == pytest.approx(-5 * saved_s)  # 4 micro-batches through 2 stages


def test_the_measured_table_gives_34_cases_of_different_names() -> None:
    table = DATA / "e2e_training.csv"
    if not table.exists():
        pytest.skip(f"no measured iterations: {table} is missing")
    with open(table, newline="") as file:
        cases = end_to_end.chosen(list(csv.DictReader(file)))
    assert len({case.name for case in cases}) == len(cases) == 34
    assert all(case.measured_s > 0 for case in cases)
