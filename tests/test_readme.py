"""Every example of the README and of the documentation runs, with fewer steps.

Marked blocks of a page run in order, in one folder. One that begins with `# NAME.py` or
`# NAME.toml` becomes that file; of the others Python is a script and sh is line by line.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MARK = "<!-- run by tests/test_readme.py -->"
PAGES = {  # and what is there in the end
    "README.md": ["hopper.mp4", "hopper.png"],
    "docs/loop.md": [],
    "docs/tutorial/first-run.md": ["pendulum.mp4", "pendulum.png", "runs/pendulum-python"],
    "docs/tutorial/read-a-run.md": ["spread.png"],
    "docs/tutorial/own-task.md": ["runs/reach/evaluations.csv"],
    "docs/tutorial/own-explorer.md": ["runs/sometimes/checkpoint"],
    "docs/tutorial/comparison.md": ["figures/compare.png", "report.html"],
    "docs/howto/callbacks.md": ["runs/patient/evaluations.csv"],
    "docs/howto/data.md": ["runs/tuned/checkpoint", "runs/offline/checkpoint"],
    "docs/howto/environments.md": ["runs/rescaled/evaluations.csv", "runs/apart/checkpoint"],
    "docs/howto/resume.md": ["runs/long/checkpoint", "runs/python/checkpoint"],
    "docs/howto/stable-baselines3.md": [],
}
FEW = {
    "train": (
        r"--steps \S+",
        "--steps 150 --log-every 50 --eval-episodes 1 --set warmup=50 batch_size=8",
    ),
    "resume": (r"--steps \S+", "--steps 160"),
    "eval": (r"--episodes \d+", "--episodes 1"),
    "sweep": (r"$", " --steps 120 --seeds 2 --agent td3 --agent adac-td3"),
}


def blocks(page: str) -> list[tuple[str, str]]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(re.escape(MARK) + r"\n```(\w+)\n(.*?)```", text, re.S)


def quick(line: str) -> str:
    """One command with few steps."""
    for verb, (many, few) in FEW.items():
        if re.search(rf"\badac {verb} ", line):
            line = re.sub(many, few, line.split("  #")[0].rstrip(), count=1)
    return re.sub(r"--eval-every \d+", "--eval-every 100", line)


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_every_marked_page_is_listed() -> None:
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    marked = {str(p.relative_to(ROOT)) for p in found if MARK in p.read_text(encoding="utf-8")}
    assert marked == PAGES.keys()
    assert all(len(blocks(page)) == (ROOT / page).read_text().count(MARK) for page in PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples(page: str, tmp_path: Path) -> None:
    for number, (language, text) in enumerate(blocks(page)):
        name = re.match(r"# (\w+\.(?:py|toml))\n", text)
        if language == "sh":
            for line in text.strip().splitlines():
                run(shlex.split(quick(line), comments=True), tmp_path)
            continue
        text = re.sub(r"\b\d+_\d00\b", "100", text)
        file = tmp_path / (name[1] if name else f"example_{number}.py")
        file.write_text(text, encoding="utf-8")
        if not name:
            run([sys.executable, str(file)], tmp_path)
    for wanted in PAGES[page]:
        assert (tmp_path / wanted).stat().st_size > 50, wanted
