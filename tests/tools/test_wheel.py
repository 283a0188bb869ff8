"""A wheel as somebody would install it: complete, of one version, and it trains."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import adac

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """Without what would lead Python to this checkout."""
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--no-index", "-w", folder, source, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    package = ROOT / "src"
    files = (path for path in (package / "adac").rglob("*") if path.is_file())
    wanted = {str(path.relative_to(package)) for path in files if "__pycache__" not in path.parts}
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert wanted - packed == set()
    assert {name for name in packed - wanted if ".dist-info/" not in name} == set()


def test_the_version_is_said_once_and_repeated_correctly(wheel: Path) -> None:
    assert wheel.name.startswith(f"adac-{adac.__version__}-py3-none-any")
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == adac.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == adac.__version__
    assert "version" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_it_trains_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    """The packages that it needs are those of this environment: tools/venv_on_top.sh."""
    fresh, base = tmp_path / "fresh", Path(sys.prefix)
    run("sh", ROOT / "tools" / "venv_on_top.sh", base, fresh, cwd=tmp_path)
    python = fresh / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    ask = "import adac; from adac.cli.main import main; print(adac.__file__); main(['--version'])"
    where, version = run(python, "-c", ask, cwd=tmp_path).split("\n", 1)
    assert Path(where).is_relative_to(fresh)
    assert version.strip() == f"adac {adac.__version__}"
    tiny = ("actor_hidden=8", "critic_hidden=8", "batch_size=8", "warmup=20")
    words = ("Pendulum-v1", "--agent", "td3", "--steps", "50", "--eval-every", "0", "--out", "run")
    command = fresh / "bin" / "adac"
    assert "done: run" in run(command, "train", *words, "--set", *tiny, cwd=tmp_path)
