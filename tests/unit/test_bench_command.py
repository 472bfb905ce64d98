"""`phantora bench collectives` prints nccl-tests' columns, by nccl-tests' definitions."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from phantora_launcher.cli import app
from phantora_launcher.errors import LaunchError
from phantora_py.cluster import Device, load_cluster
from phantora_py.host import DEFAULT_HOST
from phantora_py.nccl.bench import CollectiveBench, Line, Loop, op_named, sizes


def lines(*arguments: str, **environment: str) -> list[list[str]]:
    """The cells of each line of the table."""
    done = CliRunner().invoke(app, ["bench", "collectives", *arguments], env=environment)
    assert done.exit_code == 0, done.output
    return [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]


def test_columns() -> None:
    (line,) = lines("--cluster", "dgx-h100", "-b", "1G", "-e", "1G")
    size, count, dtype, redop, root, time_us, algbw, busbw = line
    assert (size, count, dtype, redop, root) == (str(1 << 30), str(1 << 28), "float", "sum", "-1")
    assert float(algbw) == pytest.approx((1 << 30) / float(time_us) / 1e3, abs=0.01)
    assert float(busbw) == pytest.approx(float(algbw) * 2 * 7 / 8, abs=0.02)


def test_sizes_go_by_factor_or_step() -> None:
    assert list(sizes(8, 100, 2.0, 0)) == [8, 16, 32, 64]
    assert list(sizes(8, 100, 2.0, 40)) == [8, 48, 88]
    assert list(sizes(1, 3, 1.1, 0)) == [1, 2, 3]


def test_sizes_are_rounded_as_nccl_tests_does() -> None:
    """32 MiB of doubles are 419,430 for each of 10 ranks (nccl-tests prints 33,554,400 bytes), 209,714 of 20."""
    for per_node, size, count in ((1, 33_554_400, 419_430), (2, 33_554_240, 209_714)):
        bench = CollectiveBench(load_cluster("dgx-h100:10"), per_node, 10)
        line = bench.line("all_gather", 32 << 20, "double")
        assert (line.size_bytes, line.count) == (size, count)


def test_explain_names_what_nccl_takes() -> None:
    taken = [line[-2:] for line in lines("-b", "1K", "-e", "1G", "-f", "1048576", "--explain")]
    assert taken == [["ring", "LL"], ["nvls", "Simple"]]
    taken = [line[-2:] for line in lines("-b", "1G", "-e", "1G", "--explain", NCCL_NVLS_ENABLE="0")]
    assert taken == [["ring", "Simple"]]


def test_sizes_that_are_rounded_to_one_are_shown_once() -> None:
    assert [line[0] for line in lines("-b", "0", "-e", "16")] == ["0", "4", "8", "16"]
    assert [line[0] for line in lines("-b", "0", "-e", "2M", "-i", "1M")] == ["0", str(1 << 20), str(2 << 20)]


def test_other_names_of_ops_and_types() -> None:
    for op in ("all_reduce", "allreduce", "AllReduce", "all_reduce_perf"):
        for dtype in ("half", "fp16", "float16"):
            (line,) = lines("--op", op, "-d", dtype, "-b", "1M", "-e", "1M")
            assert line[2] == "half"
    assert op_named("all_to_all") == "alltoall"


def test_rows_are_printed_as_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = CollectiveBench.line

    def failing(bench: CollectiveBench, op: str, size_bytes: int, dtype: str) -> Line:
        if size_bytes > 16:
            raise ValueError("enough")
        return whole(bench, op, size_bytes, dtype)

    monkeypatch.setattr(CollectiveBench, "line", failing)
    done = CliRunner().invoke(app, ["bench", "collectives", "-b", "8", "-e", "1K"])
    assert isinstance(done.exception, LaunchError)
    assert [line.split()[0] for line in done.stdout.splitlines() if not line.startswith("#")] == ["8", "16"]


def test_send_and_receive_take_the_slowest_pair() -> None:
    bench = CollectiveBench(load_cluster("dgx-h100:2"), 8, 2, Loop(iterations=1000))
    assert bench.members[8] == Device(1, 0)
    line = bench.line("sendrecv", 1 << 30, "float")
    assert line.busbw == line.algbw < 26, "one channel of 25 GB/s between nodes"


@pytest.mark.parametrize("op", ["broadcast", "reduce", "alltoall", "gather", "scatter", "reduce_scatter"])
def test_all_ops(op: str) -> None:
    found = lines("--op", op, "-b", "8", "-e", "64M", "-f", "64", "--nodes", "2", "-g", "4", "-d", "half")
    assert len(found) == 4
    assert all(float(line[5]) > 0 for line in found)


def test_a_host_that_launches_for_many_gpus_is_waited_for() -> None:
    many, one = Loop(gpus_of_a_process=8, iterations=10), Loop(iterations=10)
    assert many.mean_ns(10_000) == 8 * DEFAULT_HOST.launch_ns + (10_000 + DEFAULT_HOST.sync_ns) / 10
    assert one.mean_ns(10_000) == 10_000 + (DEFAULT_HOST.launch_ns + DEFAULT_HOST.sync_ns) / 10
    small = ("--cluster", "dgx-h100", "-b", "8", "-e", "8")
    assert float(lines(*small)[0][5]) > 8 * DEFAULT_HOST.launch_ns / 1e3 > float(lines(*small, "-p", "8")[0][5])
    two = (*small, "--nodes", "2")
    assert lines(*two) == lines(*two, "-p", "8") != lines(*two, "-p", "1")


def test_far_from_a_slow_pair_gpus_are_held_up_later() -> None:
    around_ns = DEFAULT_HOST.launch_ns + DEFAULT_HOST.sync_ns
    pairs_ns = [1000, 1000, 1000, 4000]  # from 0 to 1, …, from 3 to 0: after one message 1 and 2 are done
    assert Loop(iterations=1).mean_in_ring_ns(pairs_ns) == (4000 + 1000 + 1000 + 4000) / 4 + around_ns
    assert Loop(iterations=2).mean_in_ring_ns(pairs_ns) == ((8000 + 5000 + 5000 + 8000) / 4 + around_ns) / 2
    assert Loop(4, iterations=1).mean_in_ring_ns(pairs_ns) == 4000 + around_ns + 3 * DEFAULT_HOST.launch_ns


def test_differences_from_what_nccl_tests_printed(tmp_path: Path) -> None:
    file = tmp_path / "printed.txt"
    ((_size, _count, _dtype, _redop, _root, time_us, *_),) = lines("-b", "1M", "-e", "1M")
    row = "  1048576  262144  float  sum  -1  {:.2f}  17.69  30.96  0  59.4  17.7  30.9  N/A\n"
    file.write_text("# nccl-tests\n" + row.format(float(time_us) * 2))
    (same, other) = lines("-b", "1M", "-e", "2M", "--beside", str(file))
    assert float(same[-1]) == pytest.approx(100, abs=0.1)
    assert other[-2:] == ["-", "-"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-g", "9"), "-g 9"),
        (("--op", "hypercube"), "--op 'hypercube'"),
        (("--dtype", "fp4"), "--dtype 'fp4'"),
        (("-b", "1 MB"), "-b '1 MB' is no size"),
        (("-b", "2M", "-e", "1M"), "-b 2M is more than -e 1M"),
        (("-b", "9" * 400), "is no size"),
        (("-f", "1"), "-f 1 leads to no next size"),
        (("-f", "inf"), "-f inf leads to no next size"),
        (("-f", "nan"), "-f nan leads to no next size"),
        (("-f", "1e308"), "-f 1e+308 leads to no next size"),
        (("-b", "1G", "-e", "2G", "-i", "1"), "-b 1G -e 2G -i 1 are 1,073,741,825 sizes"),
        (("-b", "1G", "-e", "2G", "-f", "1.0000001"), "are more than 100,000 sizes"),
        (("--nodes", "0"), "nodes"),
        (("-p", "3"), "-p 3 does not divide"),
        (("--beside", "absent.txt"), "--beside absent.txt"),
        (("--cluster", "dgx-h1000"), "no cluster is named"),
    ],
)
def test_mistakes_have_hints(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["bench", "collectives", *arguments])
    assert isinstance(done.exception, LaunchError)
    assert message in str(done.exception)
    assert "\n  hint: " in str(done.exception)


def test_what_nccl_refuses_is_refused() -> None:
    for variables in ({"NCCL_ALGO": "rung"}, {"NCCL_ALGO": "Tree"}):
        done = CliRunner().invoke(app, ["bench", "collectives", "--op", "all_gather"], env=variables)
        assert isinstance(done.exception, LaunchError)
        assert "NCCL_ALGO" in done.exception.what
