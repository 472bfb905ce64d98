"""One place declares every environment variable; the native side's names are among them."""

import re
from pathlib import Path

from phantora_launcher import environment

ROOT = Path(__file__).parents[2]
NAME = re.compile(r'"(PHANTORA_[A-Z_]+)"')
SOURCES = [
    path
    for folder in ("native", "phantora_py", "netsim", "launcher")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".cpp", ".cc", ".h") and path.name != "environment.py"
]


def declared() -> set[str]:
    return {value for name, value in vars(environment).items() if name.isupper() and isinstance(value, str)}


def test_every_name_in_the_sources_is_declared() -> None:
    used = {(path.name, name) for path in SOURCES for name in NAME.findall(path.read_text())}
    assert used, "no name was found: is the pattern right?"
    assert {(file, name) for file, name in used if name not in declared()} == set()


def test_every_declared_name_is_documented_here() -> None:
    lines = Path(environment.__file__).read_text().splitlines()
    for number, line in enumerate(lines):
        if re.match(r"[A-Z_]+ = \"", line):
            assert lines[number + 1].startswith('"""'), line
