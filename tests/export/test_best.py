"""`save_best`: the best evaluation's policy beside the last, also after an interruption."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adac
from adac.cli.main import main
from adac.errors import UserError
from adac.experiments.sweeps.trials import make_trial
from adac.runs.folder import BEST
from adac.training.evaluation import Evaluation
from adac.training.learner import Learner
from adac.training.train import Schedule, train
from helpers import SMALL

TINY = SMALL | {"warmup": 40}
PLAN = Schedule(eval_every=50, eval_episodes=1, checkpoint_every=50, log_every=0, save_best=True)
RETURNS = {50: 1.0, 100: 3.0, 150: 2.0, 200: 3.0, 250: 4.0, 300: 0.0}
OBS = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _known_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations that rise and fall: the best is neither the first nor the last."""

    def evaluate(self: Learner, episodes: int, **_: Any) -> Evaluation:
        return Evaluation(np.array([RETURNS[self.step]]), np.array([1]))

    monkeypatch.setattr(Learner, "evaluate", evaluate)


def start() -> Learner:
    return Learner("Pendulum-v1", "td3", seed=2, overrides=TINY)


def test_the_best_is_kept_and_the_first_of_equals(tmp_path: Path) -> None:
    learner, seen = start(), {}

    def look(learner: Learner) -> None:
        if learner.step % 50 == 0:
            seen[learner.step] = learner.predict(OBS, deterministic=True)[0]

    learner.learn(200, out=tmp_path, eval_every=50, eval_episodes=1, save_best=True, callback=look)
    best = adac.Policy.load(tmp_path, best=True)
    assert (best.facts.step, best.facts.mean_return) == (100, 3.0)
    np.testing.assert_allclose(best.predict(OBS)[0], seen[100], atol=1e-5)
    assert np.abs(seen[100] - seen[200]).max() > 1e-4
    last = adac.Policy.load(tmp_path)
    np.testing.assert_allclose(last.predict(OBS)[0], seen[200], atol=1e-5)


def test_an_interrupted_run_keeps_the_same(tmp_path: Path) -> None:
    train(start(), 300, PLAN, out=tmp_path / "whole")
    for stop_at in (120, 260):
        folder = tmp_path / f"stopped-{stop_at}"
        train(start(), 300, PLAN, out=folder, callback=lambda one, at=stop_at: one.step < at)
        (folder / BEST).write_bytes(b"of a step that the checkpoint has not seen")
        train(Learner.load(folder), 300, PLAN, out=folder)
        assert (folder / BEST).read_bytes() == (tmp_path / "whole" / BEST).read_bytes()


def test_a_run_that_goes_back_has_the_best_it_had_then(tmp_path: Path) -> None:
    train(start(), 200, PLAN, out=tmp_path)
    then = (tmp_path / BEST).read_bytes()
    manifests = {path.name: path.read_bytes() for path in (tmp_path / "checkpoint").iterdir()}
    train(Learner.load(tmp_path), 250, PLAN, out=tmp_path)
    assert adac.Policy.load(tmp_path, best=True).facts.step == 250
    for path in (tmp_path / "checkpoint").glob("step-*250*"):
        path.unlink()
    for name, data in manifests.items():
        (tmp_path / "checkpoint" / name).write_bytes(data)
    back = Learner.load(tmp_path)
    train(back, back.step, PLAN, out=tmp_path)
    assert (tmp_path / BEST).read_bytes() == then


def test_a_copy_has_it_and_another_run_in_its_place_does_not(tmp_path: Path) -> None:
    learner = start()
    train(learner, 100, PLAN, out=tmp_path / "run")
    learner.save(tmp_path / "copy")
    assert (tmp_path / "copy" / BEST).read_bytes() == (tmp_path / "run" / BEST).read_bytes()
    start().save(tmp_path / "copy", overwrite=True)
    assert not (tmp_path / "copy" / BEST).exists()


def test_what_it_needs_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="set eval_every"):
        start().learn(10, out=tmp_path, eval_every=0, save_best=True)
    with pytest.raises(UserError, match="pass out="):
        start().learn(10, eval_every=5, save_best=True)
    start().save(tmp_path)
    with pytest.raises(UserError, match="--save-best"):
        adac.Policy.load(tmp_path, best=True)


def test_a_trial_is_the_same_whether_its_best_is_kept() -> None:
    """Else every finished sweep would begin anew."""
    plain, keeping = (
        make_trial("Pendulum-v1", "td3", 0, 100, schedule=replace(PLAN, save_best=best))
        for best in (False, True)
    )
    assert plain.id == keeping.id
    assert set(plain.identity()["schedule"]) == {
        "eval_every", "eval_episodes", "log_every", "stop_return",
    }  # fmt: skip
    with pytest.raises(UserError, match="ppo has no save_best"):
        make_trial("Pendulum-v1", "ppo", 0, 100, schedule=PLAN)


def test_the_command_trains_resumes_and_evaluates_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as done:
            main(list(words))
        assert done.value.code in (0, None)
        return capsys.readouterr().out

    folder, sizes = str(tmp_path / "run"), [f"{name}={value}" for name, value in TINY.items()]
    options = ["--steps", "150", "--eval-every", "50", "--save-best", "--out", folder]
    run("train", "Pendulum-v1", "--agent", "td3", *options, "--set", *sizes)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["save_best"] is True
    facts = json.loads(run("eval", folder, "--best", "--episodes", "1", "--json"))
    assert facts["step"] == 100
    assert np.isfinite(facts["returns"]).all()
    run("resume", folder, "--steps", "250")
    assert adac.Policy.load(folder, best=True).facts.step == 250
    with open(tmp_path / "run" / "evaluations.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 5
    run("export", folder, "--best", "--numpy", str(tmp_path / "best.npz"))
    assert json.loads(str(np.load(tmp_path / "best.npz")["facts"]))["mean_return"] == 4.0
