"""What every explorer promises, and explorers that are made of others."""

import dataclasses
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core import agent as core
from adac.core import settings
from adac.core.agent import Agent
from adac.core.bases import SAC, Base
from adac.core.diagnose import diagnose
from adac.core.explorers import (
    Analogous,
    ColouredNoise,
    Explorer,
    GaussianNoise,
    GoalExploration,
    Interleaved,
    MaxInfo,
    Mixture,
    Mulex,
    Optimistic,
    OrnsteinUhlenbeck,
    OwnPolicy,
    ParameterNoise,
    RepeatedNoise,
    StateDependentNoise,
    Then,
    Uniform,
)
from adac.core.intrinsic import InformationGain
from adac.training.learner import Learner
from helpers import ACTION, ADAC, OBS, TD3, MadeUp, assert_same_bits, start, step, tiny
from helpers import random_batch as batch

SLOW = Analogous(particles=4, latent_correlation=0.9)
EXAMPLES: list[Explorer] = [
    Uniform(),
    OwnPolicy(),
    GaussianNoise(2.0),
    OrnsteinUhlenbeck(1.0),
    ColouredNoise(),
    RepeatedNoise(),
    StateDependentNoise(weight_noise=1.0),
    ParameterNoise(),
    Optimistic(),
    GoalExploration(episodes=4),
    Mulex(),
    MaxInfo(),
    Analogous(latent_correlation=0.0),
    Analogous(latent_colour=1.0),
    Analogous(latent_repeat=4),
    SLOW,
    Analogous(co_training=False),
    Analogous.paper(),
    Then(OrnsteinUhlenbeck(), SLOW, 10),
    Mixture((GaussianNoise(), OrnsteinUhlenbeck(), SLOW)),
    Mixture((Then(Uniform(), OrnsteinUhlenbeck(), 5), Mixture((SLOW, GaussianNoise())))),
    Interleaved(Analogous(particles=4, co_training=False)),
]
EACH = pytest.mark.parametrize("explorer", EXAMPLES, ids=lambda e: type(e).__name__)
BASES = pytest.mark.parametrize("base", [TD3, SAC()], ids=["td3", "sac"])
MANY = 32


def test_every_explorer_has_an_example_here() -> None:
    ours = {k for k in settings.kinds("explorer").values() if k.__module__.startswith("adac.")}
    assert {type(explorer) for explorer in EXAMPLES} == ours


def acting(base: Base, explorer: Explorer) -> Agent:
    """With a bonus where there would be nothing to choose between without one."""
    if explorer.weighs:
        return tiny(base, explorer, InformationGain(model_hidden=(8,)))
    return tiny(base, explorer, MadeUp() if explorer.each_bonus else None)


@cache
def wild(agent: Agent) -> core.AgentState:
    """Weights so large that many of its actions are at the bounds."""
    state = start(agent)
    return state._replace(
        actor=jax.tree.map(lambda x: 5.0 * x, state.actor),
        behaviour=jax.tree.map(lambda x: 5.0 * x, state.behaviour),
    )


_act = jax.jit(core.act, static_argnums=0)


def act(agent: Agent, memory: Any, first: Any, seed: int = 0) -> tuple[Array, Any]:
    obs, key = batch(count=MANY).obs, jax.random.key(seed)
    action, memory = _act(agent, wild(agent), obs, memory, jnp.asarray(first), key)
    return action, memory


@EACH
@BASES
def test_actions_are_within_the_bounds_and_finite(base: Base, explorer: Explorer) -> None:
    agent = acting(base, explorer)
    memory = core.init_memory(agent, MANY, OBS, ACTION)
    for seed in range(3):
        action, memory = act(agent, memory, np.full(MANY, seed == 0), seed)
        assert action.shape == (MANY, ACTION)
        assert np.abs(action).max() <= 1.0  # false for NaN as well


@EACH
def test_the_same_arguments_give_the_same_bits(explorer: Explorer) -> None:
    agent, first = acting(TD3, explorer), np.ones(MANY, bool)
    memory = core.init_memory(agent, MANY, OBS, ACTION)
    one, other = act(agent, memory, first), act(agent, memory, first)
    assert_same_bits(one, other)
    if not isinstance(explorer, OwnPolicy | MaxInfo):  # π itself, on a deterministic base
        assert not np.array_equal(one[0], act(agent, memory, first, seed=1)[0])


@EACH
def test_an_episode_s_first_step_forgets_the_one_before(explorer: Explorer) -> None:
    """And no other environment's memory reaches it; the others keep theirs."""
    agent, first = acting(TD3, explorer), np.arange(MANY) % 2 == 0
    fresh = core.init_memory(agent, MANY, OBS, ACTION)
    _, past = act(agent, fresh, np.ones(MANY, bool), seed=7)
    one, other = act(agent, fresh, first), act(agent, past, first)
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(mine)[first], np.asarray(theirs)[first])
    if jax.tree.leaves(fresh) and not isinstance(explorer, Mixture):
        assert (np.asarray(one[0])[~first] != np.asarray(other[0])[~first]).any()


@EACH
def test_a_memory_has_a_row_for_each_environment_and_keeps_its_shape(explorer: Explorer) -> None:
    agent = acting(TD3, explorer)
    fresh = core.init_memory(agent, MANY, OBS, ACTION)
    _, later = act(agent, fresh, np.ones(MANY, bool))
    assert jax.tree.structure(fresh) == jax.tree.structure(later)
    for old, new in zip(jax.tree.leaves(fresh), jax.tree.leaves(later), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
        assert len(old) == MANY


# -- one after another ---------------------------------------------------------------------------


def test_then_hands_over_at_its_step_and_the_next_one_begins_anew() -> None:
    explorer = Then(OrnsteinUhlenbeck(), Then(GaussianNoise(0.3), SLOW, 40), 20)
    learner = Learner("Pendulum-v1", tiny(TD3, explorer, warmup=10), num_envs=2)
    acted = []
    while learner.step < 60:
        learner.loop.advance()
        acted.append(learner.loop.explorer)
    wanted = {0: Uniform(), 10: OrnsteinUhlenbeck(), 20: GaussianNoise(0.3), 40: SLOW}
    for number, who in enumerate(acted):
        begun = max(step for step in wanted if step <= 2 * number)
        assert who == wanted[begun]


def test_a_mixture_hands_over_inside() -> None:
    inside = Mixture((Then(Uniform(), GaussianNoise(), 30), SLOW))
    assert inside.at(29) == Mixture((Uniform(), SLOW))
    assert inside.at(30) == Mixture((GaussianNoise(), SLOW))
    still = Mixture((GaussianNoise(), SLOW))
    assert still.at(30) is still


@pytest.mark.parametrize(
    "explorer", [Then(Uniform(), ADAC, 5), Mixture((Uniform(), ADAC))], ids=["then", "mixture"]
)
def test_what_is_learned_is_the_last_one_s(explorer: Explorer) -> None:
    """Streams, critics, loss and optimisers: bit for bit those of the last explorer alone."""
    agent, alone = tiny(TD3, explorer, MadeUp()), tiny(TD3, ADAC, MadeUp())
    assert agent.streams == alone.streams == 2
    assert_same_bits(step(agent, start(agent), batch()), step(alone, start(alone), batch()))
    compiled = jax.jit(diagnose, static_argnums=0)
    one, other = (
        compiled(a, start(a), batch().obs, batch(), jax.random.key(0)) for a in (agent, alone)
    )
    assert_same_bits(one, other)


# -- one for each episode ------------------------------------------------------------------------


def test_a_mixture_keeps_to_its_draw_for_an_episode_and_draws_evenly() -> None:
    """Uniform actions, π itself, and π with the noise at 1: each shows whose action it is."""
    count = 3000
    mixture = Mixture((OwnPolicy(), GaussianNoise(100.0), Uniform()))
    agent = tiny(TD3, mixture)
    state, obs = start(agent), jnp.ones((count, OBS))
    memory = core.init_memory(agent, count, OBS, ACTION)
    whose = []
    for number in range(6):
        first = jnp.full(count, number in (0, 4))
        key = jax.random.key(number)
        action, memory = _act(agent, state, obs, memory, first, key)
        pi = core.greedy(agent, state, obs)
        at_bound = (jnp.abs(action) == 1.0).all(1)
        own = (jnp.abs(action - pi) < 1e-6).all(1)
        whose.append(np.where(own, 0, np.where(at_bound, 1, 2)))
    seen = np.array(whose)
    steady = (seen[:4] == np.asarray(seen[0])).mean()
    assert steady > 0.98  # but for noise of 100 that stays within the bounds
    shares = np.bincount(seen[0], minlength=3) / count
    np.testing.assert_allclose(shares, 1 / 3, atol=0.04)
    np.testing.assert_allclose((seen[0] == seen[5]).mean(), 1 / 3, atol=0.05)  # drawn anew


def test_what_a_composition_needs_is_what_any_part_needs() -> None:
    needy = Mixture((SLOW, GaussianNoise()))
    assert needy.uses_latent
    assert not needy.trained
    assert not needy.disentangled
    assert not Mixture((GaussianNoise(), Uniform())).uses_latent
    with pytest.raises(ValueError, match="Mixture needs a latent"):
        Agent(explorer=needy, networks=dataclasses.replace(Agent().networks, latent=0))


@pytest.mark.parametrize(
    "made",
    [
        lambda: Mixture(()),
        lambda: Mixture(("gaussian-noise",)),  # type: ignore[arg-type]
        lambda: Then(Uniform(), None, 5),  # type: ignore[arg-type]
        lambda: Then(Uniform(), Uniform(), -1),
    ],
)
def test_a_composition_of_something_else_is_refused(made: Any) -> None:
    with pytest.raises(ValueError, match=r"explorer|Explorer|after"):
        made()
