"""Tasks with observations of their own kind, and action repeat, through a whole run."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from adac.cli.main import main
from adac.errors import UserError
from adac.training.learner import Learner

TINY = {
    "actor_hidden": "16,16", "critic_hidden": "16,16", "warmup": 60, "batch_size": 8,
    "learn_after": 60}  # fmt: skip
ADAC = TINY | {"latent_hidden": "8", "particles": 4}


class Seen(gymnasium.Env[Any, Any]):
    """A walk on a line, observed in whichever space is asked for."""

    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, kind: str = "dict") -> None:
        self.observation_space = {
            "dict": spaces.Dict({"where": spaces.Box(-9, 9, (1,)), "cell": spaces.Discrete(3)}),
            "tuple": spaces.Tuple((spaces.Box(-9, 9, (2, 2)), spaces.MultiBinary(2))),
            "cells": spaces.MultiDiscrete([3, 3]),
        }[kind]
        self.kind = kind

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-1, 1), 0
        return self._see(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        self.place = float(np.clip(self.place + action[0], -3, 3))
        return self._see(), -abs(self.place), False, self.time == 25, {}

    def _see(self) -> Any:
        cell = int(np.digitize(self.place, [-1, 1]))
        if self.kind == "dict":
            return {"where": np.array([self.place], np.float32), "cell": np.int64(cell)}
        if self.kind == "tuple":
            bits = np.array([cell == 0, cell == 2], np.int8)
            return np.full((2, 2), self.place, np.float32), bits
        return np.array([cell, self.time % 3])


for kind in ("dict", "tuple", "cells"):
    gymnasium.register(f"test/Seen{kind.title()}-v0", Seen, kwargs={"kind": kind})


def state_of(learner: Learner) -> Any:
    arrays, facts = learner.loop.snapshot()
    return arrays, facts, learner.replay.rows[: len(learner.replay)].copy()


def assert_same(one: Learner, other: Learner) -> None:
    first, second = state_of(one), state_of(other)
    assert first[0].keys() == second[0].keys()
    for name, value in first[0].items():
        np.testing.assert_array_equal(value, second[0][name], err_msg=name)
    assert first[1] == second[1]
    np.testing.assert_array_equal(first[2], second[2])


@pytest.mark.parametrize(
    ("env", "agent", "num_envs", "kwargs"),
    [
        ("test/SeenDict-v0", "adac-td3", 2, {}),
        ("test/SeenTuple-v0", "td3", 1, {"action_repeat": 4}),
        ("dm_control/cartpole-swingup_sparse-v0", "adac-td3", 1, {"action_repeat": 2}),
        ("PointMaze_UMaze-v3", "sac", 2, {"max_episode_steps": 40}),
        ("FetchReach-v4", "td3", 1, {}),
    ],
)
def test_interrupted_equals_uninterrupted(
    tmp_path: Path, env: str, agent: str, num_envs: int, kwargs: dict[str, Any]
) -> None:
    def start() -> Learner:
        tiny = ADAC if "adac" in agent else TINY
        return Learner(
            env, agent, seed=3, num_envs=num_envs, overrides=tiny, env_kwargs=kwargs
        )  # fmt: skip

    whole = start().learn(270)
    stopped = start().learn(270, callback=lambda learner: learner.step < 134)
    assert 134 <= stopped.step < 143
    stopped.save(tmp_path)
    resumed = Learner.load(tmp_path)
    resumed.learn(270 - resumed.step, horizon=270)
    assert_same(whole, resumed)
    for learner in (whole, stopped, resumed):
        learner.close()


@pytest.mark.parametrize("kind", ["dict", "tuple", "cells"])
def test_predict_takes_the_tasks_own_observation(tmp_path: Path, kind: str) -> None:
    env = Seen(kind)
    learner = Learner(f"test/Seen{kind.title()}-v0", "td3", overrides=TINY).learn(80)
    obs, _ = env.reset(seed=5)
    action, _ = learner.predict(obs, deterministic=True)
    flat = np.asarray(spaces.flatten(env.observation_space, obs), np.float32)
    assert action.shape == (1,)
    np.testing.assert_allclose(action, learner.policy(flat[None])[0], rtol=1e-6)
    learner.save(tmp_path)
    again, _ = Learner.load(tmp_path).predict(obs, deterministic=True)
    np.testing.assert_array_equal(again, action)


def test_predict_takes_a_vector_environments_batch() -> None:
    learner = Learner("test/SeenDict-v0", "td3", overrides=TINY)
    vector = gymnasium.make_vec("test/SeenDict-v0", 3)
    obs, _ = vector.reset(seed=1)
    actions, _ = learner.predict(obs, deterministic=True)
    assert actions.shape == (3, 1)
    singles = [{name: values[i] for name, values in obs.items()} for i in range(3)]
    each = [learner.predict(one, deterministic=True)[0] for one in singles]
    np.testing.assert_allclose(actions, each, rtol=1e-5)
    vector.close()


def test_an_environment_of_the_callers_own_is_flattened_too() -> None:
    learner = Learner(Seen(), "td3", overrides=TINY, eval_env=Seen())
    learner.learn(80, eval_every=40, eval_episodes=1)
    assert learner.obs_dim == 4
    with pytest.raises(UserError, match="eval_env has the observation_space"):
        Learner(Seen(), "td3", overrides=TINY, eval_env=Seen("cells"))


def test_a_bonus_gap_on_observations_in_a_dict() -> None:
    learner = Learner("test/SeenDict-v0", "adac-td3-rnd", overrides=ADAC).learn(80)
    assert np.isfinite(learner.bonus_gap(2)["episode_bonus_gap"])


def test_repeated_steps_are_all_counted() -> None:
    learner = Learner("test/SeenDict-v0", "td3", overrides=TINY, env_kwargs={"action_repeat": 4})
    learner.learn(200)
    assert learner.step == 200
    # 25 steps are six decisions of four and one of one.
    assert len(learner.replay) == 8 * 7
    assert {episode.length for episode in learner.loop.recent} == {25}
    assert set(learner.evaluate(2).lengths) == {25}
    # Learning begins with the data: an update a transition, not four.
    assert learner.updates == int((learner.loop.acted_at - learner.agent.learn_after) / 4)


def test_action_repeat_from_the_shell(tmp_path: Path) -> None:
    settings = [f"{name}={value}" for name, value in TINY.items()]
    out = tmp_path / "run"
    words = ["train", "test/SeenDict-v0", "--agent", "td3", "--steps", "120", "--out", str(out)]
    for wanted in ("--action-repeat", "5", "--eval-every", "60", "--eval-episodes", "1"):
        words.append(wanted)
    with pytest.raises(SystemExit) as ended:
        main([*words, "--set", *settings])
    assert not ended.value.code
    assert json.loads((out / "config.json").read_text())["env_kwargs"] == {"action_repeat": 5}
    learner = Learner.load(out)
    assert (learner.step, len(learner.replay)) == (120, 24)
