"""What a novelty is divided by, so that a typical collected step is worth η: for every bonus alike.

The scale is the running geometric mean of the novelty of transitions *as they are collected*. Over
replay minibatches it would measure what the model has long learned, which falls by orders of
magnitude while the memory fills, and the bonus of a new step would grow without bound. Geometric,
because a novelty falls by factors: an arithmetic mean lags behind, and one outlier carries it off.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

TINY = 1e-30  # a novelty below this counts as this much
FAR = 5.0  # nats: no single novelty moves the scale as if it were further off than this


class Scale(NamedTuple):
    seen: Array  # transitions collected so far
    log: Array  # the running mean of log novelty


def none_yet() -> Scale:
    return Scale(jnp.zeros(()), jnp.zeros(()))


def observe(scale: Scale, novelty: Array, memory: float) -> Scale:
    """With the novelty [N] of transitions just collected; the last `memory` or so count."""
    count = novelty.shape[0]
    seen = scale.seen + count
    logs = jnp.log(jnp.maximum(novelty, TINY))
    now = jnp.where(scale.seen > 0, scale.log, jnp.mean(logs))
    rate = jnp.minimum(count / jnp.minimum(seen, memory), 1.0)
    return Scale(seen, now + rate * jnp.mean(jnp.clip(logs - now, -FAR, FAR)))


def value(scale: Scale) -> Array:
    return jnp.exp(scale.log)


def relative(novelty: Array, scale: Scale, clip: float) -> Array:
    """The novelty over the scale, at most `clip`."""
    return jnp.minimum(novelty / jnp.maximum(value(scale), TINY), clip)
