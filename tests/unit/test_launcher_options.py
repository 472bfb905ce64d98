"""torchrun's options as our front reads them, against torch's own parser."""

import os
from argparse import Namespace

import pytest

from phantora_launcher.torchrun.options import comma_separated, parse

run = pytest.importorskip("torch.distributed.run")

SCRIPT = ["train.py", "--lr", "0.1", "-m", "--nnodes", "7"]
OPTIONS = [
    [],
    ["--nnodes", "2"],
    ["--nnodes=1:4"],
    ["--nproc-per-node", "8"],
    ["--nproc_per_node=gpu"],
    ["--nproc-per-node", "auto"],
    ["--rdzv-backend", "c10d", "--rdzv_endpoint=host:29400", "--rdzv-id", "77", "--rdzv_conf", "a=1,b=2"],
    ["--standalone"],
    ["--max-restarts", "3"],
    ["--max_restarts=0", "--monitor-interval", "1.5"],
    ["--monitor_interval=2"],
    ["--start-method", "fork"],
    ["--event-log-handler", "console"],
    ["--role", "trainer"],
    ["-m"],
    ["--module"],
    ["--no-python"],
    ["--no_python"],
    ["--run-path"],
    ["--log-dir", "logs"],
    ["--log_dir=logs", "-r", "3", "-t", "0:1,1:2"],
    ["--redirects", "1", "--tee=3"],
    ["--log-line-prefix-template", "${hostname}:${rank}: "],
    ["--local-ranks-filter", "0,1"],
    ["--local_ranks_filter=0"],
    ["--duplicate-stdout-filters", "apple,or,,ange", "--duplicate_stderr_filters=x"],
    ["--node-rank", "1"],
    ["--node_rank=0", "--master-addr", "10.0.0.1", "--master_port", "1234", "--local-addr", "10.0.0.2"],
    ["--numa-binding", "core-complex"],
    ["--logs-specs", "mine"],
    ["--signals-to-handle", "SIGTERM,SIGUSR1"],
    ["--shutdown-timeout", "5"],
    ["--virtual-local-rank"],
    ["--stand"],  # an abbreviation
]


def theirs(arguments: list[str]) -> Namespace:
    return run.get_args_parser().parse_args(arguments)


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_same_result_as_torch(options: list[str]) -> None:
    assert vars(parse([*options, *SCRIPT])) == vars(theirs([*options, *SCRIPT]))


def test_every_option_of_torch_is_known() -> None:
    known = set(run.get_args_parser()._option_string_actions)
    for spelling in known - {"-h", "--help", "--print-completion", "--print_completion"}:
        action = run.get_args_parser()._option_string_actions[spelling]
        value = [] if action.nargs == 0 else [str((action.choices or ["1"])[0])]
        ours = vars(parse([spelling, *value, "train.py"]))
        assert ours == vars(theirs([spelling, *value, "train.py"])), spelling


@pytest.mark.parametrize(
    "variables",
    [
        {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "4", "PET_NODE_RANK": "1"},
        {"PET_STANDALONE": "1", "PET_LOG_DIR": "x", "PET_MAX_RESTARTS": "2", "PET_MASTER_PORT": "77"},
        {"PET_MODULE": "1", "PET_NO_PYTHON": "0", "PET_REDIRECTS": "3", "PET_RDZV_ID": "j"},
    ],
)
def test_same_environment_variables_as_torch(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert vars(parse(SCRIPT, variables=os.environ)) == vars(theirs(SCRIPT))


def test_launch_has_use_env() -> None:
    from torch.distributed import launch

    arguments = ["--nproc-per-node", "2", "--use-env", "train.py", "x"]
    assert vars(parse(arguments, legacy=True)) == vars(launch.parse_args(arguments))


@pytest.mark.parametrize("arguments", [["--nnodes"], [], ["--bogus", "train.py"], ["--start-method", "x", "train.py"]])
def test_what_torch_refuses_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ours:
        parse(arguments)
    with pytest.raises(SystemExit) as torchs:
        theirs(arguments)
    assert ours.value.code == torchs.value.code == 2


def test_double_comma_is_a_comma() -> None:
    assert comma_separated("a,,b,c") == ["a,b", "c"]
