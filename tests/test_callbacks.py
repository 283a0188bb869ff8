"""Callbacks with events, what `info` says in the tables, and the defaults of `learn(out=…)`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adac
from adac.core.explorers import GaussianNoise
from adac.errors import UserError
from adac.training.learner import Learner
from commands import read_rows
from helpers import TD3, Toy, assert_same_bits, tiny

AGENT = tiny(TD3, GaussianNoise(), warmup=10)


class Told(Toy):
    """Succeeds in every second episode, and says how far it came."""

    length = 5
    episode = -1

    def begin(self) -> float:
        self.episode += 1
        return 1.0

    def step(self, action: Any) -> Any:
        *answer, _ = super().step(action)
        info = {"is_success": np.array([self.episode % 2]), "far": self.time, "word": "no number"}
        return *answer, info


class Diary(adac.Callback):
    def __init__(self, ends: str = "") -> None:
        self.events: list[str] = []
        self.ends = ends

    def on_start(self, learner: Learner) -> None:
        self.events.append(f"start {learner.step}")

    def on_step(self, learner: Learner) -> bool:
        self.events.append(f"step {learner.step}")
        return self.ends != self.events[-1]

    def on_evaluation(self, learner: Learner, evaluation: Any) -> bool:
        self.events.append(f"evaluation {learner.step}")
        assert evaluation.summary()["episodes"] == 2
        return self.ends != self.events[-1]

    def on_end(self, learner: Learner) -> None:
        self.events.append(f"end {learner.step}")


def learn(callback: Any, steps: int = 4) -> Learner:
    return Learner(Told, AGENT).learn(steps, eval_every=2, eval_episodes=2, callback=callback)


def test_events_come_in_their_order_to_all_of_a_list() -> None:
    one, two, steps = Diary(), Diary(), list[int]()
    learn([one, lambda learner: steps.append(learner.step), two])
    expected = [
        "start 0", "step 1", "evaluation 2", "step 2", "step 3", "evaluation 4", "step 4", "end 4",
    ]  # fmt: skip
    assert one.events == two.events == expected
    assert steps == [1, 2, 3, 4]


@pytest.mark.parametrize(("ends", "step"), [("step 3", 3), ("evaluation 2", 2)])
def test_false_ends_the_training(ends: str, step: int) -> None:
    diary = Diary(ends)
    assert learn([diary, lambda _: True]).step == step
    assert diary.events[-1] == f"end {step}"


def test_the_end_comes_also_where_something_fails(tmp_path: Path) -> None:
    def fail(learner: Learner) -> None:
        assert learner.step < 3

    diary = Diary()
    with pytest.raises(AssertionError):
        Learner(Told, AGENT).learn(9, out=tmp_path, eval_every=0, callback=[diary, fail])
    assert diary.events[-1] == "end 3"
    assert Learner.load(tmp_path, env=Told).step == 3


class Theirs:
    """As Stable-Baselines3's look."""

    def init_callback(self, model: Any) -> None: ...


@pytest.mark.parametrize(
    ("callback", "said"),
    [(3, "a function of the learner"), ([3], "a function of the learner"),
     (Diary, "a function of the learner"), (Theirs(), "Stable-Baselines3's")],
)  # fmt: skip
def test_what_is_no_callback_is_refused(callback: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        learn(callback)


def test_info_is_in_the_tables_and_resumes(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "info_keywords": ["far"], "log_every": 20, "eval_every": 40, "eval_episodes": 4,
    }  # fmt: skip
    whole = Learner(Told, AGENT).learn(40, out=tmp_path / "whole", **options)
    Learner(Told, AGENT).learn(13, out=tmp_path / "parts", horizon=40, **options)
    rest = Learner.load(tmp_path / "parts", env=Told)
    rest.learn(27, out=tmp_path / "parts", horizon=40, **options)
    assert_same_bits(rest.state, whole.state)
    metrics, evaluation = (
        [
            {key: row[key] for key in ("step", "success_rate", "info_far")}
            for row in read_rows(tmp_path / "whole" / table)
        ]
        for table in ("metrics.csv", "evaluations.csv")
    )
    assert metrics == [
        {"step": "20", "success_rate": "0.5", "info_far": "5"},
        {"step": "40", "success_rate": "0.5", "info_far": "5"},
    ]
    assert evaluation[0]["info_far"] == "5"
    assert evaluation[0]["success_rate"] == "0"  # each lane plays its first episode
    assert rest.infos[0]["far"] == 5
    again = read_rows(tmp_path / "parts" / "metrics.csv")
    assert [row["info_far"] for row in again] == ["5", "5"]


def test_a_keyword_that_is_not_there_is_said_once() -> None:
    with pytest.warns(UserWarning, match="no number 'word'.* it has far, is_success, word") as seen:
        Learner(Told, AGENT).learn(20, info_keywords=["word"])
    assert len(seen) == 1


def test_a_run_folder_has_the_shell_s_defaults(tmp_path: Path) -> None:
    Learner(Told, AGENT).learn(2, out=tmp_path / "factory")
    config = json.loads((tmp_path / "factory" / "config.json").read_text())
    assert (config["eval_every"], config["checkpoint_every"]) == (5_000, 10_000)
    Learner(Told(), AGENT).learn(2, out=tmp_path / "object")  # there is nothing to evaluate it in
    assert json.loads((tmp_path / "object" / "config.json").read_text())["eval_every"] == 0


def test_online_weights_are_those_that_learn() -> None:
    learner = Learner(Told, AGENT).learn(30)
    obs = np.array([[0.3], [-0.7]], np.float32)
    online, _ = learner.predict(obs, deterministic=True, online=True)
    target, _ = learner.predict(obs, deterministic=True)
    actor = learner.state.actor
    raw = np.asarray(learner.agent.base.greedy(actor.params(obs)))
    np.testing.assert_allclose(online, raw, rtol=1e-5)
    assert not np.allclose(online, target, atol=1e-5)
    assert learner.evaluate(1, online=True).returns.shape == (1,)
