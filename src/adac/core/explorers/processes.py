"""Noise in time: sequences that are N(0, 1) at every step, whatever they are from step to step.

One and the same process disturbs an action (`ProcessNoise`) or ADAC's ξ (`Analogous`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers.interface import Explorer, Sizes, View
from adac.core.fields import NOISE, setting
from adac.core.validation import at_least


class Process(ABC):
    """x_t [N, d], whose past is a memory with a leading axis [N]."""

    @abstractmethod
    def init(self, count: int, dims: int) -> Any:
        """The memory before the first step."""

    @abstractmethod
    def step(self, memory: Any, dims: int, first: Array, key: Array) -> tuple[Array, Any]:
        """x_t and the memory after it; where `first` [N] is true, a new sequence begins."""


@dataclass(frozen=True)
class Correlated(Process):
    """x_t = ρ x_{t−1} + √(1−ρ²) ε_t; of several ρ, each sequence draws one."""

    rhos: tuple[float, ...]

    def init(self, count: int, dims: int) -> Any:
        """x, and the sequence's ρ in a last column."""
        return jnp.zeros((count, dims + 1)) if any(self.rhos) else ()

    def step(self, memory: Any, dims: int, first: Array, key: Array) -> tuple[Array, Any]:
        count = first.shape[0]
        fresh = jax.random.normal(key, (count, dims))
        if not any(self.rhos):
            return fresh, memory
        drawn = jax.random.choice(jax.random.fold_in(key, 1), jnp.array(self.rhos), (count, 1))
        rho = jnp.where(first[:, None], drawn, memory[:, -1:])
        moved = rho * memory[:, :-1] + jnp.sqrt(1.0 - rho**2) * fresh
        x = jnp.where(first[:, None], fresh, moved)
        return x, jnp.concatenate([x, rho], axis=1)


@dataclass(frozen=True)
class ProcessNoise(Explorer):
    """π under the noise of a process: tanh(m + σ(s) x) on a Gaussian base, else π + σ x."""

    noise: float = setting(
        0.1, "σ of the noise on the action; a Gaussian base has its own σ(s).", NOISE
    )

    def __post_init__(self) -> None:
        at_least(self, 0.0, "noise")

    @property
    @abstractmethod
    def process(self) -> Process:
        """What disturbs the action."""

    def init_memory(self, num_envs: int, sizes: Sizes) -> Any:
        return self.process.init(num_envs, sizes.action)

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        x, memory = self.process.step(memory, view.action_dim, first, key)
        return view.disturbed(obs, x, self.noise), memory
