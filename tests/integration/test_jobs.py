"""Whole jobs under `phantora run`: what their reports say, and how that changes with the cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from link_traffic import Trace, busiest

from phantora_py.averages import breakdown_average, op_averages

pytest.importorskip("torch")

SCRIPTS = Path(__file__).parent / "jobs"
EXAMPLES = Path(__file__).parents[2] / "examples"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
LIMIT_S = 900.0
"""The hook may have to be compiled first, on a busy machine."""

DEMO_TOKENS_PER_GPU = 2 * 8192
MEASURED_DEMO_NS = 2.84e9
"""TorchTitan's published run: 5,762 tokens/s and GPU."""
DEPENDS_ON_THE_MACHINE = ("wall_s", "speculated_answers", "corrected_answers")
"""Keys of the report that two equal runs may differ in (docs/report.md)."""


@dataclass(frozen=True)
class Finished:
    code: int
    stdout: str
    stderr: str
    report_file: Path

    @property
    def report(self) -> dict[str, Any]:
        assert self.code == 0, self.stdout + self.stderr
        report: dict[str, Any] = json.loads(self.report_file.read_text())
        return report


def phantora(folder: Path, *arguments: str, job: tuple[str, ...] = ()) -> Finished:
    """Runs a command of the front that takes --json."""
    report_file = folder / "report.json"
    line = [sys.executable, "-m", "phantora_launcher", *arguments, "--json", str(report_file)]
    done = subprocess.run(
        [*line, "--", *job] if job else line, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    return Finished(done.returncode, done.stdout, done.stderr, report_file)


# Megatron-Core on two nodes: stage 0 of the pipeline on node 0, stage 1 on node 1, 4 GPUs each.


@dataclass(frozen=True)
class Links:
    nvlink_GBps: float = 370.8
    nic_Gbps: float = 400.0

    def cluster_file(self, folder: Path) -> Path:
        path = folder / "cluster.toml"
        path.write_text(
            'name = "two-nodes"\nnodes = 2\n[gpu]\nmodel = "H100-SXM-80GB"\n[node]\ngpus = 4\n'
            f"[node.nvlink]\nbandwidth_GBps = {self.nvlink_GBps}\n"
            f"[node.nics]\ncount = 4\nbandwidth_Gbps = {self.nic_Gbps}\nefficiency = 1.0\n"
        )
        return path


BASE = Links()
NODES = (range(4), range(4, 8))


@dataclass(frozen=True)
class Megatron:
    iteration_ns: int
    trace: Trace
    recording: Path
    report: dict[str, Any]

    def on(self, folder: Path, links: Links) -> dict[str, Any]:
        """The report of the recorded job on other links."""
        return phantora(folder, "replay", str(self.recording), "--cluster", str(links.cluster_file(folder))).report


@pytest.fixture(scope="module")
def base_megatron(tmp_path_factory: pytest.TempPathFactory) -> Megatron:
    pytest.importorskip("megatron.core")
    folder = tmp_path_factory.mktemp("megatron")
    trace, recording = folder / "trace.json", folder / "recorded"
    sizes = ["--layers", "4", "--hidden", "512", "--heads", "8", "--sequence", "512", "--steps", "3"]
    done = phantora(
        folder,
        *("run", "--cluster", str(BASE.cluster_file(folder)), "--trace", str(trace), "--record", str(recording)),
        job=(*TORCHRUN, "--nnodes", "2", "--nproc-per-node", "4", str(EXAMPLES / "megatron_gpt.py"), *sizes),
    )
    report = done.report
    assert report["world_size"] == 8
    # of two replicas, in 4 micro-batches of 2; two tensor-parallel ranks of the first stage look up the same ones
    assert report["tokens"]["per_iteration"] == 2 * 4 * 2 * 512
    assert "8 ranks on 2 nodes: two-nodes-0, two-nodes-1" in done.stdout
    return Megatron(report["iteration_ns"], Trace.read(trace), recording, report)


def test_a_recorded_job_is_the_same_again(tmp_path: Path, base_megatron: Megatron) -> None:
    of_the_run = {*DEPENDS_ON_THE_MACHINE, "cluster", "command", "ranks"}
    again = base_megatron.on(tmp_path, BASE)
    assert {key: again[key] for key in again.keys() - of_the_run} == {
        key: base_megatron.report[key] for key in base_megatron.report.keys() - of_the_run
    }
    assert [{**rank, "exit_code": 0} for rank in again["ranks"]] == base_megatron.report["ranks"]


# The bound. Let P be the longest chain of work and waiting in the slow run, which makes its iteration time T'. Its
# kernels, host time and latencies last as long in the base run, which can't be faster than the same chain: T' - T is at
# most what P spends on the slow links. While a transfer of P is held up, its bottleneck is one slow link, which is
# full: the bytes of transfers in P and of those that share their links, each counted once, pass it at the slow rate.
# (Not at the difference to the base bandwidth: a transfer that hides behind kernels in the base run may compete in the
# slow one.) The four ranks of a node run one program in step, so a chain that changes ranks holds each operation
# once, and the busiest rank stands for its node. A chain passes through both nodes: NVLinks count once for each. A
# transfer between nodes is seen by both ends and counts once.


def test_slower_nics_cost_what_crosses_nodes(tmp_path: Path, base_megatron: Megatron) -> None:
    slow = Links(nic_Gbps=BASE.nic_Gbps / 10)
    report = base_megatron.on(tmp_path, slow)
    slow_ns = report["iteration_ns"]
    crossing_bytes = busiest(base_megatron.trace.last_iteration_bytes(spans_nodes), range(8))
    assert crossing_bytes > 0
    assert 0 < slow_ns - base_megatron.iteration_ns <= crossing_bytes / (slow.nic_Gbps / 8)
    before, now = (
        next(link for link in each["links"] if ".nic" in link["link"]) for each in (base_megatron.report, report)
    )
    assert now["iteration_bytes"] == before["iteration_bytes"]
    assert now["iteration_full_ns"] == pytest.approx(10 * before["iteration_full_ns"], abs=10)
    assert now["iteration_full_ns"] < slow_ns


def test_slower_nvlink_costs_what_stays_in_nodes(tmp_path: Path, base_megatron: Megatron) -> None:
    slow = Links(nvlink_GBps=BASE.nvlink_GBps / 10)
    slow_ns = base_megatron.on(tmp_path, slow)["iteration_ns"]
    totals = base_megatron.trace.last_iteration_bytes(meets_in_a_node)
    assert all(totals.values())
    longest_ns = sum(busiest(totals, node) for node in NODES) / slow.nvlink_GBps
    assert 0 < slow_ns - base_megatron.iteration_ns <= longest_ns


def spans_nodes(group: tuple[int, ...]) -> bool:
    return len({rank // 4 for rank in group}) > 1


def meets_in_a_node(group: tuple[int, ...]) -> bool:
    return len({rank // 4 for rank in group}) < len(group)


# Memory


def test_job_too_large_for_the_device(tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    small.write_text('name = "small"\n[gpu]\nmodel = "H100-SXM-80GB"\nmemory_GiB = 24\n[node]\ngpus = 1\n')
    job = (sys.executable, str(SCRIPTS / "fill_memory.py"), "100")
    failed = phantora(tmp_path, "run", "--cluster", str(small), job=job)
    assert failed.code == 1
    assert "torch.OutOfMemoryError: CUDA out of memory." in failed.stderr
    assert "Tried to allocate 100.00 GiB" in failed.stderr
    assert "total capacity of 24.00 GiB" in failed.stderr

    (rank,) = phantora(tmp_path, "run", "--cluster", "hgx-h200", job=job).report["ranks"]
    assert rank["peak_allocated_bytes"] == 100 << 30


# A segment grows in pieces of 20 MiB, the one of tensors up to 1 MiB (here: the losses) in pieces of 2 MiB. Most is in
# use at 0 MiB: the weight; 64: the inputs; 128: the product, later the gradient; 192: the momentum. That is 256 MiB in
# 13 pieces. The larger tensor doesn't fit where the gradient was: it begins at 256 MiB and ends at 356, in the 18th.


def test_expandable_segments_reserve_what_they_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    job = (sys.executable, str(SCRIPTS / "expandable_segments.py"))
    done = phantora(tmp_path, "run", "--cluster", "dgx-h100", job=job)
    (rank,) = done.report["ranks"]
    first, grown = 13 * 20 + 2, 18 * 20 + 2
    printed = ["reserved", str(first), "expandable", "True", "larger", str(grown), "empty", "0", "freed", str(first)]
    assert done.stdout.split()[: len(printed)] == printed
    assert rank["peak_reserved_bytes"] == grown << 20
    assert rank["peak_allocated_bytes"] == (3 * 64 + 100) << 20


# torch.profiler in a rank


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the traces of two ranks' own profilers and ours."""
    folder = tmp_path_factory.mktemp("profiled")
    job = (*TORCHRUN, "--nproc-per-node", "2", str(SCRIPTS / "profiled.py"), str(folder))
    assert phantora(folder, "run", "--cluster", "dgx-h100:2", "--trace", str(folder / "ours.json"), job=job).code == 0
    return folder


def slices(file: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(file.read_text())["traceEvents"]
    return [event for event in events if event["ph"] == "X"]


def on_device(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]


@pytest.mark.parametrize("rank", [0, 1])
def test_profiler_and_our_trace_agree(profiled: Path, rank: int) -> None:
    """Kernels, copies, collectives, a graph's replays: each as long as ours, and with the op that launched it."""
    theirs = on_device(slices(profiled / f"whole{rank}.json"))
    ours = [event for event in slices(profiled / "ours.json") if event["pid"] == rank][: len(theirs)]
    assert sorted(event["dur"] for event in theirs) == pytest.approx(sorted(event["dur"] for event in ours))
    assert any(event["name"].startswith("ncclDevKernel_all_reduce_sum") for event in theirs)

    ops_us: dict[str, float] = json.loads((profiled / f"ops{rank}.json").read_text())
    shown = {op: duration for op, duration in ops_us.items() if op.startswith("aten::") and duration > 0}
    assert {"aten::mm", "aten::addmm", "aten::gelu", "aten::gelu_backward", "aten::copy_"} <= shown.keys()
    ours_us: dict[str, float] = defaultdict(float)
    for event in ours:
        base_op, *_ = event["name"].split(".")
        ours_us[base_op] += event["dur"]
    assert shown == pytest.approx({op: ours_us[op] for op in shown}, rel=1e-3)


def test_profiled_launches_lie_within_their_ops(profiled: Path) -> None:
    """Ops are timed by the processor's counter, launches by the lane: both are of virtual time."""
    events = slices(profiled / "whole0.json")
    ops = {event["args"].get("External id"): event for event in events if event["cat"] == "cpu_op"}
    launches = [event for event in events if event["name"] == "cudaLaunchKernel" and "External id" in event["args"]]
    assert len(launches) > 20
    for launch in launches:
        op = ops[launch["args"]["External id"]]
        assert op["ts"] - 0.01 <= launch["ts"]
        assert launch["ts"] + launch["dur"] <= op["ts"] + op["dur"] + 0.01


def test_profiler_with_a_schedule(profiled: Path) -> None:
    """The step that it is active for: what runs on the device from its beginning on, the step before being over."""
    events = slices(profiled / "step1.json")
    launched = {event["args"]["correlation"] for event in events if event["cat"] == "cuda_runtime"}
    gemms = [event for event in on_device(events) if "External id" in event["args"] and "cublas" in event["name"]]
    assert len(gemms) == 2 + 3  # forward; backward without the gradient of the inputs
    assert {event["args"]["correlation"] for event in gemms} <= launched


# Iterations


@pytest.mark.parametrize("kind", ["gan", "backward"])
def test_optimizers_that_step_in_turn_are_one_iteration(tmp_path: Path, kind: str) -> None:
    job = (sys.executable, str(SCRIPTS / "two_optimizers.py"), kind)
    report = phantora(tmp_path, "run", "--cluster", "dgx-h100", job=job).report
    assert len(report["iterations"]) == 3
    assert report["tokens"] is None


# Waiting that the simulator cannot see


def waiting_reports(folder: Path, style: str) -> list[dict[str, Any]]:
    """Of three equal runs, without what may differ."""
    script = (str(SCRIPTS / "waits_outside_cuda.py"), str(folder / "lock"), style)
    job = (*TORCHRUN, "--nproc-per-node", "3", *script)
    reports = [phantora(folder, "run", "--cluster", "dgx-h100", job=job).report for _ in range(3)]
    machine = [{key: report.pop(key) for key in DEPENDS_ON_THE_MACHINE} for report in reports]
    assert len(reports[0]["iterations"]) == 4
    counts = [figures["speculated_answers"] for figures in machine]
    if len(set(counts)) > 1:
        warnings.warn(f"answers were speculated {counts} times", stacklevel=1)
    return reports


def test_waiting_outside_cuda_leaves_no_mark(tmp_path: Path) -> None:
    first, *others = waiting_reports(tmp_path, "plain")
    assert others == [first] * 2


def test_waiting_outside_cuda_with_ddp(tmp_path: Path) -> None:
    first, *others = waiting_reports(tmp_path, "ddp")
    assert others == [first] * 2


# The demo: TorchTitan's Llama 3 8B on eight GPUs


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    pytest.importorskip("torchtitan")
    return phantora(tmp_path_factory.mktemp("demo"), "demo", "--steps", "3")


def test_demo_reports_every_ranks_memory(demo: Finished) -> None:
    ranks = demo.report["ranks"]
    assert [rank["rank"] for rank in ranks] == list(range(8))
    # an eighth of 8 billion parameters, gradients and two moments in fp32 is the least
    least_bytes = 8.03e9 * 16 / 8
    assert all(least_bytes < rank["peak_allocated_bytes"] <= rank["peak_reserved_bytes"] for rank in ranks)


def test_torchtitans_own_tps_agrees(demo: Finished) -> None:
    rates = re.findall(r"step: +(\d+) .*?tps: ([\d,]+)", without_colours(demo.stdout + demo.stderr))
    last_step, tps = rates[-1]
    assert last_step == "3"
    tokens = demo.report["tokens"]
    assert tokens["per_iteration"] == 8 * DEMO_TOKENS_PER_GPU
    assert float(tps.replace(",", "")) == pytest.approx(tokens["per_s_per_rank"], rel=0.01)


def test_demo_takes_as_long_as_measured(demo: Finished) -> None:
    assert demo.report["iteration_ns"] == pytest.approx(MEASURED_DEMO_NS, rel=0.15)


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_cuda_graphs(tmp_path: Path) -> None:
    """tests/native/test_cuda_graph.py has the functions one by one."""
    done = phantora(
        tmp_path,
        *("run", "--cluster", "dgx-h100"),
        job=(*TORCHRUN, "--nproc-per-node", "2", str(SCRIPTS / "cuda_graphs.py")),
    )
    assert done.code == 0, done.stdout + done.stderr


def test_graphs_save_host_time_and_nothing_else(tmp_path: Path) -> None:
    """Each op runs as often on the device as without, and for as long."""
    job = (*TORCHRUN, "--nproc-per-node", "2", str(SCRIPTS / "graphed_training.py"))
    eager = phantora(tmp_path, "run", "--cluster", "dgx-h100", job=job).report
    graphed = phantora(tmp_path, "run", "--cluster", "dgx-h100", job=(*job, "--graphs")).report
    assert op_averages(graphed) == op_averages(eager)
    assert ("kernel", "aten::_fused_adamw_") in op_averages(eager)
    assert ("collective", "all_reduce") in op_averages(eager)
    for part in ("compute", "exposed_communication"):
        assert breakdown_average(graphed, part) == pytest.approx(breakdown_average(eager, part))
    saved_ns = eager["iteration_ns"] - graphed["iteration_ns"]
    assert saved_ns > 0.3 * eager["iteration_ns"], "so small a block waits for the host"
    idle_ns = (breakdown_average(report, "idle") or 0.0 for report in (eager, graphed))
    assert saved_ns == pytest.approx(next(idle_ns) - next(idle_ns), rel=0.01)


def test_resnet50(tmp_path: Path) -> None:
    """About 4,250 images a second and GPU, 60 ms; NVIDIA measured 2,470 on an A100 (docs/accuracy.md)."""
    script = str(SCRIPTS / "resnet50.py")
    done = phantora(tmp_path, "run", "--cluster", "dgx-h100", job=(*TORCHRUN, "--nproc-per-node", "2", script))
    assert 60e6 < done.report["iteration_ns"] < 90e6
