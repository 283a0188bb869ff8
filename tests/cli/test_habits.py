"""What people type out of habit: 1e5, 100k, [64,64], --env-kwargs, --config, --version."""

import json
from pathlib import Path

import pytest
import typer

import adac as package
from adac.cli.options import expand_settings, number_of_steps, parse_kwargs
from adac.errors import UserError
from adac.training.learner import Learner
from commands import adac, fails, read_rows
from helpers import assert_same_bits

TINY = [
    "--agent", "td3", "--set", "actor_hidden=[8,8]", "critic_hidden=(8,)", "batch_size=8",
    "warmup=10", "--env-kwargs", "g=9.0",
]  # fmt: skip
PLAN = ["--eval-every", "0", "--log-every", "0.02k", "--checkpoint-every", "2e1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("habits") / "run"
    words = ["--steps", "4e1", "--seed", "3", "--out", folder]
    assert adac("train", "Pendulum-v1", *words, *TINY, *PLAN) == 0
    return folder


@pytest.mark.parametrize(
    ("text", "number"),
    [("100", 100), ("1e5", 100_000), ("100k", 100_000), ("1.5M", 1_500_000), ("10_000", 10_000),
     ("10,000", 10_000), ("0", 0)],
)  # fmt: skip
def test_steps_are_understood(text: str, number: int) -> None:
    assert number_of_steps(text) == number


@pytest.mark.parametrize("text", ["", "k", "abc", "1.5", "1e-3", "nan", "inf", "1e400", "10kk"])
def test_what_is_no_number_of_steps_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write 100000, 1e5 or 100k"):
        number_of_steps(text)


def test_lists_and_a_task_s_own_settings_arrive(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    assert config["agent"]["networks"]["actor_hidden"] == [8, 8]
    assert config["agent"]["networks"]["critic_hidden"] == [8]
    assert config["env_kwargs"] == {"g": 9.0}
    assert (config["steps"], config["log_every"], config["checkpoint_every"]) == (40, 20, 20)
    assert [row["step"] for row in read_rows(run / "metrics.csv")] == ["20", "40"]


def test_a_config_repeats_its_run_to_the_bit(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    assert adac("train", "--config", run / "config.json", "--out", out) == 0
    first, second = Learner.load(run), Learner.load(out)
    assert_same_bits(first.state, second.state)
    then, now = (json.loads((folder / "config.json").read_text()) for folder in (run, out))
    assert then == now


def test_what_is_typed_counts_more_than_the_config(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "changed"
    words = ["--seed", "4", "--steps", "20", "--set", "batch_size=4", "--env-kwargs", "g=8.0"]
    assert adac("train", "--config", run, "--out", out, *words) == 0
    config = json.loads((out / "config.json").read_text())
    assert (config["seed"], config["steps"], config["agent"]["batch_size"]) == (4, 20, 4)
    assert config["agent"]["networks"]["actor_hidden"] == [8, 8]
    assert config["agent_name"] == "td3"
    assert config["env_kwargs"] == {"g": 8.0}


def test_a_config_imports_no_code_and_opens_no_file(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads((run / "config.json").read_text())
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(config | {"env": "nowhere:Task-v0"}))
    assert "imports no code" in fails(capsys, "train", "--config", file, "--out", tmp_path / "a")
    file.write_text(json.dumps(config | {"env_kwargs": {"xml_file": "/etc/passwd"}}))
    assert "names a file" in fails(capsys, "train", "--config", file, "--out", tmp_path / "a")
    assert "has no no.json" in fails(capsys, "train", "--config", tmp_path / "no.json")


def test_a_task_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "name a task" in fails(capsys, "train")


def test_name_and_value_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--set wants NAME=VALUE, not 'gamma'" in fails(
        capsys, "train", "Pendulum-v1", "--set", "gamma", "0.9"
    )
    assert expand_settings(["--env-kwargs", "a=1", "b=2", "--seed", "0"]) == [
        "--env-kwargs", "a=1", "--env-kwargs", "b=2", "--seed", "0",
    ]  # fmt: skip


def test_a_task_s_settings_are_numbers_truths_lists_or_texts() -> None:
    words = ["a=1", "b=2.5", "c=true", "d=False", "e=None", "f=text", "g=[1, 2]", "h=1e3=x"]
    assert parse_kwargs(words) == {
        "a": 1, "b": 2.5, "c": True, "d": False, "e": None, "f": "text", "g": [1, 2], "h": "1e3=x",
    }  # fmt: skip
    with pytest.raises(UserError, match="--env-kwargs wants NAME=VALUE"):
        parse_kwargs(["a"])


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert adac("--version") == 0
    assert capsys.readouterr().out == f"adac {package.__version__}\n"
