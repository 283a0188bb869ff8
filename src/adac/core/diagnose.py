"""What is logged of both policies while they learn."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.agent import Agent, AgentState, Metrics, act, greedy, init_memory
from adac.core.batch import Batch
from adac.core.explorers import Policy
from adac.core.intrinsic.gap import action_gap


def diagnose(
    agent: Agent, state: AgentState, obs: Array, recent: Batch, key: Array, *, samples: int = 16
) -> Metrics:
    """How far μ has drifted from π ("bias", Figure 3), how wide it is, and who is saturated.

    Saturation (|a| > 0.98) is how the literal algorithm collapses: it must never be silent. With
    an intrinsic reward, also how much more bonus μ's `recent` actions promise than π's.
    """
    mu_key, gap_key = jax.random.split(key)
    count = obs.shape[0]
    learned = replace(agent, explorer=agent.explorer.without_noise())
    repeated = jnp.repeat(obs, samples, axis=0)
    action_dim = recent.action.shape[-1]
    memory = init_memory(learned, count * samples, obs.shape[-1], action_dim)
    first = jnp.ones(count * samples, bool)
    mu, _ = act(learned, state, repeated, memory, first, mu_key)
    mu = mu.reshape(count, samples, action_dim)
    pi = _online_policy(agent, state, obs)
    metrics = {
        "bias": _distance(mu, pi),
        "spread": jnp.mean(jnp.std(mu, axis=1)),
        "saturation_pi": jnp.mean((jnp.abs(pi) > 0.98).astype(jnp.float32)),
        "saturation_mu": jnp.mean((jnp.abs(mu) > 0.98).astype(jnp.float32)),
    }
    if agent.intrinsic is None:
        return metrics
    greedy_action = _online_policy(agent, state, recent.obs)
    gap = action_gap(
        agent.intrinsic, state.intrinsic, recent.obs, recent.action, greedy_action, gap_key
    )
    return metrics | gap


def _distance(mu: Array, pi: Array) -> Array:
    """‖E μ − π‖, root mean square over the states, from samples [B, S, d] of μ.

    A mean of S samples is off by σ²/S even where there is no bias: that much is taken off.
    """
    apart = jnp.sum((jnp.mean(mu, axis=1) - pi) ** 2, axis=-1)
    floor = jnp.sum(jnp.var(mu, axis=1, ddof=1), axis=-1) / mu.shape[1]
    return jnp.sqrt(jnp.maximum(jnp.mean(apart - floor), 0.0))


def _online_policy(agent: Agent, state: AgentState, obs: Array) -> Array:
    return greedy(agent, Policy(state.actor.params, state.statistics), obs)
