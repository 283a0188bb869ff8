"""The flat state that runs is the state that `update` describes, leaf for leaf."""

import re
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from adac.core import agent as core
from adac.core import presets
from adac.core.agent import Agent
from adac.core.explorers import Analogous, Explorer, GaussianNoise, Policy, Sizes, View
from adac.training.compiled import (
    SMALL_PRODUCTS,
    Program,
    RunningAgent,
    compile_agent,
    known_options,
)
from helpers import ACTION, BATCH, OBS, TD3, MadeUp, assert_same_bits, row_spec, tiny, unpack

AGENTS: dict[str, Agent] = {
    "td3": tiny(TD3, GaussianNoise()),
    "adac with a bonus": tiny(TD3, Analogous(particles=4), MadeUp()),
    "separate, normalised": tiny(
        TD3, Analogous(particles=4, co_training=False), normalise_obs=True
    ),
}
EACH = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)


def rows(seed: int) -> Any:
    shape = (BATCH, row_spec().width)
    return np.random.default_rng(seed).uniform(0.0, 1.0, shape).astype(np.float32)


def begin(agent: Agent) -> RunningAgent:
    running = RunningAgent(compile_agent(agent, OBS, ACTION), jax.random.key(0))
    if agent.normalise_obs:
        running.observe(rows(9)[:, :OBS])
    return running


@EACH
def test_an_update_of_the_critics_moves_only_what_is_handed_to_it(agent: Agent) -> None:
    """Whatever else it moved would be lost: a `RunningAgent` takes back the moving part alone."""
    running = begin(agent)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), running.state)
    key, zero = jax.random.key(1), jax.ShapeDtypeStruct((), np.float32)

    def update(state: Any, batch: Any, key: Any, progress: Any) -> Any:
        return core.update(agent, state, batch, key, progress, improve=False)[0]

    traced = jax.make_jaxpr(update)(shapes, unpack(rows(0)), key, zero).jaxpr
    pairs = zip(traced.outvars, traced.invars[: len(traced.outvars)], strict=True)
    moved = {place for place, (new, old) in enumerate(pairs) if new is not old}
    assert moved <= set(running.program.moving[False].leaves)
    assert moved  # and the critics do move


@EACH
def test_flat_updates_are_the_updates(agent: Agent) -> None:
    running, state = begin(agent), begin(agent).state
    update = jax.jit(core.update, static_argnums=0, static_argnames="improve")
    for number in range(1, 5):
        improve = number % 2 == 0
        running.update(
            rows(number), jax.random.key(1), np.int32(number), np.float32(0.5), improve=improve
        )
        key = jax.random.fold_in(jax.random.key(1), number)
        batch = unpack(rows(number))
        state, _ = update(agent, state, batch, key, np.float32(0.5), improve=improve)
    for mine, theirs in zip(jax.tree.leaves(running.state), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_a_full_size_state_goes_over_in_few_arrays_and_comes_back() -> None:
    """Large leaves alone, small ones side by side: both kinds, in the order of the state."""
    running = RunningAgent(compile_agent(presets.make("td3"), 11, 3), jax.random.key(0))
    state = running.state
    assert len(running.arrays) <= 20 < 80 < len(jax.tree.leaves(state))
    assert_same_bits(state, core.init(presets.make("td3"), 11, 3, jax.random.key(0)))
    running.state = state
    assert_same_bits(running.state, state)


@EACH
def test_parts_read_what_their_names_say(agent: Agent) -> None:
    running = begin(agent)
    state, program = running.state, running.program
    wanted = {
        "state": state,
        "behaviour": core.behaviour_policy(agent, state),
        "target": core.target_policy(agent, state),
        "online": Policy(state.actor.params, state.statistics),
        "intrinsic": state.intrinsic,
        "statistics": state.statistics,
    }
    assert program.parts.keys() == wanted.keys()
    for name, part in program.parts.items():
        assert_same_bits(part.build(part.of(running.arrays)), wanted[name])
    for improve in (False, True):
        places = program.moving[improve].places + program.still[improve].places
        assert sorted(places) == list(range(len(running.arrays)))


def test_a_compiler_that_does_not_know_our_options_is_not_given_them() -> None:
    assert known_options(SMALL_PRODUCTS) == SMALL_PRODUCTS  # of the locked version
    assert known_options(SMALL_PRODUCTS | {"xla_cpu_no_such_option": True}) is None


LOST = {
    "the policy between its improvements": (False, ".actor.params"),
    "the targets between improvements": (False, ".critic.target"),
    "the explorer's own numbers between improvements": (False, ".explorer"),
    "the statistics, which `observe` moves": (True, ".statistics"),
}


@pytest.mark.parametrize(("improve", "where"), LOST.values(), ids=LOST)
def test_an_update_that_moves_what_is_believed_to_stand_still_fails_while_it_is_traced(
    improve: bool, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its change would be lost without a word."""
    agent = tiny(TD3, Counting(), normalise_obs=True)
    honest = core.update

    def careless(*arguments: Any, **options: Any) -> Any:
        state, metrics = honest(*arguments, **options)
        owner, _, part = where[1:].partition(".")
        net = getattr(state, owner)
        changed = jax.tree.map(lambda x: x + 0, getattr(net, part) if part else net)
        changed = net._replace(**{part: changed}) if part else changed
        return state._replace(**{owner: changed}), metrics

    running = RunningAgent(Program(agent, OBS, ACTION), jax.random.key(0))
    before = [np.asarray(array) for array in running.arrays]
    monkeypatch.setattr(core, "update", careless)
    with pytest.raises(AssertionError, match=rf"improve={improve}\) moves {re.escape(where)}"):
        running.update(rows(0), jax.random.key(1), np.int32(1), np.float32(0.5), improve=improve)
    assert_same_bits(running.arrays, before)


@final
@dataclass(frozen=True)
class Counting(Explorer):
    """Has a number of its own."""

    def init_learned(self, sizes: Sizes, key: jax.Array) -> jax.Array:
        return jnp.zeros(2)

    def act(self, view: View, obs: Any, memory: Any, first: Any, key: Any) -> tuple[Any, Any]:
        return view.action(obs), memory
