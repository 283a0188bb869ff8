"""A positive number that is learned through its logarithm: MaxInfoRL's λ, and ADAC's β."""

from typing import NamedTuple

import jax.numpy as jnp
import optax
from jax import Array

BOUND = 10.0  # of the logarithm: where the wanted value is out of reach, it stays finite


class Multiplier(NamedTuple):
    log: Array
    opt: optax.OptState

    @property
    def value(self) -> Array:
        return jnp.exp(self.log)


def begin(value: float) -> Multiplier:
    log = jnp.log(jnp.asarray(value, jnp.float32))
    return Multiplier(log, optax.adam(1.0).init(log))


def descend(multiplier: Multiplier, gradient: Array, learning_rate: float) -> Multiplier:
    """One Adam step of the logarithm against its gradient."""
    step, opt = optax.adam(learning_rate).update(gradient, multiplier.opt)
    return Multiplier(jnp.clip(optax.apply_updates(multiplier.log, step), -BOUND, BOUND), opt)
