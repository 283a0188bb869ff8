"""Explorers without a loss: the base's own policy, noise on π, and uniformly random actions."""

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers.interface import Explorer, Sizes, View, clip
from adac.core.fields import NOISE, setting
from adac.core.validation import at_least


@final
@dataclass(frozen=True)
class OwnPolicy(Explorer):
    """The base's own policy: what SAC explores with."""

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        return view.sample(obs, key), memory


@final
@dataclass(frozen=True)
class Uniform(Explorer):
    """Uniformly random actions: the warm-up."""

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        shape = (obs.shape[0], view.action_dim)
        return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0), memory


@final
@dataclass(frozen=True)
class GaussianNoise(Explorer):
    """π plus N(0, σ²), independent at every step."""

    noise: float = setting(0.1, "σ of the noise on the action, whose range is [-1, 1].", NOISE)

    def __post_init__(self) -> None:
        at_least(self, 0.0, "noise")

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        action = view.action(obs)
        return clip(action + self.noise * jax.random.normal(key, action.shape)), memory


@final
@dataclass(frozen=True)
class OrnsteinUhlenbeck(Explorer):
    """π plus x, where x_{t+1} = x_t − θ x_t + σ N(0, I), from 0 at the start of an episode."""

    noise: float = setting(0.2, "σ of the noise that enters at each step.", NOISE)
    theta: float = setting(0.15, "θ, how fast the noise returns to 0.")

    def __post_init__(self) -> None:
        at_least(self, 0.0, "noise", "theta")

    def init_memory(self, num_envs: int, sizes: Sizes) -> Array:
        return jnp.zeros((num_envs, sizes.action))

    def act(
        self, view: View, obs: Array, memory: Array, first: Array, key: Array
    ) -> tuple[Array, Array]:
        action = view.action(obs)
        past = jnp.where(first[:, None], 0.0, memory)
        x = (1.0 - self.theta) * past + self.noise * jax.random.normal(key, past.shape)
        return clip(action + x), x
