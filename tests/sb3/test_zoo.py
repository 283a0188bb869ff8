"""RL Zoo's own scripts with our agents, each in a process of its own as somebody would type it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rl_zoo3")

SHORT = (
    *("--env", "Pendulum-v1", "-n", "60", "--eval-freq", "-1", "-f", "logs", "--seed", "1"),
    *("-params", "learning_starts:20", "batch_size:8", "policy_kwargs:dict(net_arch=[8])"),
)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_train_and_enjoy(tmp_path: Path) -> None:
    done = run(tmp_path, "adac.sb3.zoo", "train", "--algo", "adac", *SHORT)
    assert done.returncode == 0, done.stderr
    (model,) = tmp_path.glob("logs/adac/Pendulum-v1_1/Pendulum-v1.zip")
    words = ("--env", "Pendulum-v1", "-f", "logs", "-n", "20", "--no-render")
    seen = run(tmp_path, "adac.sb3.zoo", "enjoy", "--algo", "adac", *words)
    assert seen.returncode == 0, seen.stderr
    assert model.name in seen.stdout


def test_the_zoos_own_command_by_its_file_of_custom_environments(tmp_path: Path) -> None:
    """What it imports before it reads its arguments: adac's agents can be among them."""
    hook = "from adac.sb3.zoo import register\n\nregister()\n"
    (tmp_path / "custom_envs.py").write_text(hook)
    words = ("--algo", "adac-sac", "--conf-file", "adac.sb3.zoo")
    done = run(tmp_path, "rl_zoo3.train", *words, *SHORT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "adac-sac").is_dir()


def test_what_it_does_not_know_is_one_sentence(tmp_path: Path) -> None:
    wrong = run(tmp_path, "adac.sb3.zoo", "trian")
    assert wrong.returncode == 1
    assert wrong.stderr.strip().splitlines()[-1].startswith("say what to do: train, enjoy")
