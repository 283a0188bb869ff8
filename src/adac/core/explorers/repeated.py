"""Repeated noise: one draw held for a random number of steps (FlashSAC 2026).

ε ~ N(0, I) is held for k steps, P(k) ∝ k^−2 for 1 ≤ k ≤ 16. The mean run has
Σ k^−1 / Σ k^−2 = 2.13 steps, and long runs are rare but always possible.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from adac.core.explorers.processes import Process, ProcessNoise
from adac.core.fields import setting
from adac.core.validation import at_least, counts

LONGEST = 16
POWER = 2.0


class Held(NamedTuple):
    x: Array  # [N, d]
    left: Array  # [N], steps for which it is still held


@final
@dataclass(frozen=True)
class Repeated(Process):
    """A normal draw, held for k steps with P(k) ∝ k^−power, k ≤ longest."""

    longest: int = LONGEST
    power: float = POWER

    def init(self, count: int, dims: int) -> Held:
        return Held(jnp.zeros((count, dims)), jnp.zeros(count, jnp.int32))

    def step(self, memory: Held, dims: int, first: Array, key: Array) -> tuple[Array, Held]:
        noise_key, length_key = jax.random.split(key)
        log_chance = -self.power * np.log(np.arange(1, self.longest + 1))
        length = 1 + jax.random.categorical(length_key, jnp.asarray(log_chance), shape=first.shape)
        renew = first | (memory.left == 0)
        fresh = jax.random.normal(noise_key, memory.x.shape)
        x = jnp.where(renew[:, None], fresh, memory.x)
        left = jnp.where(renew, length.astype(jnp.int32), memory.left) - 1
        return x, Held(x, left)


@final
@dataclass(frozen=True)
class RepeatedNoise(ProcessNoise):
    """π plus a normal draw that is held for k steps, P(k) ∝ k^−power."""

    longest: int = setting(LONGEST, "The most steps for which a draw is held.")
    power: float = setting(POWER, "How fast the chance of a run of k steps falls: k^−power.")

    aliases: ClassVar[tuple[str, ...]] = ("repeated",)

    def __post_init__(self) -> None:
        super().__post_init__()
        counts(self, 1, "longest")
        at_least(self, 0.0, "power")

    @property
    def process(self) -> Repeated:
        return Repeated(self.longest, self.power)
