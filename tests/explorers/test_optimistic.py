"""OAC's shift, against one computed by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import BASES, begin, tiny, view_of

from adac.core import agent as core
from adac.core.explorers import Optimistic

OBS = jnp.array([[0.5, -1.0, 0.3]])


ONE, TWO = np.array([1.0, -2.0]), np.array([0.5, 3.0])


def linear(weight: np.ndarray[Any, Any], offset: float) -> Any:
    """Q(s, a) = w·a + c, in place of a network."""
    return lambda obs, action: (action @ jnp.asarray(weight) + offset)[..., None]


def by_hand(mean: Any, std: Any, optimism: float, reach: float) -> np.ndarray[Any, Any]:
    """m + √(2δ) Σ g / √(gᵀΣg), where |Q₁ − Q₂| has the slope of whichever is the higher."""
    mean, std = np.asarray(mean, np.float64)[0], np.asarray(std, np.float64)[0]
    action = np.tanh(mean)
    higher = np.sign(ONE @ action - (TWO @ action + 0.3))
    slope = (ONE + TWO) / 2 + optimism * higher * (ONE - TWO) / 2
    g = slope * (1 - action**2)
    shift: np.ndarray[Any, Any] = np.sqrt(2 * reach) * std**2 * g / np.sqrt(g @ np.diag(std**2) @ g)
    return mean + shift


@pytest.mark.parametrize("base", ["td3", "sac"])
def test_the_shift_is_the_one_computed_by_hand(base: str) -> None:
    explorer = Optimistic(noise=0.05)
    agent = tiny(explorer, base)
    seen = view_of(agent, begin(agent))
    seen = seen._replace(policy=seen.policy._replace(critics=((linear(ONE, 0), linear(TWO, 0.3)),)))
    mean, own = seen.location(OBS), BASES[base].deviation(seen.output(OBS))
    std = jnp.full((1, 2), 0.05) if own is None else own
    action, _ = explorer.act(seen, OBS, (), jnp.ones(1, bool), jax.random.key(0))
    noise = np.asarray(std * jax.random.normal(jax.random.key(0), (1, 2)))[0]
    expected = np.tanh(by_hand(mean, std, 4.66, 23.53) + noise)
    np.testing.assert_allclose(action[0], expected, atol=1e-5)


def test_one_critic_has_no_doubt_and_a_flat_one_no_direction() -> None:
    agent = tiny(Optimistic(), "ddpg")
    state = begin(agent)
    flat = jax.tree.map(jnp.zeros_like, state.critic.params)
    state = state._replace(critic=state.critic._replace(params=flat))
    first = jnp.ones(1, bool)
    action, _ = core.act(agent, state, OBS, (), first, jax.random.key(0))
    noise = 0.1 * jax.random.normal(jax.random.key(0), (1, 2))
    expected = jnp.tanh(view_of(agent, state).location(OBS) + noise)
    np.testing.assert_allclose(action, expected, rtol=1e-5)
