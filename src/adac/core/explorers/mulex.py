"""MULEX: one behaviour for each objective, each with its own critic, and one memory for all.

Beyer et al. 2019, "MULEX: Disentangling Exploitation from Exploration in Deep RL": the task and
every bonus are objectives of their own; each has a Q that bootstraps through its own policy, they
act in turn, and all learn from all transitions. Theirs are discrete, with a greedy policy for each
Q. Here behaviour i is f(s, ξ_i) with a fixed ξ_i, and f(s, 0) is the task's:

    y_i = r_i + γ Q̄_i(s', f̄(s', ξ_i)),   r_0 = r, r_i = bonus i
    f maximises  Σ_{i ≥ 1} E Q_i(s, f(s, ξ_i)),  beside the base's own objective for i = 0

The task's critic and the base's gradient never see a bonus. Each episode draws who acts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.critics import Value
from adac.core.explorers.interface import Explorer, Sizes, Streams, View, clip
from adac.core.fields import NOISE, setting
from adac.core.validation import at_least


@final
@dataclass(frozen=True)
class Mulex(Explorer):
    """A behaviour for the task and one for each bonus; each episode draws who acts."""

    noise: float = setting(0.1, "σ of the noise on every behaviour's action.", NOISE)
    behaviour_lr: float = setting(3e-4, "Learning rate of the bonuses' behaviours.")

    disentangled: ClassVar[bool] = True
    each_bonus: ClassVar[bool] = True
    uses_latent: ClassVar[bool] = True
    sees_values: ClassVar[bool] = True
    trained: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(self, 0.0, "noise", "behaviour_lr")

    @property
    def learning_rate(self) -> float:
        return self.behaviour_lr

    def streams(self, reward: Array, bonus: Array | None, learned: object) -> Streams:
        """The reward, and every bonus alone."""
        return (reward,) if bonus is None else (reward, *bonus)

    def continuations(self, view: View, next_obs: Array, bonuses: int) -> Sequence[Array]:
        each = codes(1 + bonuses, view.latent)[1:]
        return [view.output(next_obs, _for_all(xi, next_obs)) for xi in each]

    def init_memory(self, num_envs: int, sizes: Sizes) -> Array:
        """Who acts in this episode."""
        return jnp.zeros(num_envs, jnp.int32)

    def act(
        self, view: View, obs: Array, memory: Array, first: Array, key: Array
    ) -> tuple[Array, Array]:
        draw_key, noise_key = jax.random.split(key)
        each = codes(len(view.policy.critics), view.latent)
        drawn = jax.random.randint(draw_key, first.shape, 0, len(each))
        who = jnp.where(first, drawn, memory)
        action = view.action(obs, each[who])
        return clip(action + self.noise * jax.random.normal(noise_key, action.shape)), who

    def without_noise(self) -> "Mulex":
        return Mulex(noise=0.0, behaviour_lr=self.behaviour_lr)

    def loss(
        self, view: View, q: Value, obs: Array, progress: Array, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        each = codes(len(view.policy.critics), view.latent)
        total = jnp.zeros(())
        for stream, xi in enumerate(each[1:], 1):
            value = view.values(obs, stream)[0](view.action(obs, _for_all(xi, obs)))
            total -= jnp.mean(value)
        return total, {}


def codes(behaviours: int, latent: int) -> Array:
    """ξ_i of each behaviour, [behaviours, l]: 0 for the task's, then fixed draws of N(0, I)."""
    drawn = jax.random.normal(jax.random.key(0), (behaviours - 1, latent))
    return jnp.concatenate([jnp.zeros((1, latent)), drawn])


def _for_all(xi: Array, obs: Array) -> Array:
    return jnp.broadcast_to(xi, (*obs.shape[:-1], xi.shape[-1]))
