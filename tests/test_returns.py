"""n-step returns against a naive walk along each episode."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adac.core.explorers import GaussianNoise
from adac.training.learner import Learner
from adac.training.replay import Replay, Returns
from helpers import TD3, MadeUp, row_spec, tiny

SPEC = row_spec(1, 1)
GAMMA = 0.9


class Once(NamedTuple):
    """One transition as an environment gives it."""

    reward: float
    bonus: float
    terminated: bool
    truncated: bool
    next_obs: float


def naive(after: list[Once], steps: int) -> tuple[float, float, float, float]:
    """Σ γ^k r_k, the same of the bonus, what is left of the value, and where."""
    reward = bonus = 0.0
    for k, one in enumerate(after[:steps]):
        reward += GAMMA**k * one.reward
        bonus += GAMMA**k * one.bonus
        last = one
        if one.terminated or one.truncated:
            break
    return reward, bonus, 0.0 if last.terminated else GAMMA**k, last.next_obs


def columns(rows: list[Once], ahead: int) -> dict[str, NDArray[Any]]:
    ended = np.array([one.terminated or one.truncated for one in rows])
    numbers = np.array([one.next_obs for one in rows])
    return {
        "obs": numbers[:, None] - 1,
        "action": np.zeros((len(rows), 1)),
        "reward": np.array([one.reward for one in rows]),
        "bonus": np.array([one.bonus for one in rows]),
        "continues": np.array([not one.terminated for one in rows]),
        "next_obs": numbers[:, None],
        "ahead": np.where(ended, 0, ahead),
    }


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    envs=st.integers(1, 4),
    length=st.integers(1, 40),
    capacity=st.integers(1, 60),
    steps=st.integers(1, 6),
)
def test_returns_are_those_of_a_naive_walk(
    seed: int, envs: int, length: int, capacity: int, steps: int
) -> None:
    """Over ends of either kind, a ring that turns over, and environments side by side."""
    draw = np.random.default_rng(seed)
    replay = Replay(capacity, SPEC, np.random.SeedSequence(0))
    lanes: list[list[Once]] = [[] for _ in range(envs)]
    for number in range(length):
        for i, lane in enumerate(lanes):
            ends = draw.random(2) < 0.15
            lane.append(Once(*draw.normal(size=2), *ends, 100.0 * i + number))
        replay.add(**columns([lane[-1] for lane in lanes], envs))
    places = np.arange(len(replay))
    found = SPEC.unpack(
        Returns(steps, GAMMA).take(replay, places), ["reward", "bonus", "continues", "next_obs"]
    )
    for place in places:
        number = replay.inserted - 1 - int(replay.ages(places)[place])
        wanted = naive(lanes[number % envs][number // envs :], steps)
        row = [float(np.ravel(column[place])[0]) for column in found.values()]
        np.testing.assert_allclose(row, wanted, rtol=1e-5, atol=1e-5)


def test_a_buffer_s_own_rows_stay_single_steps() -> None:
    replay = Replay(5, SPEC, np.random.SeedSequence(0))
    for number in range(5):
        replay.add(**columns([Once(1.0, 0.0, False, False, number)], 1))
    before = replay.rows.copy()
    Returns(3, GAMMA).take(replay, np.arange(5))
    np.testing.assert_array_equal(replay.rows, before)


# -- in a learner --------------------------------------------------------------------------------


class Marked(gymnasium.Env[Any, Any]):
    """Observation (episode's mark, time); random rewards; ends at random in either way."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.mark, self.time = self.np_random.random(dtype=np.float32), 0
        return np.array([self.mark, 0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        terminated, truncated = map(bool, self.np_random.random(2) < 0.1)
        obs = np.array([self.mark, self.time], np.float32)
        return obs, float(self.np_random.normal()), terminated, truncated, {}


class Unrepeatable(Marked):
    """Its seed is not heeded, so a run that is continued begins a new episode."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=None)


@pytest.fixture(scope="module", autouse=True)
def _tasks() -> Iterator[None]:
    for kind in (Marked, Unrepeatable):
        gymnasium.register(f"{kind.__name__}-v0", kind)  # type: ignore[arg-type]
    yield
    for kind in (Marked, Unrepeatable):
        del gymnasium.registry[f"{kind.__name__}-v0"]


STEPS = 3
AGENT = tiny(TD3, GaussianNoise(), MadeUp(), replay_size=50, warmup=5, n_steps=STEPS)
AGENT = dataclasses.replace(AGENT, base=dataclasses.replace(AGENT.base, discount=GAMMA))


def require_naive_returns(learner: Learner, cut: set[tuple[float, float]]) -> int:
    """What the learner learns from, against a walk over its rows by (mark, time).

    `cut` are the transitions behind which an episode is not followed. Returns how many of the
    returns are of more than one step.
    """
    spec, replay = learner.replay.spec, learner.replay
    rows = spec.unpack(replay.rows[: len(replay)], list(spec.fields))
    ids = [(float(mark), float(time)) for mark, time in rows["obs"]]
    place_of = {one: place for place, one in enumerate(ids)}
    found = spec.unpack(learner.loop._take(np.arange(len(replay))), list(spec.fields))
    long = 0
    for place, (mark, time) in enumerate(ids):
        walk = []
        for k in range(STEPS):
            at = place_of.get((mark, time + k))
            if at is None or (k and (mark, time + k - 1) in cut):
                break
            walk.append(at)
            if rows["continues"][at] == 0:
                break
        weights = GAMMA ** np.arange(len(walk))
        for name in ("reward", "bonus"):
            wanted = (weights * rows[name][walk]).sum()
            np.testing.assert_allclose(found[name][place], wanted, rtol=1e-4, atol=1e-5)
        left = rows["continues"][walk[-1]] * weights[-1]
        np.testing.assert_allclose(found["continues"][place], left, rtol=1e-6)
        np.testing.assert_array_equal(found["next_obs"][place], rows["next_obs"][walk[-1]])
        long += len(walk) > 1
    return long


def latest(learner: Learner) -> set[tuple[float, float]]:
    rows = learner.replay.recent(learner.loop.environments.num_envs)
    return {(float(mark), float(time)) for mark, time in rows[:, :2]}


def foreign(learner: Learner, count: int) -> None:
    """Two episodes from elsewhere, of marks that no environment draws; the second is cut off."""
    time = np.concatenate([np.arange(count), np.arange(count)]).astype(np.float32)
    mark = np.repeat([-1.0 - learner.replay.inserted, -1.5 - learner.replay.inserted], count)
    obs = np.stack([mark, time], axis=1)
    ends = np.arange(2 * count) == count - 1
    learner.add(
        obs,
        np.full((2 * count, 1), 1.0),
        time + 0.5,
        obs + np.array([0.0, 1.0]),
        ends,
        np.zeros_like(ends),
    )


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_learner_learns_from_naive_returns(num_envs: int) -> None:
    learner = Learner("Marked-v0", AGENT, num_envs=num_envs, seed=2)
    foreign(learner, 3)  # before its own first step
    cut: set[tuple[float, float]] = set()
    for _ in range(3):
        until = learner.step + 12
        while learner.step < until:
            learner.loop.advance()
        assert require_naive_returns(learner, cut) > 5
        cut |= latest(learner)
        foreign(learner, 4)
        foreign(learner, 2)
        assert require_naive_returns(learner, cut) > 5
    assert learner.replay.inserted > learner.replay.capacity
    assert learner.updates > 20


@pytest.mark.parametrize("num_envs", [1, 2])
def test_no_return_crosses_into_the_episode_that_a_continued_run_begins(
    num_envs: int, tmp_path: Any
) -> None:
    learner = Learner("Unrepeatable-v0", AGENT, num_envs=num_envs).learn(20)
    learner.save(tmp_path)
    with pytest.warns(UserWarning, match="not deterministic"):
        resumed = Learner.load(tmp_path)
    cut = latest(resumed)
    resumed.learn(6)
    assert require_naive_returns(resumed, cut) > 3
