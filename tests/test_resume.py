"""Interrupted equals uninterrupted, bit for bit."""

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv

import adac
from adac.cli.main import main
from adac.errors import UserError
from adac.runs.checkpoint import Store
from adac.training.learner import Learner
from commands import wait_for_step
from helpers import SMALL, SMALL_LATENT
from hostile import held_elsewhere

TINY = SMALL | {"warmup": 60}
TINY_LATENT = SMALL_LATENT | TINY | {"beta_start": 2.0}
MODEL = {"model_hidden": [8], "bonus_after": 0}
PENDULUM = "adac/PendulumSparse-v0"


def snapshot(learner: Learner) -> dict[str, np.ndarray]:
    leaves, _ = jax.tree_util.tree_flatten_with_path((learner.state, learner.loop.memory))
    arrays = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
    arrays["replay"] = learner.replay.rows[: len(learner.replay)].copy()
    arrays["obs"] = learner.loop.environments.obs
    arrays["episodes"] = learner.loop.environments.episodes
    arrays["returns"] = learner.loop.environments.returns
    return arrays


def assert_same(one: Learner, other: Learner) -> None:
    assert one.replay.random_state() == other.replay.random_state()
    assert one.updates == other.updates
    first, second = snapshot(one), snapshot(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


@pytest.mark.parametrize(
    ("env", "agent", "num_envs", "extra"),
    [
        (PENDULUM, "adac-td3", 1, {"latent_correlation": 0.9}),
        ("adac/CartPoleContinuous-v0", "ddpg-ou-0.2", 3, {"normalise_obs": True}),
        ("Hopper-v5", "sac", 2, {}),
        ("LunarLanderContinuous-v3", "adac-td3-no-cotraining", 1, {}),
        ("adac/RoboschoolHopper-v1", "paper-adac-td3", 1, {}),
        # A memory, learned numbers or a bonus of the explorer's own:
        (PENDULUM, "td3-parameter-noise", 2, {}),
        (PENDULUM, "gep-pg", 1, {"episodes": 3, "random_episodes": 1}),
        (PENDULUM, "mulex", 1, {"latent_hidden": [8]}),
        (PENDULUM, "maxinfo-sac", 1, MODEL),
        (PENDULUM, "adac-maxinfo", 2, MODEL | {"particles": 2, "latent_colour": 1.0}),
        (PENDULUM, "td3-counts", 1, {"bonus_after": 30}),
    ],
)
def test_save_and_load_continues_to_the_same_bits(
    tmp_path: Path, env: str, agent: str, num_envs: int, extra: dict[str, object]
) -> None:
    tiny = TINY_LATENT if "adac" in agent else TINY

    def start() -> Learner:
        return Learner(env, agent, seed=3, num_envs=num_envs, overrides=tiny | extra)

    whole = start().learn(270)
    stopped = start().learn(270, callback=lambda learner: learner.step < 134)
    assert stopped.step < 140
    stopped.save(tmp_path)
    resumed = Learner.load(tmp_path)
    resumed.learn(270 - resumed.step)
    assert_same(whole, resumed)


class Drifting(PendulumEnv):
    """Not deterministic: its seed is ignored after the first reset of the process."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None, options=options)


def test_a_nondeterministic_task_starts_a_new_episode_and_says_so(tmp_path: Path) -> None:
    make = lambda: gymnasium.wrappers.TimeLimit(Drifting(), 50)  # noqa: E731
    learner = Learner(make(), "td3", overrides=TINY)
    learner.learn(80)
    learner.save(tmp_path)
    with pytest.warns(UserWarning, match="not deterministic"):
        resumed = Learner.load(tmp_path, env=make())
    assert resumed.loop.environments.first.all()
    assert resumed.loop.environments.actions == [[]]
    resumed.learn(80)
    assert len(resumed.replay) == 160


ADAC = [sys.executable, "-m", "adac"]
SETTINGS = [f"{name}={value}" for name, value in TINY_LATENT.items()]
TRAIN = [
    *ADAC, "train", PENDULUM, "--steps", "2000", "--seed", "5",
    "--eval-every", "700", "--eval-episodes", "1", "--checkpoint-every", "200",
    "--log-every", "200", "--set", *SETTINGS,
]  # fmt: skip
SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def rows(path: Path, *without: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return [{k: v for k, v in row.items() if k not in without} for row in csv.DictReader(file)]


def test_a_killed_process_resumes_to_the_same_bits(tmp_path: Path) -> None:
    subprocess.run([*TRAIN, "--out", tmp_path / "whole"], check=True, **SILENT)
    folder = tmp_path / "killed"
    process = subprocess.Popen([*TRAIN, "--out", folder], **SILENT)
    wait_for_step(folder, 400, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process = subprocess.Popen([*ADAC, "resume", folder], **SILENT)
    wait_for_step(folder, 1000, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    subprocess.run([*ADAC, "resume", folder], check=True, **SILENT)

    name = "checkpoint/step-000000002000"
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert (whole / f"{name}.safetensors").read_bytes() == (
        killed / f"{name}.safetensors"
    ).read_bytes()
    for table, clock in (("metrics", "steps_per_second"), ("evaluations", "wall_seconds")):
        assert rows(whole / f"{table}.csv", clock) == rows(killed / f"{table}.csv", clock)
    facts = [json.loads((run / f"{name}.json").read_text())["body"] for run in (whole, killed)]
    for fact in facts:
        del (
            fact["facts"]["wall_seconds"],
            fact["facts"]["tables"],
        )  # whose checksums are over clocks
    assert facts[0] == facts[1]  # the replay's segments too, by their checksums


def test_ctrl_c_saves_and_says_how_to_resume(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [*TRAIN, "--out", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    wait_for_step(folder, 200, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"adac resume {folder}" in output
    assert adac.Learner.load(folder).step >= 200


def test_a_checkpoint_of_another_version_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner("Pendulum-v1", "td3", overrides=TINY).learn(5)
    save = Store.save

    def older(store: Store, step: int, arrays: Any, facts: dict[str, Any], replay: Any) -> None:
        save(store, step, arrays, {k: v for k, v in facts.items() if k != "collected"}, replay)

    monkeypatch.setattr(Store, "save", older)
    learner.save(tmp_path)
    with pytest.raises(adac.UserError, match="no 'collected': another version"):
        Learner.load(tmp_path)


def test_a_run_killed_before_its_first_checkpoint_resumes_to_the_same_bits(tmp_path: Path) -> None:
    plan = {"checkpoint_every": 1_000, "eval_every": 100, "eval_episodes": 1}

    def start() -> Learner:
        return Learner(PENDULUM, "adac-td3", overrides=TINY_LATENT)

    class Kill(BaseException):
        pass

    def kill(learner: Learner) -> None:
        if learner.step == 150:
            raise Kill

    whole = start().learn(300, out=tmp_path / "whole", **plan)
    with pytest.raises(Kill):
        start().learn(300, out=tmp_path / "killed", callback=kill, **plan)
    assert cli("resume", tmp_path / "killed") == 0
    assert_same(whole, Learner.load(tmp_path / "killed"))
    one, other = (
        rows(tmp_path / n / "evaluations.csv", "wall_seconds") for n in ("whole", "killed")
    )
    assert one == other


def test_resume_anneals_over_the_horizon_that_was_named(tmp_path: Path) -> None:
    def start() -> Learner:
        return Learner(PENDULUM, "adac-td3", overrides=TINY_LATENT)

    whole = start().learn(300, horizon=1_000, out=tmp_path / "whole")
    plan = {"horizon": 1_000, "out": tmp_path / "part"}
    start().learn(300, callback=lambda learner: learner.step < 150, **plan)
    assert cli("resume", tmp_path / "part") == 0
    assert_same(whole, Learner.load(tmp_path / "part"))


def test_a_new_run_does_not_overwrite_one_that_is_there(tmp_path: Path) -> None:
    Learner("Pendulum-v1", "td3", overrides=TINY).learn(80, out=tmp_path)
    with pytest.raises(UserError, match="already holds a run of 80 steps"):
        Learner("Pendulum-v1", "td3", overrides=TINY).learn(10, out=tmp_path)
    assert Learner.load(tmp_path).learn(10, out=tmp_path).step == 90


def test_a_folder_is_never_believed_about_what_to_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`module:Id` is Gymnasium's way to import a module; a stranger's folder could name any."""
    Learner("Pendulum-v1", "td3", overrides=TINY).learn(5).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["env"] = "antigravity_of_a_stranger:Pendulum-v1"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="--import antigravity_of_a_stranger"):
        Learner.load(tmp_path)
    # A checkpoint of another task would be refused next; this is about the import alone.
    monkeypatch.setattr("adac.training.learner.require_essence", lambda *_: None)
    config["env"] = "this:Pendulum-v1"  # harmless, and not imported by anything else
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "this" not in sys.modules
    assert cli("eval", tmp_path, "--episodes", "1", "--import", "this") == 0


def test_two_processes_never_write_one_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Learner("Pendulum-v1", "td3", overrides=TINY).learn(5, out=tmp_path)
    with held_elsewhere(tmp_path):
        assert cli("resume", tmp_path, "--steps", "10") != 0
    assert "another process is using the run" in capsys.readouterr().err


def cli(*words: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)
