"""Rewards in units of themselves: what a unit is, and what no longer depends on a task's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core import agent as core
from adac.core.agent import AgentState
from adac.core.batch import Batch
from adac.core.reward_scale import MEMORY, in_units, none_yet, observe, unit
from helpers import ACTION, OBS, MadeUp, tiny


def batch(reward: Array) -> Batch:
    keys = jax.random.split(jax.random.key(3), 3)
    count = reward.shape[0]
    obs, next_obs = (jax.random.normal(k, (count, OBS)) for k in keys[:2])
    action = jax.random.uniform(keys[2], (count, ACTION), minval=-1.0)
    return Batch(obs, action, reward, jnp.zeros(count), jnp.ones(count), next_obs)


def test_the_unit_is_the_root_mean_square_and_1_where_nothing_was_paid() -> None:
    scale = none_yet()
    assert unit(scale) == 1.0
    scale = observe(scale, jnp.zeros(8))
    assert unit(scale) == 1.0
    rewards = [jnp.array([3.0, -4.0]), jnp.array([0.0, 0.0]), jnp.array([1.0, 1.0])]
    scale = none_yet()
    for reward in rewards:
        scale = observe(scale, reward)
    assert unit(scale) == pytest.approx(np.sqrt(np.mean(np.square(np.concatenate(rewards)))))


def test_a_rare_reward_counts_the_more_the_rarer_it_is() -> None:
    scale = none_yet()
    for k in range(400):
        scale = observe(scale, jnp.zeros(256).at[0].set(1.0 if k % 4 == 0 else 0.0))
    assert 1.0 / unit(scale) == pytest.approx(np.sqrt(1024), rel=0.01)


def test_it_forgets() -> None:
    scale = observe(none_yet()._replace(seen=jnp.array(10.0 * MEMORY)), jnp.full(4, 1.0))
    assert scale.square == pytest.approx(1.0 / MEMORY)


def learned(factor: float, units: bool) -> AgentState:
    agent = tiny(reward_units=units)
    state = core.init(agent, OBS, ACTION, jax.random.key(0))
    reward = factor * jax.random.normal(jax.random.key(1), (8,))
    for n in range(3):
        key = jax.random.key(10 + n)
        state, _ = core.update(agent, state, batch(reward), key, jnp.zeros(()), improve=True)
    return state


def test_a_task_that_pays_in_another_unit_is_learned_with_the_same_bits() -> None:
    one, other = learned(1.0, True), learned(1024.0, True)  # a power of two rounds nothing
    for name in ("actor", "critic"):
        pairs = zip(
            jax.tree.leaves(getattr(one, name)), jax.tree.leaves(getattr(other, name)), strict=True
        )
        assert all(bool((a == b).all()) for a, b in pairs)
    plain, large = learned(1.0, False), learned(1024.0, False)
    assert not np.array_equal(plain.critic.params[0][0].body[0].weight,
                              large.critic.params[0][0].body[0].weight)  # fmt: skip


def test_each_stream_has_its_own_unit_and_a_bonus_leaves_the_task_s_alone() -> None:
    states = {}
    for scale in (0.0, 5.0):
        agent = tiny(intrinsic=MadeUp(scale=scale), reward_units=True)
        state = core.init(agent, OBS, ACTION, jax.random.key(0))
        sample = batch(jnp.ones(8))._replace(bonus=jnp.full(8, scale))
        state, metrics = core.update(
            agent, state, sample, jax.random.key(1), jnp.zeros(()), improve=False
        )
        states[scale] = state, metrics
    assert states[5.0][1]["reward_unit"] == 1.0
    assert states[5.0][1]["behaviour_unit"] == pytest.approx(6.0)
    task = [jax.tree.leaves(state.critic.params[0]) for state, _ in states.values()]
    assert all(bool((a == b).all()) for a, b in zip(*task, strict=True))


def test_without_units_nothing_is_kept_and_nothing_changed() -> None:
    rewards = [jnp.array([3.0])]
    assert in_units((), rewards) == ((), rewards)
    assert core.init(tiny(), OBS, ACTION, jax.random.key(0)).rewards == ()
