"""A Learner from Python: environments made by hand, settings that come back, folders kept apart."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers import (
    RecordEpisodeStatistics,
    TimeAwareObservation,
    TimeLimit,
    TransformReward,
)

import adac
from adac.core.intrinsic import Intrinsic
from adac.errors import UserError
from adac.training.learner import Learner
from helpers import MatchingReward, stored

SMALL: dict[str, Any] = {
    "actor_hidden": [8], "critic_hidden": [8], "warmup": 20, "batch_size": 8,
}  # fmt: skip
PENDULUM = "Pendulum-v1"


def small(env: Any = PENDULUM, agent: Any = "td3", **options: Any) -> Learner:
    return Learner(env, agent, **({"overrides": SMALL} | options))


def unrewarded(env: Any) -> Any:
    return TransformReward(env, lambda reward: 0.0)


def test_an_environment_s_own_settings_are_evaluated_and_kept(tmp_path: Path) -> None:
    learner = small(gymnasium.make(PENDULUM, g=3.0, max_episode_steps=30)).learn(40)
    assert learner.evaluate(2).lengths.tolist() == [30, 30]
    learner.save(tmp_path)
    again: Any = Learner.load(tmp_path).make_env()
    assert again.unwrapped.g == 3.0
    assert again.spec.max_episode_steps == 30


@pytest.mark.parametrize(
    "made",
    [
        lambda: gymnasium.make(PENDULUM, render_mode="rgb_array"),
        lambda: RecordEpisodeStatistics(gymnasium.make(PENDULUM)),
        lambda: TimeLimit(gymnasium.make(PENDULUM).unwrapped, 200),
        lambda: adac.envs.make("BipedalWalker-v3"),
    ],
)
def test_an_environment_that_its_id_tells_needs_nothing_else(made: Any) -> None:
    env = made()
    learner = small(env)
    assert learner.make_env().spec.id == env.spec.id
    assert "env_object" not in learner.config()
    assert learner.env_kwargs == {}


@pytest.mark.parametrize(
    "made",
    [
        lambda: unrewarded(gymnasium.make(PENDULUM)),
        lambda: TimeAwareObservation(gymnasium.make(PENDULUM)),
        lambda: gymnasium.make(PENDULUM).unwrapped,  # endless
        lambda: MatchingReward(),
    ],
)
def test_what_an_id_does_not_tell_is_not_replaced_by_the_bare_task(
    made: Any, tmp_path: Path
) -> None:
    learner = small(made()).learn(30)
    for call in (learner.evaluate, learner.make_env):
        with pytest.raises(UserError, match="its id does not tell"):
            call()
    learner.save(tmp_path)
    with pytest.raises(UserError, match="env="):
        Learner.load(tmp_path)
    assert Learner.load(tmp_path, env=made()).step == 30


def test_an_evaluation_environment_is_used_and_is_another_one() -> None:
    env, other = (unrewarded(gymnasium.make(PENDULUM)) for _ in range(2))
    assert small(env, eval_env=other).evaluate(2).returns.tolist() == [0.0, 0.0]
    with pytest.raises(UserError, match="of its own"):
        small(env, eval_env=env.env)
    with pytest.raises(UserError, match="observation_space"):
        small(env, eval_env=adac.envs.make("MountainCarContinuous-v0"))
    with pytest.raises(UserError, match="env_kwargs"):
        small(env, env_kwargs={"g": 3.0})


def test_a_folder_of_another_size_is_not_called_damaged(tmp_path: Path) -> None:
    small(TimeAwareObservation(gymnasium.make(PENDULUM))).learn(30).save(tmp_path)
    with pytest.raises(UserError, match="another size"):
        Learner.load(tmp_path, env=gymnasium.make(PENDULUM))


@final
@dataclass(frozen=True)
class Constant(Intrinsic):
    value: float = 0.1
    mood: str = "calm"

    def init(self, obs_dim: int, action_dim: int, key: Any) -> Any:
        return ()

    def bonus(self, state: Any, obs: Any, action: Any, next_obs: Any) -> Any:
        return jnp.full(obs.shape[0], self.value)

    def update(self, state: Any, obs: Any, action: Any, next_obs: Any, key: Any) -> Any:
        return state, {}


def test_a_run_s_settings_come_back_with_a_class_of_one_s_own(tmp_path: Path) -> None:
    agent = adac.Agent(intrinsic=Constant(), batch_size=8, warmup=20)
    learner = small(agent=agent, overrides={"value": 0.5, "mood": "wild", "batch_size": 16})
    learner.learn(30).save(tmp_path)
    loaded = Learner.load(tmp_path, agent=agent)
    assert loaded.agent == learner.agent != agent
    loaded.learn(1)
    assert stored(loaded).bonus[-1] == 0.5


def test_any_false_of_a_callback_ends_the_training() -> None:
    assert small().learn(60, callback=lambda seen: np.bool_(seen.step < 50)).step == 50
    assert small().learn(60, callback=lambda seen: seen.step < 50).step == 50
    assert small().learn(60, callback=lambda seen: None).step == 60


def test_a_folder_keeps_one_run(tmp_path: Path) -> None:
    small(seed=1).learn(40, out=tmp_path)
    other = small(agent="ddpg", seed=7).learn(50)
    with pytest.raises(UserError, match="already holds a run of 40 steps"):
        other.learn(30, out=tmp_path)
    Learner.load(tmp_path).learn(10, out=tmp_path)


def test_numbers_may_be_numpy_s_or_written_as_1e3(tmp_path: Path) -> None:
    agent = adac.Agent(
        networks=adac.Networks([8], [8], latent=2, latent_hidden=[8]),  # type: ignore[arg-type]
        explorer=adac.Analogous(latent_correlation=[0.0, 0.9]),  # type: ignore[arg-type]
        batch_size=np.int64(8),  # type: ignore[arg-type]
        warmup=1e1,  # type: ignore[arg-type]
    )
    learner = Learner(PENDULUM, agent, seed=np.int64(3), env_kwargs={"g": np.float32(2.0)})
    learner.learn(3e1, out=tmp_path)  # type: ignore[arg-type]
    loaded = Learner.load(tmp_path)
    assert loaded.agent == agent
    assert loaded.seed == 3
    assert loaded.env_kwargs == {"g": 2.0}


def test_predict_takes_the_state_of_as_many_observations() -> None:
    learner = small(agent="adac-td3")
    _, state = learner.predict(np.zeros(3))
    for start in (None, True, [False], np.array([True])):
        action, _ = learner.predict(np.zeros(3), state, start)  # type: ignore[arg-type]
        assert action.shape == (1,)
    for wrong in ({"state": state}, {"episode_start": np.zeros(3, bool)}):
        with pytest.raises(UserError, match="these 2 observations"):
            learner.predict(np.zeros((2, 3)), **wrong)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: small(agent=3), "agent must be"),
        (lambda: small(agent=adac.Agent), "agent must be"),
        (lambda: small(seed=None), "seed must be a whole number"),
        (lambda: small().learn(1.5), "steps must be a whole number"),
        (lambda: small().evaluate(seed=-1), "seed must not be negative"),
    ],
)
def test_what_can_not_be_meant_is_one_sentence(call: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: adac.Agent(base="td3"), "base must be"),  # type: ignore[arg-type]
        (lambda: adac.Analogous(particles=2.5), "particles must be"),  # type: ignore[arg-type]
        (lambda: adac.Deterministic(policy_delay=1.5), "policy_delay"),  # type: ignore[arg-type]
    ],
)
def test_parts_refuse_what_they_can_not_use(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
