"""Small views and agents for the explorers' tests."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.core import agent as core
from adac.core.agent import Agent, AgentState
from adac.core.bases import SAC, Base, Deterministic
from adac.core.batch import Batch
from adac.core.explorers import Explorer, Sizes, View
from adac.core.networks import Networks

OBS, ACTION, LATENT = 3, 2, 4
TINY = Networks(actor_hidden=(16,), critic_hidden=(16,), latent=LATENT, latent_hidden=(16,))
BASES: dict[str, Base] = {
    "ddpg": Deterministic(critics=1, policy_delay=1, target_noise=0.0),
    "td3": Deterministic(),
    "sac": SAC(),
}


def tiny(explorer: Explorer, base: str = "td3", **parts: Any) -> Agent:
    return Agent(BASES[base], explorer, networks=TINY, batch_size=8, **parts)


def begin(agent: Agent, seed: int = 0) -> AgentState:
    return core.init(agent, OBS, ACTION, jax.random.key(seed))


def view_of(agent: Agent, state: AgentState) -> View:
    return core.view(agent, core.behaviour_policy(agent, state))


def observations(count: int, seed: int = 0) -> Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(count, OBS)), jnp.float32)


def batch(seed: int = 0, count: int = 8) -> Batch:
    draw = np.random.default_rng(seed)
    columns = [
        draw.normal(size=(count, OBS)), draw.uniform(-1, 1, (count, ACTION)),
        draw.normal(size=count), np.abs(draw.normal(size=count)),
        (draw.random(count) > 0.3), draw.normal(size=(count, OBS)),
    ]  # fmt: skip
    return Batch(*(jnp.asarray(column, jnp.float32) for column in columns))


def memory_of(explorer: Explorer, count: int) -> Any:
    return explorer.init_memory(count, Sizes(OBS, ACTION, LATENT))


def follow(
    agent: Agent, state: AgentState, steps: int, *, envs: int = 1, seed: int = 0
) -> NDArray[Any]:
    """Actions [T, N, d] at one observation, in one long episode."""
    obs = jnp.ones((envs, OBS))

    def step(memory: Any, at: Array) -> tuple[Any, Array]:
        key = jax.random.fold_in(jax.random.key(seed), at)
        first = jnp.full(envs, at == 0)
        action, memory = core.act(agent, state, obs, memory, first, key)
        return memory, action

    _, actions = jax.lax.scan(step, memory_of(agent.explorer, envs), jnp.arange(steps))
    return np.asarray(actions)
