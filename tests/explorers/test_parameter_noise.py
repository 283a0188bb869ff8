"""Parameter noise: it reaches its distance, and acts with one policy for an episode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import begin, follow, observations, tiny, view_of

from adac.core.explorers import GaussianNoise, Mixture, ParameterNoise


@pytest.mark.parametrize("initial", [1e-3, 1.0])
def test_the_policies_come_to_the_wanted_distance(initial: float) -> None:
    explorer = ParameterNoise(policy_distance=0.2, initial_weight_noise=initial)
    agent = tiny(explorer)
    state, obs = begin(agent), observations(64)

    def step(learned: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        metrics = explorer.measure(view_of(agent, state._replace(explorer=learned)), obs, key)
        return explorer.improve_learned(learned, metrics), metrics["policy_distance"]

    keys = jax.random.split(jax.random.key(0), 1_500)
    _, distances = jax.lax.scan(step, state.explorer, keys)
    assert np.median(distances[-300:]) == pytest.approx(0.2, rel=0.15)
    assert abs(float(np.median(distances[:10])) - 0.2) > 0.1


def test_one_disturbed_policy_acts_for_an_episode() -> None:
    agent = tiny(ParameterNoise(initial_weight_noise=0.3))
    state = begin(agent)
    actions = follow(agent, state, 6, envs=2)
    np.testing.assert_array_equal(actions, np.repeat(actions[:1], 6, axis=0))
    pi = view_of(agent, state).action(jnp.ones((1, 3)))[0]
    assert not np.isclose(actions[0, 0], actions[0, 1]).any()
    assert not np.isclose(actions[0, 0], pi).any()


def test_in_a_mixture_it_must_be_the_one_that_learns() -> None:
    Mixture((GaussianNoise(), ParameterNoise()))
    with pytest.raises(ValueError, match="last"):
        Mixture((ParameterNoise(), GaussianNoise()))
