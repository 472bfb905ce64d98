"""`phantora run` with real processes that have nothing to do with torch: environment, output, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launched import Workplace

SHOW = """\
import os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK", "PHANTORA_RANK", "PHANTORA_HOSTNAME")
line = " ".join([*(str(os.environ.get(name)) for name in names), *sys.argv[1:]])
os.write(1, (line + "\\n").encode())
"""


def test_a_cluster_must_be_named() -> None:
    command = [sys.executable, "-m", "phantora_launcher", "run", "--", "python", "show.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "no cluster is given\n  hint: --cluster dgx-h100" in done.stderr


def test_plain_python_is_a_world_of_one(workplace: Workplace) -> None:
    workplace.script("show.py", SHOW)
    done = workplace.run("python", "show.py", "--x", cluster="dgx-h100")
    assert done.stdout.splitlines()[0] == "None None None None 0 dgx-h100-0 --x"
    assert done.code == 0
    workplace.assert_nothing_is_left()


@pytest.mark.parametrize(
    "command",
    [
        ["torchrun", "--nnodes", "2", "--nproc-per-node", "2", "show.py"],
        ["python", "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2", "show.py"],
        ["bash", "-c", "exec torchrun --nnodes 2 --nproc_per_node 2 show.py"],
    ],
)
def test_one_command_starts_the_ranks_of_all_nodes(workplace: Workplace, command: list[str]) -> None:
    workplace.script("show.py", SHOW)
    done = workplace.run(*command)
    lines = sorted(line for line in done.stdout.splitlines() if re.match(r"\d ", line))
    assert lines == [
        "0 0 4 0 0 dgx-h100-0",
        "1 1 4 0 1 dgx-h100-0",
        "2 0 4 1 2 dgx-h100-1",
        "3 1 4 1 3 dgx-h100-1",
    ]
    assert done.code == 0, done.stderr
    workplace.assert_nothing_is_left()


def test_two_jobs_side_by_side_have_their_own_port(workplace: Workplace) -> None:
    workplace.script("port.py", "import os\nprint(os.environ['MASTER_PORT'])\n")
    ports = [workplace.run("torchrun", "--master-port", "29500", "port.py").stdout.splitlines()[0] for _ in range(2)]
    assert all(port.isdigit() for port in ports)


@pytest.mark.parametrize("code", [0, 1, 3, 70])
def test_exit_code_is_the_jobs(workplace: Workplace, code: int) -> None:
    assert workplace.run("python", "-c", f"raise SystemExit({code})").code == code
    workplace.assert_nothing_is_left()


def test_signal_of_the_command_becomes_its_shell_code(workplace: Workplace) -> None:
    done = workplace.run("python", "-c", "import os; os.kill(os.getpid(), 9)")
    assert done.code == 137
    assert "killed by SIGKILL" in done.stderr


def test_failing_rank_ends_the_job_with_its_traceback(workplace: Workplace) -> None:
    workplace.script(
        "fail.py",
        "import os, time\nif os.environ['RANK'] == '2':\n    raise ValueError('the batch is bad')\ntime.sleep(3600)\n",
    )
    done = workplace.run("torchrun", "--nproc-per-node", "4", "fail.py")
    assert done.code == 1
    assert "ValueError: the batch is bad" in done.stderr
    assert "rank 2 (local rank 2 on dgx-h100-0" in done.stderr
    assert "Root Cause" in done.stderr
    workplace.assert_nothing_is_left()


def test_recorded_error_is_shown(workplace: Workplace) -> None:
    record = {
        "message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback of mine", "timestamp": "1"}}
    }
    workplace.script(
        "fail.py",
        "import os\nopen(os.environ['TORCHELASTIC_ERROR_FILE'], 'w')"
        f".write({json.dumps(record)!r})\nraise SystemExit(1)\n",
    )
    done = workplace.run("torchrun", "fail.py")
    assert "traceback : Traceback of mine" in done.stderr


def test_tee_prefixes_lines_and_keeps_files(workplace: Workplace) -> None:
    workplace.script("say.py", "import os, sys\nprint('out', os.environ['RANK'])\nprint('err', file=sys.stderr)\n")
    options = [
        "--nproc-per-node",
        "2",
        "--tee",
        "3",
        "--log-dir",
        "logs",
        "--role",
        "r",
        "--rdzv-id",
        "7",
        "--master-port",
        "1",
    ]
    done = workplace.run("torchrun", *options, "--duplicate-stdout-filters", "out 1", "say.py")
    assert {"[r0]:out 0", "[r1]:out 1"} <= set(done.stdout.splitlines())
    assert {"[r0]:err", "[r1]:err"} <= set(done.stderr.splitlines())
    [attempt] = workplace.folder.glob("logs/7_*/attempt_0")
    assert (attempt / "1" / "stdout.log").read_text() == "out 1\n"
    assert (attempt / "filtered_stdout.log").read_text() == "[r1]:out 1\n"


def test_prefix_template_knows_the_nodes_host_name(workplace: Workplace) -> None:
    workplace.script("say.py", "print('x')\n")
    template = "${hostname}/${rank}/${local_rank}/${role_name}: "
    done = workplace.run("torchrun", "--nnodes", "2", "--tee", "1", "--log-line-prefix-template", template, "say.py")
    assert {"dgx-h100-0/0/0/default: x", "dgx-h100-1/1/0/default: x"} <= set(done.stdout.splitlines())


def test_redirect_and_filter_hide_output(workplace: Workplace) -> None:
    workplace.script("say.py", "import os\nprint('said by ' + os.environ['RANK'])\n")
    done = workplace.run("torchrun", "--nproc-per-node", "3", "--local-ranks-filter", "1", "say.py")
    assert [line for line in done.stdout.splitlines() if "said" in line] == ["said by 1"]
    done = workplace.run("torchrun", "--redirects", "3", "--log-dir", "logs", "say.py")
    assert "said" not in done.stdout
    assert [path.read_text() for path in workplace.folder.glob("logs/*/attempt_0/0/stdout.log")] == ["said by 0\n"]


def test_too_many_ranks_for_the_cluster(workplace: Workplace) -> None:
    done = workplace.run("torchrun", "--nnodes", "4", "x.py")
    assert done.code == 2
    assert "hint: phantora run --cluster dgx-h100:4" in done.stderr


@pytest.mark.parametrize(
    ("command", "cluster", "part"),
    [
        (["python", "x.py"], "no-such", "no cluster is named 'no-such'"),
        (["no-such-program"], "dgx-h100", "'no-such-program' is not a program"),
    ],
)
def test_nothing_is_started_for_a_wrong_command_line(
    workplace: Workplace, command: list[str], cluster: str, part: str
) -> None:
    done = workplace.run(*command, cluster=cluster)
    assert done.code == 2
    assert part in done.stderr
    assert "hint:" in done.stderr
    workplace.assert_nothing_is_left()


@pytest.mark.parametrize("option", ["--json", "--trace"])
def test_a_place_that_takes_no_report_is_refused_before_the_job(workplace: Workplace, option: str) -> None:
    done = workplace.run("python", "-c", "print('ran')", options=(option, "no/such/folder/file"))
    assert done.code == 2
    assert f"{option} no/such/folder/file: no file can be made" in done.stderr
    assert "ran" not in done.stdout


def test_a_job_without_cuda_is_told_that_it_has_no_report(workplace: Workplace) -> None:
    done = workplace.run("python", "-c", "")
    assert done.code == 0
    assert "nothing to report" in done.stdout


def test_modules_beside_the_job_are_its_own(workplace: Workplace) -> None:
    for name in ("copy.py", "json.py", "numpy.py", "phantora_py.py"):
        workplace.script(name, "raise ImportError('not for you')\n")
    workplace.script("show.py", SHOW)
    _, _, _, *arguments = workplace.phantora_command("torchrun", "--nproc-per-node", "2", "show.py", "trains")
    line = [str(Path(sys.executable).with_name("phantora")), *arguments]
    done = subprocess.run(
        line, cwd=workplace.folder, env=workplace.variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 1 2 0 1" in done.stdout


def test_the_users_own_sitecustomize_runs(workplace: Workplace) -> None:
    (workplace.folder / "mine").mkdir()
    workplace.script("mine/sitecustomize.py", "import sys\nsys.mine = 'was here'\n")
    workplace.variables["PYTHONPATH"] = str(workplace.folder / "mine")
    done = workplace.run("python", "-c", "import sys, sitecustomize; print(sys.mine, sitecustomize.__file__)")
    assert done.stdout.startswith(f"was here {workplace.folder}/mine/sitecustomize.py")


@pytest.mark.parametrize("lost", ["PYTHONPATH=/nowhere", "-u PYTHONPATH", "LD_PRELOAD=", "-u LD_PRELOAD"])
def test_run_scripts_that_set_paths_anew(workplace: Workplace, lost: str) -> None:
    workplace.script(
        "show.py", "import os, sys\nsys.stdout.write(os.environ['PHANTORA_RANK'] + os.environ['LD_PRELOAD'] + '\\n')\n"
    )
    done = workplace.run("bash", "-c", f"env {lost} torchrun --nproc-per-node 2 show.py")
    lines = sorted(line for line in done.stdout.splitlines() if "phantora_preload" in line)
    assert [line[0] for line in lines] == ["0", "1"], done.stderr


def test_run_folder_is_private(workplace: Workplace) -> None:
    code = (
        "import os; d = os.environ['PHANTORA_RUN_DIR']; print(oct(os.stat(d).st_mode & 0o777), sorted(os.listdir(d)))"
    )
    first = workplace.run("python", "-c", code).stdout.splitlines()[0]
    assert first.startswith("0o700")
    assert "machine.conf" in first
    assert "sim.sock" in first


def test_json_report_is_written(workplace: Workplace) -> None:
    workplace.script("x.py", "")
    workplace.run("torchrun", "--nproc-per-node", "2", "x.py", options=("--json", "report.json"))
    report = json.loads((workplace.folder / "report.json").read_text())
    assert report["world_size"] == 2


def test_what_the_command_left_behind_is_ended(workplace: Workplace) -> None:
    done = workplace.run("bash", "-c", "setsid sleep 3600 & disown; exit 0")
    assert done.code == 0
    assert "left behind" in done.stderr
    workplace.assert_nothing_is_left()
