"""Evaluation: the same episodes, whether one after another or side by side."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from adac import Learner
from adac.errors import RunError
from adac.training.environments import episode_seed
from adac.training.evaluation import EVALUATION, SIDE_BY_SIDE, evaluate
from helpers import SMALL, tiny

LENGTHS = range(2, 30)


class Walk(gymnasium.Env[Any, Any]):
    """Its length, start and rewards come from the seed and the actions; a step too many is told."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, bad: float = 0.0) -> None:
        self.left, self.x, self.bad = 0, 0.0, bad
        self.resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(LENGTHS.start, LENGTHS.stop))
        self.x = float(self.np_random.normal())
        self.resets += 1
        return np.array([self.x], np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.left > 0, "a step after the end of the episode"
        self.left -= 1
        self.x += float(action[0])
        return np.array([self.x], np.float32), self.x + self.bad, self.left == 0, False, {}


def turn_back(obs: Any) -> Any:
    return -np.tanh(obs)


def by_hand(episode: int, seed: int, salt: int) -> tuple[float, int]:
    env = Walk()
    obs, _ = env.reset(seed=episode_seed(seed, EVALUATION, salt, episode))
    total, length, over = 0.0, 0, False
    while not over:
        obs, reward, over, _, _ = env.step(turn_back(obs))
        total, length = total + reward, length + 1
    return total, length


@pytest.mark.parametrize("lanes", [1, 2, 7, 12])
def test_lanes_do_not_show_in_the_episodes(lanes: int) -> None:
    found = evaluate(turn_back, [Walk() for _ in range(lanes)], 7, seed=3, salt=5)
    expected = [by_hand(episode, 3, 5) for episode in range(7)]
    np.testing.assert_allclose(found.returns, [total for total, _ in expected], atol=1e-5)
    assert found.lengths.tolist() == [length for _, length in expected]
    assert len(set(found.lengths)) > 1


def test_side_by_side_asks_the_policy_less_and_plays_no_episode_more() -> None:
    calls = []

    def counted(obs: Any) -> Any:
        calls.append(len(obs))
        return turn_back(obs)

    envs = [Walk() for _ in range(4)]
    found = evaluate(counted, envs, 10, seed=0)
    assert set(calls) == {4}  # one shape, so one compilation
    assert found.lengths.max() <= len(calls) < found.lengths.sum() / 2
    assert sum(env.resets for env in envs) == 10


def test_a_non_finite_reward_is_told_from_any_lane() -> None:
    with pytest.raises(
        RunError, match=r"Walk-v9 gave the reward nan at step 1 of an evaluation's episode 2"
    ):
        evaluate(turn_back, [Walk(), Walk(bad=np.nan)], 2, seed=0, name="Walk-v9")


def test_a_learner_makes_its_lanes_once_and_the_caller_s_environment_plays_alone() -> None:
    learner = Learner("Pendulum-v1", "ddpg", overrides=SMALL)
    few, many = learner.evaluate(2), learner.evaluate(SIDE_BY_SIDE + 2)
    lanes = list(learner.tasks._lanes)
    assert len(lanes) == SIDE_BY_SIDE
    np.testing.assert_allclose(few.returns, many.returns[:2], rtol=1e-3)
    learner.evaluate(3)
    assert learner.tasks._lanes == lanes
    own = gymnasium.make("Pendulum-v1")
    alone = Learner("Pendulum-v1", "ddpg", overrides=SMALL, eval_env=own)
    np.testing.assert_allclose(alone.evaluate(2).returns, few.returns, rtol=1e-3)
    assert alone.tasks._lanes == []


def test_predict_speaks_the_task_s_units() -> None:
    learner = Learner("Pendulum-v1", tiny())
    obs = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -2.0]], np.float32)
    pi, _ = learner.predict(obs, deterministic=True)
    np.testing.assert_allclose(pi, 2.0 * learner.policy(obs), rtol=1e-6)
    np.testing.assert_array_equal(learner.predict(obs[0], deterministic=True)[0], pi[0])
    mu, _ = learner.predict(obs)
    assert mu.shape == pi.shape
    assert not np.isclose(mu, pi).any()
