"""Every example of the README and of docs/loop.md runs, with fewer steps."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MARK = "<!-- run by tests/test_readme.py -->"
PAGES = "\n".join((ROOT / page).read_text() for page in ("README.md", "docs/loop.md"))
BLOCKS = re.findall(re.escape(MARK) + r"\n```(\w+)\n(.*?)```", PAGES, re.S)
QUICK = {
    "--steps 100000": "--steps 150 --set warmup=50 batch_size=8 --eval-every 100 --eval-episodes 1",
    "--steps 200000": "--steps 160",
    "--episodes 10": "--episodes 1",
    "100_000": "100",
    "2_000": "100",
}


def quick(text: str) -> str:
    for long, short in QUICK.items():
        text = text.replace(long, short)
    return text


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{command}\n{result.stderr}"
    return result.stdout


def test_the_readme_has_its_examples() -> None:
    assert [language for language, _ in BLOCKS] == ["sh", "python", "python", "python"]


def test_the_shell_examples(tmp_path: Path) -> None:
    for line in quick(BLOCKS[0][1]).strip().splitlines():
        run(shlex.split(line), tmp_path)
    assert (tmp_path / "hopper.mp4").stat().st_size > 1000
    assert (tmp_path / "hopper.png").stat().st_size > 1000


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_python_examples(number: int, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(quick(BLOCKS[number][1]))
    run([sys.executable, str(script)], tmp_path)
