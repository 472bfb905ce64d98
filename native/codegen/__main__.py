"""Writes native/shims/generated from native/spec; run in native/: `python -m codegen` (`--check` only compares).

Per library: <library>.c (stubs, constants, the table of all functions) and <library>.map.cuda<major> (version script);
for all: cuda<major>.cmake (which libraries to build under which SONAME). The output is checked in, so that a build
needs no generator; a test runs `--check`.
"""

import argparse
import difflib
import sys
from pathlib import Path

from codegen.render import render
from phantora_native.functions import load_all

NATIVE = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with what is checked in; exit 1 on a difference")
    parser.add_argument("--spec", type=Path, default=NATIVE / "spec", help="directory of the spec files")
    parser.add_argument("--output", type=Path, default=NATIVE / "shims" / "generated")
    options = parser.parse_args()
    wanted = render(load_all(options.spec))
    return check(wanted, options.output) if options.check else write(wanted, options.output)


def write(wanted: dict[str, str], output: Path) -> int:
    """Brings `output` to hold exactly the wanted files; equal ones stay untouched, lest they be compiled again."""
    output.mkdir(parents=True, exist_ok=True)
    for stale in _present(output).keys() - wanted.keys():
        (output / stale).unlink()
    for name, text in wanted.items():
        if _present(output).get(name) != text:
            (output / name).write_text(text)
    return 0


def check(wanted: dict[str, str], output: Path) -> int:
    """Prints a diff of what `write` would change; 1 if anything."""
    present = _present(output)
    differing = [name for name in sorted(wanted.keys() | present.keys()) if wanted.get(name) != present.get(name)]
    for name in differing:
        before, after = present.get(name, "").splitlines(), wanted.get(name, "").splitlines()
        print(
            "\n".join(difflib.unified_diff(before, after, f"checked in/{name}", f"generated/{name}", lineterm="", n=1))
        )
    if differing:
        print(
            f"{len(differing)} files of {output} are out of date\n  hint: run `python -m codegen` in native/",
            file=sys.stderr,
        )
    return 1 if differing else 0


def _present(output: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in output.iterdir()} if output.is_dir() else {}


if __name__ == "__main__":
    sys.exit(main())
