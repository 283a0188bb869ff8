"""π in turn with an explorer: who acts, for how long, and with whose network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from adac.core import agent as core
from adac.core.explorers import Analogous, GaussianNoise, Interleaved, Uniform
from adac.core.nets import Net
from adac.core.presets import make
from adac.core.settings import names, override
from helpers import ACTION, OBS, tiny

OWN = Analogous(particles=4, co_training=False, action_noise=0.0)
ENVS, STEPS = 64, 400


def who_acts(share: float, stretch: int) -> np.ndarray:
    """[STEPS, ENVS]: whether π acted, read off a constant π beside random actions."""
    explorer = Interleaved(Uniform(), pi_share=share, pi_stretch=stretch, pi_noise=0.0)
    agent = tiny(explorer=explorer)
    state = core.init(agent, OBS, ACTION, jax.random.key(0))
    obs = jnp.ones((ENVS, OBS))
    pi = np.asarray(core.behaviour_policy(agent, state).actor(obs))
    memory = core.init_memory(agent, ENVS, OBS, ACTION)
    step = jax.jit(lambda m, first, key: core.act(agent, state, obs, m, first, key))
    seen = []
    for t in range(STEPS):
        action, memory = step(memory, jnp.full(ENVS, t == 0), jax.random.key(t))
        seen.append(np.isclose(action, np.tanh(pi)).all(axis=-1))
    return np.array(seen)


@pytest.mark.parametrize(("share", "stretch"), [(0.5, 10), (0.2, 25)])
def test_pi_acts_for_its_share_in_stretches_of_the_right_length(share: float, stretch: int) -> None:
    acted = who_acts(share, stretch)
    assert acted.mean() == pytest.approx(share, abs=0.06)
    # Who acts changes where it is drawn anew and the draw is another: 2 p (1 − p) / stretch.
    changes = (acted[1:] != acted[:-1]).mean()
    assert changes == pytest.approx(2 * share * (1 - share) / stretch, rel=0.2)


def test_the_limits_are_the_explorer_alone_and_pi_alone() -> None:
    assert not who_acts(0.0, 5).any()
    assert who_acts(1.0, 5).all()


def test_it_is_pi_s_network_that_acts_where_mu_has_its_own() -> None:
    agent = tiny(explorer=Interleaved(OWN, pi_share=1.0, pi_noise=0.0))
    state = core.init(agent, OBS, ACTION, jax.random.key(0))
    assert isinstance(state.behaviour, Net)
    far = jax.tree.map(lambda x: x + 1.0, state.behaviour.params)
    state = state._replace(behaviour=state.behaviour._replace(params=far))
    obs, memory = jnp.ones((5, OBS)), core.init_memory(agent, 5, OBS, ACTION)
    action, _ = core.act(agent, state, obs, memory, jnp.ones(5, bool), jax.random.key(1))
    np.testing.assert_allclose(action, jnp.tanh(state.actor.params(obs)), rtol=1e-6)
    with_mu = tiny(explorer=Interleaved(OWN, pi_share=0.0))
    action, _ = core.act(with_mu, state, obs, memory, jnp.ones(5, bool), jax.random.key(1))
    assert not np.isclose(action, jnp.tanh(state.actor.params(obs))).all(axis=-1).any()


def test_settings_of_the_inner_explorer_are_set_by_name() -> None:
    agent = override(make("adac-explore"), {"particles": 4, "pi_stretch": 7, "eta": 0.3})
    assert names(agent)["particles"] == 4
    assert isinstance(agent.explorer, Interleaved)
    assert agent.explorer.other == Analogous(
        particles=4, co_training=False, beta_start=0.05, beta_end=0.05, score_floor=0.1
    )
    assert agent.explorer.pi_stretch == 7


def test_it_is_made_of_explorers() -> None:
    with pytest.raises(ValueError, match="pi_share"):
        Interleaved(GaussianNoise(), pi_share=1.5)
    with pytest.raises(ValueError, match="must be of the type Explorer"):
        Interleaved(3)  # type: ignore[arg-type]
