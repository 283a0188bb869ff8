"""The jitted functions of one agent on one task size, compiled once and shared."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from adac import agent as core
from adac.agent import Agent, AgentState, Metrics, Net
from adac.normalise import Statistics, observe
from adac.replay import unpack, width


class Steps(NamedTuple):
    """Keys are folded from a run key and a step number inside, so a run has no random state."""

    init: Callable[[Array], AgentState]  # (key)
    act: Callable[..., tuple[Array, Any]]  # (weights, obs, memory, first, key, step)
    random: Callable[..., Array]  # (count, key, step): a uniform action, before learning
    greedy: Callable[..., Array]  # (weights, obs)
    update: Callable[..., tuple[AgentState, Metrics]]  # (state, rows, key, count, progress)
    bonus: Callable[..., Array]  # (intrinsic, obs, action, next_obs)
    observe: Callable[..., Statistics]
    diagnose: Callable[..., Metrics]  # (state, rows, recent rows, key, step)


class Weights(NamedTuple):
    """Just what acting reads: calls with fewer buffers are quicker."""

    params: Any
    statistics: Any


def behaviour_weights(state: AgentState) -> Weights:
    return Weights(core.behaviour_net(state).params, state.statistics)


def target_weights(agent: Agent, state: AgentState) -> Weights:
    return Weights(core.target_weights(agent, state), state.statistics)


@lru_cache(maxsize=64)
def compile_steps(agent: Agent, obs_dim: int, action_dim: int) -> Steps:
    """Lazily compiled; the state given to `update` is donated."""

    def as_state(weights: Weights) -> AgentState:
        net = Net(weights.params, weights.params, ())
        return AgentState(net, (), Net((), (), ()), (), (), weights.statistics)

    def act(
        weights: Weights, obs: Array, memory: Any, first: Array, key: Array, step: Array
    ) -> tuple[Array, Any]:
        key = jax.random.fold_in(key, step)
        return core.act(agent, as_state(weights), obs, memory, first, key)

    def random(count: int, key: Array, step: Array) -> Array:
        shape = (count, action_dim)
        return jax.random.uniform(jax.random.fold_in(key, step), shape, minval=-1.0, maxval=1.0)

    def greedy(weights: Weights, obs: Array) -> Array:
        return core.greedy(agent, as_state(weights), obs)

    def update(
        state: AgentState, rows: Array, key: Array, count: Array, progress: Array, improve: bool
    ) -> tuple[AgentState, Metrics]:
        batch = unpack(rows, obs_dim, action_dim)
        key = jax.random.fold_in(key, count)
        return core.update(agent, state, batch, key, progress, improve=improve)

    def diagnose(state: AgentState, rows: Array, recent: Array, key: Array, step: Array) -> Metrics:
        obs = unpack(rows, obs_dim, action_dim).obs
        latest = unpack(recent, obs_dim, action_dim)
        return core.diagnose(agent, state, obs, latest, jax.random.fold_in(key, step))

    def bonus(state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        assert agent.intrinsic is not None
        return agent.intrinsic.bonus(state, obs, action, next_obs)

    return Steps(
        init=jax.jit(partial(core.init, agent, obs_dim, action_dim)),
        act=jax.jit(act),
        random=jax.jit(random, static_argnums=0),
        greedy=jax.jit(greedy),
        update=jax.jit(update, static_argnames="improve", donate_argnums=0),
        bonus=jax.jit(bonus),
        observe=jax.jit(observe),
        diagnose=jax.jit(diagnose),
    )


def metric_names(agent: Agent, obs_dim: int, action_dim: int) -> list[str]:
    """All that `update` and `diagnose` report, without running them."""
    steps = compile_steps(agent, obs_dim, action_dim)
    key = jax.random.key(0)
    state = jax.eval_shape(partial(core.init, agent, obs_dim, action_dim), key)
    rows = jnp.zeros((agent.batch_size, width(obs_dim, action_dim)))
    zero = jnp.zeros(())
    count = jnp.zeros((), jnp.int32)
    _, learned = jax.eval_shape(partial(steps.update, improve=True), state, rows, key, count, zero)
    seen = jax.eval_shape(steps.diagnose, state, rows, rows, key, count)
    return [*sorted(learned), *sorted(seen)]
