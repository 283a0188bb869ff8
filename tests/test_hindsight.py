"""Hindsight: goals of the same episode's future, with the reward that the task pays for them."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from adac.errors import UserError
from adac.training.hindsight import Hindsight, goals_of
from adac.training.learner import Learner

TINY = {"actor_hidden": "8", "critic_hidden": "8", "batch_size": 16, "warmup": 0, "learn_after": 20}


class Line(gymnasium.Env[Any, Any]):
    """Go to a place on a line; what is achieved tells the environment, the episode and the step."""

    observation_space = spaces.Dict(
        {
            "achieved_goal": spaces.Box(-1e6, 1e6, (1,)),
            "desired_goal": spaces.Box(-1e6, 1e6, (1,)),
            "observation": spaces.Box(-1e6, 1e6, (2,)),
        }
    )
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    made = 0

    def __init__(self, length: int = 6, ends: bool = False) -> None:
        self.length, self.ends, self.episode, self.time = length, ends, 0, 0
        self.number = Line.made = Line.made + 1

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self._see(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        obs = self._see()
        reward = self.compute_reward(obs["achieved_goal"], obs["desired_goal"], {})
        return obs, float(reward), False, self.time == self.length + self.episode % 3, {}

    def _see(self) -> Any:
        place = 10_000 * (self.number % 7) + 100 * self.episode + self.time
        return {
            "achieved_goal": np.array([place], np.float32),
            "desired_goal": np.array([-1], np.float32),
            "observation": np.array([place, self.time], np.float32),
        }

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return -(np.abs(achieved - desired)[..., 0] > 0.5).astype(np.float64)

    def compute_terminated(self, achieved: Any, desired: Any, info: Any) -> bool:
        return self.ends and bool(np.abs(achieved - desired)[0] <= 0.5)


gymnasium.register("test/Line-v0", Line)


def learner(steps: int, **overrides: Any) -> Learner:
    count = overrides.pop("num_envs", 1)
    kwargs = overrides.pop("env_kwargs", {})
    made = Learner(
        "test/Line-v0", "td3", num_envs=count, overrides=TINY | overrides, env_kwargs=kwargs
    )
    return made.learn(steps)


def hindsight(made: Learner) -> Hindsight:
    found = made.loop._hindsight
    assert found is not None
    return found


def relabelled(made: Learner, count: int = 4_000) -> tuple[Any, Any]:
    """Columns before and after."""
    spec, replay = made.replay.spec, made.replay
    names = ("obs", "reward", "continues", "next_obs")
    places = replay.draw(count)
    before = replay.take(places)
    after = hindsight(made).relabel(places, before.copy())
    return spec.unpack(before, names), spec.unpack(after, names)


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("replay_size", [10_000, 50])
def test_goals_are_what_the_same_episode_achieves_later(num_envs: int, replay_size: int) -> None:
    made = learner(300, num_envs=num_envs, replay_size=replay_size)
    before, after = relabelled(made)
    reached, wanted = after["next_obs"][:, 0], after["next_obs"][:, 1]
    changed = wanted != -1
    assert (after["obs"][:, 1] == wanted).all()
    assert ((wanted // 100) == (reached // 100))[changed].all()
    assert (wanted >= reached)[changed].all()
    assert len(set((wanted - reached)[changed])) >= 6  # now, and up to the longest episode's end
    expected = np.where(np.abs(reached - wanted) > 0.5, -1.0, 0.0)
    np.testing.assert_array_equal(after["reward"], expected)
    assert (after["continues"] == 1).all()
    for name in ("obs", "next_obs"):  # nothing else is touched
        others = [0, 2, 3]
        np.testing.assert_array_equal(after[name][:, others], before[name][:, others])


def test_four_of_five_and_each_later_step_as_often() -> None:
    made = learner(7 * 300)
    _, after = relabelled(made, 40_000)
    changed = after["next_obs"][:, 1] != -1
    assert abs(changed.mean() - 0.8) < 0.02
    first = changed & (after["next_obs"][:, 3] == 1)  # the first step of an episode
    ahead = (after["next_obs"][:, 1] - after["next_obs"][:, 0])[first].astype(int)
    counts = np.bincount(ahead)[:6]
    assert counts.min() > 0.85 * counts.max()


def test_an_episode_that_goes_on_keeps_its_goal() -> None:
    made = learner(30, env_kwargs={"length": 1_000})
    before, after = relabelled(made)
    np.testing.assert_array_equal(after["next_obs"], before["next_obs"])
    assert (after["reward"] == -1).all()


def test_a_goal_that_ends_the_episode_ends_it_in_hindsight_too() -> None:
    made = learner(200, env_kwargs={"ends": True})
    _, after = relabelled(made)
    np.testing.assert_array_equal(after["continues"], np.where(after["reward"] == 0, 0.0, 1.0))
    assert (after["continues"] == 0).any()


@pytest.mark.parametrize(("num_envs", "replay_size"), [(1, 10_000), (3, 10_000), (3, 50), (1, 50)])
def test_what_a_load_rebuilds_is_what_was_kept(
    tmp_path: Path, num_envs: int, replay_size: int
) -> None:
    made = learner(200, num_envs=num_envs, replay_size=replay_size)
    kept = hindsight(made).ends.copy()
    assert (kept >= 0).any()
    made.save(tmp_path)
    with pytest.warns(UserWarning, match="led elsewhere"):  # Line numbers its environments
        loaded = Learner.load(tmp_path)
    known = kept >= 0
    np.testing.assert_array_equal(hindsight(loaded).ends[known], kept[known])
    hindsight(made).rebuild()
    np.testing.assert_array_equal(hindsight(made).ends, kept)


def test_rows_from_elsewhere_are_episodes_too() -> None:
    made = learner(40)
    obs = {
        "achieved_goal": np.arange(5, dtype=np.float32)[:, None] + 900_000,
        "desired_goal": np.full((5, 1), -1, np.float32),
        "observation": np.zeros((5, 2), np.float32),
    }
    after = obs | {"achieved_goal": obs["achieved_goal"] + 1}
    made.add(obs, np.zeros((5, 1)), np.zeros(5), after, np.zeros(5))
    assert hindsight(made).ends[40:45].tolist() == [44] * 5


def test_it_is_off_where_it_can_not_be() -> None:
    assert learner(5, hindsight=0).loop._hindsight is None
    plain = Learner("MountainCarContinuous-v0", "td3", overrides=TINY)
    assert plain.loop._hindsight is None
    with pytest.raises(UserError, match="n_steps = 1, not 3"):
        learner(5, n_steps=3)
    with pytest.raises(UserError, match="action_repeat = 1, not 2"):
        learner(5, env_kwargs={"action_repeat": 2})


def test_a_reward_that_takes_no_batch_is_told() -> None:
    class Alone(Line):
        def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
            return float(achieved == desired)

    with pytest.warns(UserWarning, match="without hindsight"):
        assert goals_of(Alone(), Alone.observation_space, "Alone") is None


def forge_ahead(made: Learner, folder: Path, ahead: float) -> None:
    """Of the first row."""
    made.save(folder / "good")
    made.replay.rows[0, made.replay.spec.columns["ahead"]] = ahead
    made.save(folder / "forged")


@pytest.mark.parametrize("ahead", [-9_990.0, 3e38, 0.5, 4_097.0])
def test_rows_that_were_never_written_are_not_reached(tmp_path: Path, ahead: float) -> None:
    """Row 0 would take the end of row 10's episode, and go there by places beyond the 40."""
    forge_ahead(learner(40), tmp_path, ahead)
    with pytest.raises(UserError, match="do not say where their episodes go on"):
        Learner.load(tmp_path / "forged")
    fresh = learner(1)
    with pytest.raises(UserError, match="do not say where their episodes go on"):
        fresh.add_dataset(tmp_path / "forged")
    fresh.add_dataset(tmp_path / "good")
