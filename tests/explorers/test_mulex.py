"""MULEX: a behaviour, a critic and a policy to go on with for each bonus; a clean task."""

import jax
import jax.numpy as jnp
import numpy as np
from worlds import LATENT, OBS, batch, begin, follow, memory_of, tiny, view_of

from adac.core import agent as core
from adac.core.agent import AgentState
from adac.core.explorers import Mulex
from adac.core.explorers.mulex import codes
from adac.core.intrinsic import Counts, Icm, Rnd, Sum

SMALL = {"model_hidden": (8,), "bonus_after": 0}
BONUSES = Sum(bonuses=(Counts(bonus_after=0), Rnd(**SMALL), Icm(**SMALL)))  # type: ignore[arg-type]
AGENT = tiny(Mulex(noise=0.0), intrinsic=BONUSES)


def updated(state: AgentState, scale: float = 1.0) -> AgentState:
    """With the third bonus a given number of times as large."""
    parts = BONUSES.bonuses
    larger = Icm(**SMALL, eta=0.1 * scale)  # type: ignore[arg-type]
    agent = tiny(Mulex(noise=0.0), intrinsic=Sum(bonuses=(*parts[:2], larger)))
    update = jax.jit(core.update, static_argnums=0, static_argnames="improve")
    args = batch(), jax.random.key(3), jnp.float32(0.5)
    return update(agent, state, *args, improve=True)[0]


def test_every_objective_has_a_critic_and_acts() -> None:
    state = begin(AGENT)
    assert AGENT.streams == len(state.critic.params) == 4
    actions = follow(AGENT, state, 1, envs=400)[0]
    view = view_of(AGENT, state)
    behaviours = view.action(jnp.ones((4, OBS)), codes(4, LATENT))
    near = np.abs(actions[:, None] - np.asarray(behaviours)[None]).max(axis=-1)
    np.testing.assert_allclose(near.min(axis=1), 0.0, atol=1e-5)
    shares = np.bincount(near.argmin(axis=1), minlength=4) / 400
    np.testing.assert_allclose(shares, 0.25, atol=0.1)


def test_who_acts_stays_for_an_episode() -> None:
    actions = follow(AGENT, begin(AGENT), 10, envs=8)
    np.testing.assert_array_equal(actions, np.repeat(actions[:1], 10, axis=0))


def test_a_bonus_reaches_its_own_critic_alone() -> None:
    state = begin(AGENT)
    raw = batch().obs, batch().action, batch().next_obs
    intrinsic = BONUSES.collect(state.intrinsic, *raw)[0]
    one, other = (updated(state._replace(intrinsic=intrinsic), scale) for scale in (1.0, 100.0))
    same = [
        all(map(np.array_equal, jax.tree.leaves(a), jax.tree.leaves(b)))
        for a, b in zip(one.critic.params, other.critic.params, strict=True)
    ]
    assert same == [True, True, True, False]


def test_each_stream_goes_on_with_its_own_behaviour() -> None:
    view, next_obs = view_of(AGENT, begin(AGENT)), batch().next_obs
    outputs = Mulex().continuations(view, next_obs, 3)
    for xi, raw in zip(codes(4, LATENT)[1:], outputs, strict=True):
        wide = jnp.broadcast_to(xi, (len(next_obs), LATENT))
        np.testing.assert_array_equal(raw, view.output(next_obs, wide))
        assert not np.allclose(raw, view.output(next_obs))


def test_each_behaviour_climbs_its_own_critic() -> None:
    """The loss is Σ −Q_i(s, f(s, ξ_i)): the task's critic is not in it."""
    state, obs = begin(AGENT), batch().obs
    view = view_of(AGENT, state)
    loss, _ = Mulex().loss(view, view.values(obs)[0], obs, jnp.float32(0), jax.random.key(0))
    expected = 0.0
    for stream in (1, 2, 3):
        xi = jnp.broadcast_to(codes(4, LATENT)[stream], (len(obs), LATENT))
        q = state.critic.params[stream][0](obs, view.action(obs, xi))
        expected -= float(jnp.mean(q))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert memory_of(Mulex(), 3).shape == (3,)
