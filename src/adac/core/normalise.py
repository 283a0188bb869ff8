"""Running mean and variance of observations, as pure functions over one small value."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

CLIP = 10.0  # a normalised entry is cut here, as is usual for rarely varying sensors


class Statistics(NamedTuple):
    seen: Array  # how many observations
    mean: Array  # [o]
    squares: Array  # [o], the sum of squared deviations


def empty(obs_dim: int) -> Statistics:
    return Statistics(jnp.zeros(()), jnp.zeros(obs_dim), jnp.zeros(obs_dim))


def observe(statistics: Statistics, obs: Array) -> Statistics:
    """Merge a block of observations [N, o] (Chan's parallel form of Welford's update)."""
    seen, mean, squares = statistics
    new = jnp.asarray(obs.shape[0], jnp.float32)
    total = seen + new
    delta = jnp.mean(obs, axis=0) - mean
    block = jnp.sum((obs - jnp.mean(obs, axis=0)) ** 2, axis=0)
    return Statistics(
        total, mean + delta * new / total, squares + block + delta**2 * seen * new / total
    )


def std(statistics: Statistics) -> Array:
    """1 for an entry that does not vary."""
    variance = statistics.squares / jnp.maximum(statistics.seen, 1.0)
    return jnp.sqrt(jnp.where(variance > 1e-8, variance, 1.0))


def normalise(statistics: Statistics | tuple[()], obs: Array) -> Array:
    """(obs − mean) / std, clipped; the identity without statistics."""
    if not isinstance(statistics, Statistics):
        return obs
    return jnp.clip((obs - statistics.mean) / std(statistics), -CLIP, CLIP)


def restore(statistics: Statistics, normalised: Array) -> Array:
    """The inverse of `normalise`, up to its clipping."""
    return statistics.mean + normalised * std(statistics)
