"""Parameter noise: a policy with disturbed weights acts for a whole episode.

Plappert et al. 2018, "Parameter Space Noise for Exploration": θ̃ = θ + σ N(0, I), drawn for each
episode, and σ such that the two policies are a given distance apart:

    d(π, π̃) = √(E_s mean_i (π_i(s) − π̃_i(s))²),   σ ← α σ if d ≤ δ, else σ / α

with α = 1.01 and δ = 0.2, measured on a minibatch at each improvement of the policy. Theirs has
layer normalisation before each rectifier; here the networks are as they are.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers.interface import Explorer, Sizes, View
from adac.core.explorers.noise import OwnPolicy
from adac.core.fields import NOISE, setting
from adac.core.networks import split_trained
from adac.core.validation import above

FASTER = 1.01  # α


@final
@dataclass(frozen=True)
class ParameterNoise(Explorer):
    """π with disturbed weights for an episode, σ adapted to a distance between the policies."""

    policy_distance: float = setting(
        0.2, "δ, the wanted distance of the disturbed policy from π.", NOISE
    )
    initial_weight_noise: float = setting(0.1, "σ of the noise on each weight at the start.")

    aliases: ClassVar[tuple[str, ...]] = ("parameter-noise", "param-noise")
    adapts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        above(self, 0.0, "policy_distance", "initial_weight_noise")

    def init_learned(self, sizes: Sizes, key: Array) -> Array:
        """log σ."""
        return jnp.log(jnp.float32(self.initial_weight_noise))

    def init_memory(self, num_envs: int, sizes: Sizes) -> Array:
        """The seed of each episode's noise: a number instead of a network."""
        return jnp.zeros(num_envs, jnp.uint32)

    def act(
        self, view: View, obs: Array, memory: Array, first: Array, key: Array
    ) -> tuple[Array, Array]:
        seed = jnp.where(first, jax.random.bits(key, first.shape), memory)
        return jax.vmap(lambda s, o: disturbed(view, s).action(o))(seed, obs), seed

    def without_noise(self) -> Explorer:
        return OwnPolicy()

    def measure(self, view: View, obs: Array, key: Array) -> dict[str, Array]:
        other = disturbed(view, jax.random.bits(key)).action(obs)
        distance = jnp.sqrt(jnp.mean((view.action(obs) - other) ** 2))
        return {"policy_distance": distance, "weight_noise": jnp.exp(view.learned)}

    def improve_learned(self, learned: Array, metrics: dict[str, Array]) -> Array:
        step = jnp.log(FASTER)
        near = metrics["policy_distance"] <= self.policy_distance
        return learned + jnp.where(near, step, -step)


def disturbed(view: View, seed: Array) -> View:
    """The view of a policy whose trained weights have noise of σ on them."""
    trained, still = split_trained(view.policy.actor)
    leaves, tree = jax.tree.flatten(trained)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    sigma = jnp.exp(view.learned)
    noisy: list[Any] = [
        leaf + sigma * jax.random.normal(key, leaf.shape)
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    actor = eqx.combine(jax.tree.unflatten(tree, noisy), still)
    return view._replace(policy=view.policy._replace(actor=actor))
