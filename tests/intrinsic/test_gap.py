"""The bonus gap, where it can be worked out by hand."""

from dataclasses import dataclass
from typing import Any, final

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core.diagnose import diagnose
from adac.core.explorers import Analogous
from adac.core.intrinsic import Intrinsic, Vime
from adac.core.intrinsic.gap import action_gap
from adac.training.bonus_gap import (
    BLOCK,
    Trace,
    Transitions,
    bonuses,
    discounted,
    episode_gap,
    follow,
)
from adac.training.evaluation import evaluate
from adac.training.learner import Learner
from helpers import ACTION, BATCH, MadeUp, TerminalReward, random_batch, start, tiny


@final
@dataclass(frozen=True)
class Distance(Intrinsic):
    """|s'|², and s' is believed to be s + a + noise: the noise cancels only if it is shared."""

    def init(self, obs_dim: int, action_dim: int, key: Array) -> Any:
        return ()

    def bonus(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        return jnp.sum(next_obs - obs, axis=-1)

    def update(
        self, state: Any, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[Any, dict[str, Array]]:
        return state, {}

    def predict(self, state: Any, obs: Array, action: Array, key: Array) -> Array:
        return obs + action + 100.0 * jax.random.normal(key, obs.shape)


def test_action_gap_compares_both_actions_by_the_same_prediction() -> None:
    obs, mu, pi = jnp.ones((5, 2)), jnp.full((5, 2), 0.5), jnp.full((5, 2), -0.25)
    found = action_gap(Distance(), (), obs, mu, pi, jax.random.key(0))
    np.testing.assert_allclose(found["bonus_gap"], 1.5, atol=1e-3)
    np.testing.assert_allclose(found["bonus_gap"], found["bonus_mu"] - found["bonus_pi"])


def test_action_gap_needs_a_model() -> None:
    rows = jnp.ones((5, 2))
    assert action_gap(MadeUp(), jnp.zeros(()), rows, rows, rows, jax.random.key(0)) == {}


def test_vime_gap_is_positive_where_only_mu_leaves_the_known_actions() -> None:
    """The model has only ever seen actions near 0; μ acts at 1, π at 0."""
    vime = Vime(eta=1.0, likelihood_std=1.0, model_samples=2)

    def body(number: Array, state: Any) -> Any:
        obs = jax.random.normal(jax.random.key(number), (100, 2))
        action = 0.2 * obs[:, :1]
        key = jax.random.fold_in(jax.random.key(1), number)
        state, _ = vime.collect(state, obs, action, 0.5 * obs)
        return vime.update(state, obs, action, 0.5 * obs, key)[0]

    @jax.jit
    def gaps(key: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        state = jax.lax.fori_loop(0, 600, body, vime.init(2, 1, key))
        obs, pi = jnp.zeros((64, 2)), jnp.zeros((64, 1))
        apart = action_gap(vime, state, obs, pi + 1.0, pi, jax.random.key(3))
        return apart, action_gap(vime, state, obs, pi, pi, jax.random.key(3))

    apart, alike = gaps(jax.random.key(2))
    assert float(apart["bonus_gap"]) > float(apart["bonus_pi"]) > 0.0
    assert float(alike["bonus_gap"]) == 0.0


def test_discounting() -> None:
    assert discounted(np.array([1.0, 2.0, 4.0]), 0.5) == 3.0
    assert discounted(np.ones(5), 1.0) == 5.0


def first_column(obs: Any, action: Any, next_obs: Any) -> Any:
    assert len(obs) == BLOCK
    return next_obs[:, 0]


def episode(*values: float) -> Transitions:
    column = np.array(values, np.float32)[:, None]
    return Transitions(0 * column, 0 * column, column)


def test_episode_gap_by_hand() -> None:
    mu, pi = [episode(1.0, 2.0), episode(5.0)], [episode(0.0, 0.0, 4.0)]
    found = episode_gap(first_column, mu, pi, 0.5)
    assert found == {"episode_bonus_gap": 2.5, "episode_bonus_mu": 3.5, "episode_bonus_pi": 1.0}


@pytest.mark.parametrize("length", [1, BLOCK, BLOCK + 1])
def test_blocks_do_not_show(length: int) -> None:
    values = np.arange(length, dtype=np.float32)
    np.testing.assert_array_equal(bonuses(first_column, episode(*values)), values)


def test_trace_remembers_what_was_done_in_the_agent_s_units() -> None:
    trace = Trace(gymnasium.make("Pendulum-v1", max_episode_steps=7))
    firsts = []

    def act(obs: Any, memory: int, first: Any, number: Any) -> tuple[Any, int]:
        firsts.append(bool(first[0]))
        memory = 0 if first[0] else memory + 1
        return np.full((1, 1), 0.1 * memory, np.float32), memory

    result = evaluate(follow(act, 0, [trace]), trace, 2, seed=0)
    first, second = trace.take()
    assert firsts == ([True] + [False] * 6) * 2
    assert result.lengths.tolist() == [7, 7]
    np.testing.assert_allclose(first.action[:, 0], 0.1 * np.arange(7), atol=1e-6)
    np.testing.assert_array_equal(first.next_obs[:-1], first.obs[1:])
    assert not np.array_equal(first.obs, second.obs)
    assert trace.take() == []


class InPlace(gymnasium.ObservationWrapper[Any, Any, Any]):
    """One buffer for all observations, as some simulators have."""

    def observation(self, observation: Any) -> Any:
        self.buffer = getattr(self, "buffer", observation)
        self.buffer[:] = observation
        return self.buffer


def test_trace_copies_what_a_task_overwrites() -> None:
    taken = []
    for wrap in (lambda env: env, InPlace):
        trace = Trace(wrap(gymnasium.make("Pendulum-v1", max_episode_steps=7)))
        evaluate(lambda obs: np.tanh(obs[:, :1]), trace, 1, seed=0)
        taken.append(trace.take()[0])
    for plain, overwritten in zip(*taken, strict=True):
        np.testing.assert_array_equal(plain, overwritten)


def still(learner: Learner) -> None:
    """π is 0 everywhere, online and in its target weights; so is μ, but for its noise."""
    zero = jax.tree.map(jnp.zeros_like, learner.state.actor)
    learner.loop.running.state = learner.state._replace(actor=zero)


def test_the_learner_s_gap_is_mu_minus_pi() -> None:
    """The bonus is |s'|² + |a|²; π does nothing, so it collects what μ does but for |a|²."""
    noisy = Analogous(particles=4, action_noise=0.5, latent_correlation=0.0)
    learner = Learner(
        TerminalReward(), tiny(explorer=noisy, intrinsic=MadeUp()), eval_env=TerminalReward()
    )
    still(learner)
    found = learner.bonus_gap(20)
    assert found["episode_bonus_pi"] == pytest.approx(1.0)  # s' = 1, and then the end
    assert found["episode_bonus_gap"] > 0.05


def test_the_diagnosed_gap_is_mu_minus_pi() -> None:
    agent = tiny(intrinsic=Distance())
    state = start(agent, obs_dim=2)
    state = state._replace(actor=jax.tree.map(jnp.zeros_like, state.actor))
    recent = random_batch(obs_dim=2)._replace(action=jnp.full((BATCH, ACTION), 0.5))
    found = diagnose(agent, state, recent.obs, recent, jax.random.key(0))
    np.testing.assert_allclose(found["bonus_gap"], 1.0, atol=1e-3)
