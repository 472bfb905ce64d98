"""What a Python was started to run, from its command line."""

import pytest

from phantora_launcher.rank.interpreter import program


@pytest.mark.parametrize(
    ("line", "kind", "name", "arguments"),
    [
        ("python", "interactive", "", []),
        ("python train.py -m x", "script", "train.py", ["-m", "x"]),
        ("python -u -W ignore -X dev train.py", "script", "train.py", []),
        ("python -Wignore -Xdev -m pkg.mod a b", "module", "pkg.mod", ["a", "b"]),
        ("python -um pkg a", "module", "pkg", ["a"]),
        ("python -mpkg a", "module", "pkg", ["a"]),
        ("python -c code -m x", "code", "code", ["-m", "x"]),
        ("python --check-hash-based-pycs always x.py", "script", "x.py", []),
        ("python - a", "script", "-", ["a"]),
        ("python -m", "module", "", []),
    ],
)
def test_program(line: str, kind: str, name: str, arguments: list[str]) -> None:
    found = program(line.split())
    assert (found.kind, found.name, found.arguments) == (kind, name, arguments)


@pytest.mark.parametrize(
    ("line", "launcher"),
    [
        ("python -m torch.distributed.run x.py", "torchrun"),
        ("python -m torch.distributed.launch x.py", "launch"),
        ("python /venv/bin/torchrun x.py", "torchrun"),
        ("python torchrun.py", None),
        ("python -m torch.distributed.elastic", None),
        ("python train.py torchrun", None),
    ],
)
def test_torchrun_is_known(line: str, launcher: str | None) -> None:
    assert program(line.split()).torchrun == launcher


def test_children_of_multiprocessing() -> None:
    spawned = ["python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "--multiprocessing-fork"]
    assert program(spawned).is_child_of_multiprocessing
    assert program(
        ["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"]
    ).is_child_of_multiprocessing
    assert not program(["python", "-c", "print()"]).is_child_of_multiprocessing
