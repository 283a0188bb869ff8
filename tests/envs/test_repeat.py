"""Action repeat: rewards are summed, and every step is counted."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from adac import envs
from adac.errors import UserError


class Counting(gymnasium.Env[Any, Any]):
    """Pays 1, 2, 3, …, changes the action that it is given, and ends after `length` steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    metadata = {"render_modes": [], "render_fps": 60}  # noqa: RUF012

    def __init__(self, length: int = 7) -> None:
        self.length = length

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.time, self.given = 0, []
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        self.given.append(float(action[0]))
        action += 1
        over = self.time == self.length
        return np.full(1, self.time, np.float32), float(self.time), over, False, {"time": self.time}


@pytest.fixture
def task() -> Any:
    gymnasium.register("test/Counting-v0", Counting)
    yield "test/Counting-v0"
    del gymnasium.registry["test/Counting-v0"]


def test_rewards_are_summed_and_the_last_decision_may_be_shorter(task: str) -> None:
    env = envs.make(task, action_repeat=3, disable_env_checker=True)
    env.reset(seed=0)
    results = [env.step(np.full(1, 0.5, np.float32)) for _ in range(3)]
    assert [result[1] for result in results] == [1 + 2 + 3, 4 + 5 + 6, 7]
    assert [result[2] for result in results] == [False, False, True]
    assert [float(result[0][0]) for result in results] == [3, 6, 7]
    assert [envs.environment_steps(result[4]) for result in results] == [3, 3, 1]
    assert results[-1][4]["time"] == 7
    assert env.unwrapped.given == [0.5] * 7  # type: ignore[attr-defined]


def test_a_time_limit_counts_steps_and_not_decisions(task: str) -> None:
    env = envs.make(task, action_repeat=2, max_episode_steps=5, disable_env_checker=True)
    env.reset(seed=0)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


def test_a_video_shows_a_decision_as_long_as_it_takes(task: str) -> None:
    assert envs.make(task, action_repeat=4).metadata["render_fps"] == 15


def test_without_repeat_nothing_is_wrapped(task: str) -> None:
    assert envs.action_repeat_of(envs.make(task)) == 1
    assert envs.environment_steps({}) == 1


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", None])
def test_a_repeat_that_is_none_is_refused(task: str, wrong: Any) -> None:
    with pytest.raises(UserError, match="action_repeat"):
        envs.make(task, action_repeat=wrong)


def test_a_description_tells_it(task: str) -> None:
    env = envs.make(task, action_repeat=4)
    assert envs.action_repeat_of(env) == 4
    told = envs.describe(env)
    assert told == envs.Description(task, {"action_repeat": 4}, all=True)
    assert envs.describe(envs.make(told.id, **told.kwargs)) == told
