"""The environments of a run: scaling, time limits, resets, and what is refused."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from adac.errors import RunError, UserError
from adac.training.environments import EVALUATION, Environments, check_spaces, episode_seed

F32 = float(np.finfo(np.float32).max)


class Counter(gymnasium.Env[Any, Any]):
    """Observation (episode's first draw, step); reward = the action received; ends as told."""

    def __init__(self, length: int = 3, *, terminate: bool = True, bad: float | None = None):
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = Box(np.array([-2.0, 0.0], np.float32), np.array([4.0, 1.0], np.float32))
        self.length, self.terminate, self.bad = length, terminate, bad

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seed_seen, self.count = seed, 0
        self.mark = self.np_random.random()
        return np.array([self.mark, 0.0]), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        done = self.count == self.length
        obs = np.array([self.mark, float(self.count)])
        reward = float(action[0])
        if self.bad is not None and self.count == 2:
            reward = self.bad
        return obs, reward, done and self.terminate, done and not self.terminate, {}


def world(*envs: Counter, seed: int = 0) -> Environments:
    one = Environments(list(envs), "Counter", seed)
    one.begin()
    return one


def test_actions_are_scaled_at_the_edge() -> None:
    scaling = check_spaces(Counter(), "Counter")
    inside = np.array([[-1, -1], [0, 0], [1, 1], [3, -7]], np.float32)
    np.testing.assert_allclose(
        scaling.to_task(inside), [[-2, 0], [1, 0.5], [4, 1], [4, 0]], rtol=1e-6
    )
    assert (scaling.to_task(np.full((1, 2), np.nextafter(1, 2), np.float32)) <= [4, 1]).all()


def test_a_termination_ends_and_a_time_limit_continues() -> None:
    one = world(Counter(3), Counter(2, terminate=False))
    act = np.zeros((2, 2), np.float32)
    steps = [one.step(act) for _ in range(3)]
    assert [s.continues.tolist() for s in steps] == [[1, 1], [1, 1], [0, 1]]
    assert [len(s.finished) for s in steps] == [0, 1, 1]
    assert steps[1].finished[0][:2] == (2.0, 2)  # two rewards of 1: the middle of [-2, 4]
    assert steps[2].finished[0][:2] == (3.0, 3)


def test_no_reset_row_is_ever_learned_from() -> None:
    """next_obs is the episode's last observation; obs, afterwards, the new episode's first."""
    one = world(Counter(2), Counter(3))
    act = np.zeros((2, 2), np.float32)
    for _ in range(20):
        before, first = one.obs.copy(), one.first.copy()
        step = one.step(act)
        assert (step.next_obs[:, 1] == before[:, 1] + 1).all()  # never across an episode
        assert (step.next_obs[:, 0] == before[:, 0]).all()
        assert (before[first, 1] == 0).all()
        assert (before[~first, 1] > 0).all()


def test_every_episode_has_a_seed_of_its_own_and_repeats() -> None:
    marks = []
    for _ in range(2):
        one = world(Counter(1), Counter(2), seed=4)
        seen = [one.obs[:, 0].tolist()]
        for _ in range(10):
            one.step(np.zeros((2, 2), np.float32))
            seen.append(one.obs[:, 0].tolist())
        marks.append(seen)
    assert marks[0] == marks[1]
    assert len({mark for pair in marks[0] for mark in pair}) == 11 + 6
    assert one.envs[0].unwrapped.seed_seen == episode_seed(4, 0, 10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_non_finite_reward_names_task_step_and_value(bad: float) -> None:
    one = world(Counter(bad=bad))
    one.step(np.zeros((1, 2), np.float32))
    with pytest.raises(RunError, match=r"Counter gave the reward (nan|inf|-inf) at step 2"):
        one.step(np.zeros((1, 2), np.float32))


class Doubling(Counter):
    """Changes the action that it is given, in place."""

    def step(self, action: Any) -> Any:
        action *= 2.0
        obs, *rest = super().step(action)
        return obs + action[0], *rest


def test_an_action_changed_by_the_task_is_remembered_as_it_was_chosen() -> None:
    one = world(Doubling(9))
    for number in range(4):
        one.step(np.full((1, 2), 0.1 * number, np.float32))
    arrays, facts = one.snapshot()
    for _ in range(2):  # nor does standing there again change it
        assert world(Doubling(9)).restore(arrays, facts) == []
        np.testing.assert_allclose(arrays["actions.0"][:, 0], [1.0, 1.3, 1.6, 1.9], rtol=1e-6)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ((np.zeros(2), np.ones(1)), "reward"),
        ((np.zeros(2), None), "reward"),
        ((np.zeros(3), 0.0), "not in its observation_space"),
    ],
)
def test_what_is_no_reward_and_no_observation_names_the_task(result: Any, words: str) -> None:
    class Broken(Counter):
        def step(self, action: Any) -> Any:
            return *result, False, False, {}

    with pytest.raises(RunError, match=f"^Counter gave .*{words}"):
        world(Broken()).step(np.zeros((1, 2), np.float32))


def test_scaling_there_and_back() -> None:
    space = Box(np.array([-2.0, 3.0], np.float32), np.array([4.0, 3.0], np.float32))
    scaling = check_spaces(Odd(action=space), "Odd")
    inside = np.array([[-1, 0], [0.5, 0], [1, 0]], np.float32)
    np.testing.assert_allclose(scaling.from_task(scaling.to_task(inside)), inside, atol=1e-6)


class Odd(Counter):
    def __init__(self, obs: Any = None, action: Any = None):
        super().__init__()
        self.observation_space = obs or self.observation_space
        self.action_space = action or self.action_space


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Odd(action=Discrete(3)), "continuous actions"),
        (Odd(action=Box(-np.inf, np.inf, (2,))), "unbounded"),
        (Odd(action=Box(-F32, F32, (2,))), "unbounded"),  # its range overflows
        (Odd(action=Box(-1, 1, (2, 2))), "flat Box"),
        (Odd(obs=Box(0, 255, (84, 84, 3), np.uint8)), "no convolutional"),
    ],
)
def test_what_can_not_be_learned_on_is_refused(env: Odd, words: str) -> None:
    with pytest.raises(UserError, match=words):
        Environments([env], "Odd", 0)


def test_no_environment_plays_an_episode_of_an_evaluation() -> None:
    """NumPy pads short seeds with zeros: (s, 1, 5) and (s, 1, 5, 0) are one."""
    assert episode_seed(0, EVALUATION, 5) == episode_seed(0, EVALUATION, 5, 0)
    many = world(*(Counter(1) for _ in range(4)))
    trained = set()
    for _ in range(20):
        trained |= {env.unwrapped.seed_seen for env in many.envs}
        many.step(np.zeros((4, 2), np.float32))
    assert len(trained) == 80
    evaluated = {episode_seed(0, EVALUATION, salt, n) for salt in range(20) for n in range(10)}
    assert not trained & evaluated
