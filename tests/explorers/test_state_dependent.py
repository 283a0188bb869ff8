"""gSDE: equal features, equal noise; and how long it stays."""

import jax
import jax.numpy as jnp
import numpy as np
from worlds import begin, follow, memory_of, observations, tiny, view_of

from adac.core import agent as core
from adac.core.explorers import StateDependentNoise


def test_equal_states_get_equal_noise_until_it_is_redrawn() -> None:
    agent = tiny(StateDependentNoise(weight_noise=1.0, redraw=5))
    actions = follow(agent, begin(agent), 15, envs=3)
    for block in actions.reshape(3, 5, 3, 2):
        np.testing.assert_array_equal(block, np.repeat(block[:1], 5, axis=0))
    assert not np.isclose(actions[4], actions[5]).any()
    assert not np.isclose(actions[0, 0], actions[0, 1]).any()  # every environment its own


def test_the_noise_is_linear_in_the_features() -> None:
    agent = tiny(StateDependentNoise(weight_noise=0.3, redraw=100))
    state = begin(agent)
    seen, obs = view_of(agent, state), observations(40)
    memory, first = memory_of(agent.explorer, 1), jnp.ones(1, bool)
    noise = []
    for row in obs:
        key = jax.random.key(len(noise))
        action, memory = core.act(agent, state, row[None], memory, first, key)
        noise.append(np.arctanh(action[0]) - seen.location(row[None])[0])
        first = jnp.zeros(1, bool)
    z, noise_of = np.asarray(seen.features(obs)), np.stack(noise)
    theta, *_ = np.linalg.lstsq(z, noise_of, rcond=None)
    np.testing.assert_allclose(z @ theta, noise_of, atol=1e-4)
    assert 0.15 < theta.std() < 0.45
