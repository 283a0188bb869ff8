"""Every explorer, bonus, base and critic takes a step beside the others, and loads from JSON."""

import json
from itertools import cycle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import BASES, TINY, batch, memory_of, observations

from adac.core import agent as core
from adac.core import presets, settings
from adac.core.agent import Agent
from adac.core.critics import Critic, Quantiles, Scalar
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
from adac.core.intrinsic import Counts, Ex2, Icm, InformationGain, Intrinsic, Rnd, Sum, Vime
from adac.core.soft_value import SoftValue
from adac.errors import UserError

SMALL: dict[str, Any] = {"model_hidden": (8,), "bonus_after": 0}
EXPLORERS: tuple[Explorer, ...] = (
    Uniform(), OwnPolicy(), GaussianNoise(), OrnsteinUhlenbeck(), ColouredNoise(), RepeatedNoise(),
    StateDependentNoise(), ParameterNoise(), Optimistic(), GoalExploration(episodes=4), Mulex(),
    MaxInfo(), Analogous(particles=4), Analogous(particles=4, bonus_weight="learned"),
    Analogous(particles=4, behaviour_entropy=-1.0, optimisers="two"),
    Analogous(particles=4, co_training=False, bonus_weight="learned"),
    Mixture((ColouredNoise(), Analogous(particles=4))), Then(Uniform(), ParameterNoise(), 3),
    Interleaved(Analogous(particles=4, co_training=False)),
)  # fmt: skip
BONUSES: tuple[Intrinsic | None, ...] = (
    None, Vime(**SMALL), Rnd(**SMALL), InformationGain(**SMALL), Counts(bonus_after=0),
    Ex2(**SMALL), Icm(**SMALL), Sum(bonuses=(Counts(bonus_after=0), Rnd(**SMALL))),
)  # fmt: skip
CRITICS: tuple[Critic, ...] = (
    Scalar(), Quantiles(quantiles=4, drop=1), SoftValue(value_samples=4), Scalar(batch_renorm=True)
)  # fmt: skip


def cells() -> list[Agent]:
    """Every explorer on every base, where bonuses and critics take turns; then every bonus with
    every critic, under the three kinds of explorer that treat a bonus differently."""
    found, bonuses, critics = [], cycle(BONUSES), cycle(CRITICS)

    def add(base: str, explorer: Explorer, bonus: Intrinsic | None, critic: Critic) -> None:
        if explorer.weighs and not (bonus and bonus.promises):
            bonus = InformationGain(**SMALL)
        found.append(Agent(BASES[base], explorer, bonus, TINY, critic, batch_size=8))

    for explorer in EXPLORERS:
        for base in BASES:
            add(base, explorer, next(bonuses), next(critics))
    for number, bonus in enumerate(BONUSES):
        for critic in CRITICS:
            explorer = (GaussianNoise(), Analogous(particles=4), Mulex())[number % 3]
            add("td3", explorer, bonus, critic)
    return found


def lived(agent: Agent, updates: tuple[bool, ...] = (False, True)) -> Any:
    """Act, remember, collect, learn: an agent's whole step, in one program."""
    obs, data = observations(2), batch()
    explorer = agent.explorer.at(10)

    def step(key: jax.Array) -> Any:
        keys = jax.random.split(key, 2 + len(updates))
        state = begun = core.init(agent, 3, 2, keys[0])
        memory = explorer.init_memory(2, core.Sizes(3, 2, TINY.latent))
        action, memory = core.act(agent, state, obs, memory, jnp.ones(2, bool), keys[1])
        if agent.intrinsic is not None:
            raw = data.obs, data.action, data.next_obs
            state = state._replace(intrinsic=agent.intrinsic.collect(state.intrinsic, *raw)[0])
        for k, improve in zip(keys[2:], updates, strict=True):
            state, metrics = core.update(agent, state, data, k, jnp.float32(0.5), improve=improve)
        return action, begun, state, metrics

    return step


@pytest.mark.parametrize("agent", cells()[::14], ids=lambda a: type(a.explorer).__name__)
def test_a_step_is_finite_and_in_range(agent: Agent) -> None:
    # An update that improves the policies does all that another one does; compiling takes longest.
    action, _, state, metrics = jax.jit(lived(agent, (True,)))(jax.random.key(0))
    assert np.all(np.abs(action) <= 1.0)
    for leaf in jax.tree.leaves((state, metrics)):
        assert np.isfinite(leaf).all()


def test_every_cell_takes_a_step() -> None:
    """Its shapes, that is: nothing is compiled, so that all of them are done in seconds."""
    for agent in cells():
        action, before, state, metrics = jax.eval_shape(lived(agent), jax.random.key(0))
        assert action.shape == (2, 2)
        assert jax.tree.map(lambda leaf: leaf.shape, state) == jax.tree.map(
            lambda leaf: leaf.shape, before
        )
        assert all(value.shape == () for value in metrics.values()), agent


def test_every_cell_loads_from_a_config() -> None:
    for agent in cells():
        text = json.dumps(settings.to_json(agent))
        assert settings.from_json(json.loads(text)) == agent


def test_a_memory_has_a_row_for_each_environment() -> None:
    for explorer in EXPLORERS:
        for leaf in jax.tree.leaves(memory_of(explorer, 5)):
            assert leaf.shape[0] == 5, type(explorer).__name__


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("pink", ColouredNoise), ("repeated", RepeatedNoise), ("gsde", StateDependentNoise),
        ("parameter-noise", ParameterNoise), ("oac", Optimistic), ("gep-pg", GoalExploration),
        ("mulex", Mulex), ("maxinfo", MaxInfo),
    ],
)  # fmt: skip
def test_an_explorer_is_chosen_by_what_one_calls_it(typed: str, kind: type[Explorer]) -> None:
    agent = settings.override(presets.make("td3"), {"explorer": typed, "intrinsic": "disagreement"})
    assert isinstance(agent.explorer, kind)
    assert isinstance(agent.intrinsic, InformationGain)


def test_bonuses_are_added_by_a_plus() -> None:
    agent = settings.override(presets.make("td3"), {"intrinsic": "counts+rnd"})
    assert agent.intrinsic == Sum(bonuses=(Counts(), Rnd()))


def test_what_can_not_work_is_said_in_a_sentence() -> None:
    agent = presets.make("td3")
    with pytest.raises(UserError, match="set intrinsic to information-gain"):
        settings.override(agent, {"intrinsic": "counts", "explorer": "max-info"})
    with pytest.raises(UserError, match="counts\\+rnd"):
        settings.override(agent, {"intrinsic": "sum"})
    with pytest.raises(UserError, match="set goals to final or mean"):
        memory_of(GoalExploration(goals="half-cheetah"), 1)
    with pytest.raises(UserError, match="batch_renorm"):
        settings.override(agent, {"critic": "soft-q", "batch_renorm": "true"})
