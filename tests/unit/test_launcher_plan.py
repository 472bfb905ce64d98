"""Ranks that a torchrun command makes: numbers, environment, commands, and what is refused."""

from __future__ import annotations

import pytest

from phantora_launcher.errors import LaunchError
from phantora_launcher.torchrun.options import parse
from phantora_launcher.torchrun.output import Streams, parse_streams
from phantora_launcher.torchrun.plan import Machine, Plan, make_plan, rank_environment

TWO_NODES = Machine("dgx-h100", 2, 8)


def plan(*options: str, machine: Machine = TWO_NODES, inherited: dict[str, str] | None = None) -> Plan:
    legacy = "--use-env" in options or "legacy" in options
    words = [option for option in options if option != "legacy"]
    return make_plan(
        parse([*words, "train.py", "--x"], legacy=legacy, variables={}), machine, "python", 4321, inherited or {}
    )


def test_ranks_of_all_nodes() -> None:
    made = plan("--nnodes", "2", "--nproc-per-node", "8")
    assert made.world_size == 16
    assert [(rank.rank, rank.node, rank.local_rank) for rank in made.ranks] == [(r, r // 8, r % 8) for r in range(16)]
    assert {rank.hostname for rank in made.ranks} == {"dgx-h100-0", "dgx-h100-1"}


def test_environment_of_a_rank() -> None:
    made = plan("--nnodes", "2", "--nproc-per-node", "4", "--rdzv-id", "42", "--rdzv-backend", "c10d", "--role", "r")
    variables = dict(made.ranks[5].variables)
    assert variables == {
        "RANK": "5",
        "LOCAL_RANK": "1",
        "GROUP_RANK": "1",
        "ROLE_RANK": "5",
        "ROLE_NAME": "r",
        "LOCAL_WORLD_SIZE": "4",
        "WORLD_SIZE": "8",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_WORLD_SIZE": "8",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "4321",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "42",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "OMP_NUM_THREADS": "1",
        "PHANTORA_RANK": "5",
        "PHANTORA_NODE": "1",
        "PHANTORA_LOCAL_RANK": "1",
        "PHANTORA_HOSTNAME": "dgx-h100-1",
    }


def test_the_users_thread_count_stays() -> None:
    made = plan("--nproc-per-node", "4", inherited={"OMP_NUM_THREADS": "6"})
    assert rank_environment(made.ranks[0], {"OMP_NUM_THREADS": "6"})["OMP_NUM_THREADS"] == "6"
    assert "OMP_NUM_THREADS" not in plan("--nproc-per-node", "1").ranks[0].variables


@pytest.mark.parametrize(
    ("options", "command"),
    [
        ((), ["python", "-u", "train.py", "--x"]),
        (("-m",), ["python", "-u", "-m", "train.py", "--x"]),
        (("--no-python",), ["train.py", "--x"]),
        (("--run-path", "--no-python"), ["python", "-u", "train.py", "--x"]),
        (("legacy",), ["python", "-u", "train.py", "--local-rank=0", "--x"]),
        (("--use-env",), ["python", "-u", "train.py", "--x"]),
    ],
)
def test_commands(options: tuple[str, ...], command: list[str]) -> None:
    assert plan(*options).ranks[0].command == command


def test_local_rank_macro_in_arguments() -> None:
    options = parse(["--nproc-per-node", "2", "train.py", "--gpu=${local_rank}", "${other}"], variables={})
    made = make_plan(options, TWO_NODES, "python", 1, {})
    assert [rank.command[-2:] for rank in made.ranks] == [["--gpu=0", "${other}"], ["--gpu=1", "${other}"]]


@pytest.mark.parametrize(("count", "ranks"), [("gpu", 8), ("auto", 8), ("3", 3)])
def test_ranks_per_node(count: str, ranks: int) -> None:
    assert plan("--nproc-per-node", count).ranks_per_node == ranks


def test_elastic_range_takes_the_most() -> None:
    assert plan("--nnodes", "1:2").nodes == 2


def test_virtual_local_rank() -> None:
    own = [dict(rank.variables) for rank in plan("--nproc-per-node", "2", "--virtual-local-rank").ranks]
    assert [(v["LOCAL_RANK"], v["CUDA_VISIBLE_DEVICES"]) for v in own] == [("0", "0"), ("0", "1")]
    own = [
        dict(rank.variables)
        for rank in plan(
            "--nproc-per-node", "2", "--virtual-local-rank", inherited={"CUDA_VISIBLE_DEVICES": "6,7"}
        ).ranks
    ]
    assert [v["CUDA_VISIBLE_DEVICES"] for v in own] == ["6", "7"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--nnodes", "3"), "--cluster dgx-h100:3"),
        (("--nproc-per-node", "9"), "2 x 8 GPUs"),
        (("--nnodes", "0"), "--nnodes is '0'"),
        (("--nnodes", "2:1"), "MIN <= MAX"),
        (("--nnodes", "x"), "--nnodes is 'x'"),
        (("--nproc-per-node", "many"), "--nproc-per-node is 'many'"),
        (("--node-rank", "1", "--nnodes", "2"), "node 1"),
        (("--no-python", "-m"), "exclude each other"),
        (("--logs-specs", "mine"), "--logs-specs"),
        (("--max-restarts", "-1"), "--max-restarts"),
    ],
)
def test_refusals_name_the_value_and_a_hint(options: tuple[str, ...], part: str) -> None:
    with pytest.raises(LaunchError, match="hint: ") as refused:
        plan(*options)
    assert part in str(refused.value)


@pytest.mark.parametrize(
    ("text", "streams"),
    [("0", Streams.NONE), ("3", Streams.OUT | Streams.ERR), ("0:1,10:2", {0: Streams.OUT, 10: Streams.ERR})],
)
def test_streams(text: str, streams: object) -> None:
    assert parse_streams("--tee", text) == streams


@pytest.mark.parametrize("text", ["4", "", "0:4", "1:", "a"])
def test_bad_streams(text: str) -> None:
    with pytest.raises(LaunchError, match="--tee is"):
        parse_streams("--tee", text)


def test_ranks_of_mpi_s_option_that_contradict_torchrun_are_refused() -> None:
    assert plan("--nproc-per-node", "4", inherited={"PHANTORA_RANKS_PER_NODE": "8"}).world_size == 4  # the default
    with pytest.raises(LaunchError, match=r"--ranks-per-node 2, but torchrun starts 4(.|\n)*hint: .*--nproc-per-node"):
        plan("--nproc-per-node", "4", inherited={"PHANTORA_RANKS_PER_NODE": "2"})
