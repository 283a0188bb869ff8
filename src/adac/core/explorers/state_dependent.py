"""gSDE: noise that is a function of the state, so that the same state brings the same noise.

Raffin, Kober and Stulp 2021, "Smooth Exploration for Robotic Reinforcement Learning":

    a = tanh(u(s) + θᵀ z(s)),   θ ~ N(0, σ²) [features × actions], redrawn every n steps

with z the policy network's last hidden layer, and σ = e^−3 at the start in their SAC. There σ is
learned through log π; here it is fixed, because the base's own policy does not know of it. Drawn
anew at an episode's start, too.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers.interface import Explorer, Sizes, View
from adac.core.fields import NOISE, setting
from adac.core.validation import at_least, counts


class Drawn(NamedTuple):
    seed: Array  # [N], of θ: a number instead of a matrix
    left: Array  # [N], steps for which it stays


def none_drawn(num_envs: int) -> Drawn:
    return Drawn(jnp.zeros(num_envs, jnp.uint32), jnp.zeros(num_envs, jnp.int32))


@final
@dataclass(frozen=True)
class StateDependentNoise(Explorer):
    """gSDE: θᵀ z(s) on the action before the squash, θ redrawn every `redraw` steps."""

    weight_noise: float = setting(0.05, "σ of each entry of θ; e^−3 as in the original.", NOISE)
    redraw: int = setting(64, "Steps n for which θ stays; an episode begins with a new one.")

    aliases: ClassVar[tuple[str, ...]] = ("gsde",)

    def __post_init__(self) -> None:
        at_least(self, 0.0, "weight_noise")
        counts(self, 1, "redraw")

    def init_memory(self, num_envs: int, sizes: Sizes) -> Drawn:
        return none_drawn(num_envs)

    def act(
        self, view: View, obs: Array, memory: Drawn, first: Array, key: Array
    ) -> tuple[Array, Drawn]:
        renew = first | (memory.left == 0)
        seed = jnp.where(renew, jax.random.bits(key, first.shape), memory.seed)
        left = jnp.where(renew, self.redraw, memory.left) - 1
        z = view.features(obs)
        noise = jax.vmap(lambda s, f: f @ theta(s, (f.shape[-1], view.action_dim)))(seed, z)
        action = jnp.tanh(view.location(obs) + self.weight_noise * noise)
        return action, Drawn(seed, left)


def theta(seed: Array, shape: tuple[int, int]) -> Array:
    return jax.random.normal(jax.random.key(seed), shape)
