import subprocess
import sys
from pathlib import Path

import pytest
from launched import Workplace


@pytest.fixture(scope="session")
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin/ of a virtual environment without torch, with a torchrun that must never run."""
    folder = tmp_path_factory.mktemp("plain")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    torchrun = folder / "bin" / "torchrun"
    torchrun.write_text(f"#!{folder}/bin/python\nraise SystemExit('the real torchrun must never run')\n")
    torchrun.chmod(0o755)
    return folder / "bin"


@pytest.fixture
def torch_workplace(tmp_path: Path) -> Workplace:
    """With the Python of the tests, which has torch."""
    place = Workplace(tmp_path, Path(sys.executable).parent)
    place.variables["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "inductor")  # torch makes one in TMPDIR and leaves it
    return place


@pytest.fixture
def workplace(tmp_path: Path, plain_python: Path) -> Workplace:
    return Workplace(tmp_path, plain_python)
