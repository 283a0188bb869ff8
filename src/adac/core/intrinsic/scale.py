"""What a novelty is divided by: a running median of it, so that a typical transition is worth η.

The scale follows the novelty down as the model learns: a bonus never dies out, it only moves on.
"""

import jax.numpy as jnp
from jax import Array

WINDOW = 10  # the scale is the mean of this many medians
TINY = 1e-30  # a scale below this counts as none


def none_yet() -> Array:
    """[WINDOW], the median novelty of each of the last minibatches; 0: none yet."""
    return jnp.zeros(WINDOW)


def remember(medians: Array, novelty: Array) -> Array:
    return jnp.append(medians[1:], median(novelty))


def scale(medians: Array) -> Array:
    """The mean of the medians that there are."""
    known = jnp.sum((medians > 0.0).astype(medians.dtype))
    return jnp.sum(medians) / jnp.maximum(known, 1.0)


def relative(novelty: Array, medians: Array, clip: float) -> Array:
    """The novelty over the scale, at most `clip`."""
    return jnp.minimum(novelty / jnp.maximum(scale(medians), TINY), clip)


def median(values: Array) -> Array:
    """The lower median of [B] by counting: XLA's sort is slow on a CPU."""
    below = jnp.sum(values[None, :] <= values[:, None], axis=1)
    return jnp.min(jnp.where(below >= (values.shape[0] + 1) // 2, values, jnp.inf))
