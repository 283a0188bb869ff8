"""MaxInfoRL's λ, ADAC's, and β: which way they go, and what they touch."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import batch, begin, tiny, view_of

from adac.core import agent as core
from adac.core import svgd
from adac.core.agent import Agent, AgentState
from adac.core.explorers import Analogous, MaxInfo, OwnPolicy
from adac.core.explorers.tuning import Tuned
from adac.core.intrinsic import InformationGain
from adac.core.multiplier import begin as multiplier

GAIN = InformationGain(model_hidden=(8,), bonus_after=0)
MAXINFO = tiny(MaxInfo(), "sac", intrinsic=GAIN)
ADAC = tiny(Analogous(particles=4, bonus_weight="learned"), intrinsic=GAIN)


def updated(agent: Agent, state: AgentState, seed: int = 0) -> AgentState:
    update = jax.jit(core.update, static_argnums=0, static_argnames="improve")
    args = batch(seed), jax.random.key(seed), jnp.float32(0.5)
    return update(agent, state, *args, improve=True)[0]


@pytest.mark.parametrize("agent", [MAXINFO, ADAC], ids=["maxinfo-sac", "adac-maxinfo"])
@pytest.mark.parametrize("more", [True, False])
def test_lambda_falls_where_the_policy_is_more_curious_than_its_past(
    agent: Agent, more: bool
) -> None:
    """The two are exchanged: what lowers λ one way raises it the other."""
    state = begin(agent)
    params = state.actor.params
    bold = jax.tree.map(lambda leaf: 3.0 * leaf, params)
    seen = view_of(agent, state)
    key, obs = jax.random.key(1), batch(count=256).obs

    def promise(actor: Any) -> float:
        view = seen._replace(policy=seen.policy._replace(actor=actor))
        return float(jnp.mean(view.promise(obs, view.action(obs), key)))

    curious, dull = (bold, params) if promise(bold) > promise(params) else (params, bold)
    now, past = (curious, dull) if more else (dull, curious)
    policy = seen.policy._replace(actor=now, slow=past)
    explorer = agent.explorer
    if isinstance(explorer, MaxInfo):
        metrics = explorer.measure(seen._replace(policy=policy), obs, jax.random.key(2))
    else:
        q = seen._replace(policy=policy._replace(critics=state.critic.params)).values(obs)[0]
        view, progress = seen._replace(policy=policy), jnp.float32(0.0)
        _, metrics = explorer.loss(view, q, obs, progress, jax.random.key(2))
    learned = explorer.improve_learned(state.explorer, metrics)
    assert (float(learned.weight.value) < 1.0) == more


def test_the_gain_is_in_the_target_and_in_the_actor_s_loss() -> None:
    """With a heavier λ both the critics and the policy learn something else; at λ = 0 they learn
    what SAC does."""
    state = updated(MAXINFO, begin(MAXINFO))  # the gain has its unit now
    sac = replace(MAXINFO, explorer=OwnPolicy(), intrinsic=None)

    def after(agent: Agent, log_weight: float) -> AgentState:
        weight = state.explorer.weight._replace(log=jnp.float32(log_weight))
        start = state._replace(explorer=state.explorer._replace(weight=weight))
        if agent is sac:
            start = start._replace(explorer=(), intrinsic=())
        return updated(agent, start, 1)

    none, some, plain = after(MAXINFO, -90.0), after(MAXINFO, 1.0), after(sac, 0.0)
    for part in ("critic", "actor"):
        leaves = [jax.tree.leaves(getattr(s, part).params) for s in (none, some, plain)]
        differ = []
        for without, heavy, ordinary in zip(*leaves, strict=True):
            np.testing.assert_allclose(without, ordinary, atol=1e-6)
            differ.append(not np.allclose(heavy, ordinary, atol=1e-6))
        assert any(differ), part


def test_on_adac_lambda_touches_the_behaviour_critic_alone() -> None:
    state = begin(ADAC)

    def after(value: float) -> AgentState:
        learned = Tuned((), multiplier(value))
        return updated(ADAC, state._replace(explorer=learned))

    light, heavy = after(1.0), after(50.0)
    task, behaviour = zip(light.critic.params, heavy.critic.params, strict=True)
    for one, other in zip(*map(jax.tree.leaves, task), strict=True):
        np.testing.assert_array_equal(one, other)
    moved = [
        np.array_equal(one, other)
        for one, other in zip(*map(jax.tree.leaves, behaviour), strict=True)
    ]
    assert not all(moved)


def test_beta_rises_where_mu_is_too_narrow_and_falls_where_it_is_too_wide() -> None:
    for wanted, rises in ((0.5, True), (-20.0, False)):
        agent = tiny(Analogous(particles=8, behaviour_entropy=wanted))
        state = begin(agent)
        before = float(state.explorer.beta.value)
        for seed in range(3):
            state = updated(agent, state, seed)
        assert (float(state.explorer.beta.value) > before) == rises


def test_an_entropy_above_the_uniform_one_is_refused() -> None:
    with pytest.raises(ValueError, match="below"):
        Analogous(behaviour_entropy=0.7)


def test_the_particles_entropy_is_that_of_what_they_are_drawn_from() -> None:
    key = jax.random.key(0)
    uniform = jax.random.uniform(key, (400, 32, 2), minval=-1.0, maxval=1.0)
    normal = 0.1 * jax.random.normal(jax.random.key(1), (400, 32, 3))
    known = 1.5 * np.log(2 * np.pi * np.e * 0.01)
    assert float(jnp.mean(svgd.entropy(uniform))) == pytest.approx(2 * np.log(2), abs=0.2)
    assert float(jnp.mean(svgd.entropy(normal))) == pytest.approx(known, abs=0.2)
