"""Explorers made of explorers: one after another, one drawn for each episode, or in turn with π."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers.analogous import Analogous
from adac.core.explorers.interface import Explorer, Sizes, Streams, Transition, View, clip
from adac.core.fields import needed, part, setting
from adac.core.validation import at_least, between, counts, tuples


@dataclass(frozen=True)
class Composed(Explorer):
    """Of `main` is everything that concerns learning: its loss, its streams, its own numbers."""

    @abstractmethod
    def _parts(self) -> Sequence[Explorer]:
        """Who acts, the one that learns last."""

    @property
    def main(self) -> Explorer:
        return self._parts()[-1]

    def __post_init__(self) -> None:
        for one in self._parts():
            if not isinstance(one, Explorer):
                raise ValueError(f"{type(self).__name__} is made of explorers, not of {one!r}")
        for one in self._parts()[:-1]:
            if one.adapts:
                name = type(one).__name__
                raise ValueError(f"{name} learns numbers of its own: name it as the last explorer")
        for name in ("disentangled", "trained", "each_bonus", "adapts", "raises"):
            object.__setattr__(self, name, getattr(self.main, name))
        for name in ("uses_latent", "sees_values", "sees_bonus", "observes"):
            object.__setattr__(self, name, any(getattr(one, name) for one in self._parts()))

    @property
    def separate(self) -> bool:
        return self.main.separate

    @property
    def joins_the_base(self) -> bool:
        return self.main.joins_the_base

    @property
    def weighs(self) -> bool:
        return self.main.weighs

    @property
    def follows(self) -> bool:
        return self.main.follows

    @property
    def lets_pi_act(self) -> bool:
        return self.main.lets_pi_act

    @property
    def learning_rate(self) -> float:
        return self.main.learning_rate

    def streams(self, reward: Array, bonus: Array | None, learned: Any) -> Streams:
        return self.main.streams(reward, bonus, learned)

    def init_learned(self, sizes: Sizes, key: Array) -> Any:
        return self.main.init_learned(sizes, key)

    def loss(self, view: View, q: Any, obs: Array, progress: Array, key: Array) -> Any:
        return self.main.loss(view, q, obs, progress, key)

    def measure(self, view: View, obs: Array, key: Array) -> dict[str, Array]:
        return self.main.measure(view, obs, key)

    def improve_learned(self, learned: Any, metrics: dict[str, Array]) -> Any:
        return self.main.improve_learned(learned, metrics)

    def score_scale(self, gradient: Array) -> Array:
        return self.main.score_scale(gradient)

    def raised(self, view: View, obs: Array, action: Array, key: Array) -> Array:
        return self.main.raised(view, obs, action, key)

    def continuations(self, view: View, next_obs: Array, bonuses: int) -> Sequence[Array]:
        return self.main.continuations(view, next_obs, bonuses)

    def without_noise(self) -> Explorer:
        return self.main.without_noise()


@final
@dataclass(frozen=True)
class Then(Composed):
    """`first` until environment step `after`, then `then`, wherever the episode is."""

    first: Explorer = needed("Who acts at first.")
    then: Explorer = needed("Who acts afterwards, and whose loss is learned.")
    after: int = setting(1_000, "The environment step at which the second takes over.")

    def __post_init__(self) -> None:
        counts(self, 0, "after")
        super().__post_init__()

    def _parts(self) -> Sequence[Explorer]:
        return (self.first, self.then)

    def at(self, step: int) -> Explorer:
        return self.first.at(step) if step < self.after else self.then.at(step)

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        """As it is in the end: who acts at a step is `at`'s to say."""
        return self.then.act(view, obs, memory, first, key)

    def init_memory(self, num_envs: int, sizes: Sizes) -> Any:
        return self.then.init_memory(num_envs, sizes)


@final
@dataclass(frozen=True)
class Mixture(Composed):
    """One of several, drawn with equal chances for each episode; the last one's loss is learned."""

    explorers: tuple[Explorer, ...] = needed("Who is drawn from.")

    def __post_init__(self) -> None:
        tuples(self, "explorers")
        if not self.explorers:
            raise ValueError("a mixture needs at least one explorer")
        super().__post_init__()

    def _parts(self) -> Sequence[Explorer]:
        return self.explorers

    def at(self, step: int) -> Explorer:
        now = tuple(part.at(step) for part in self.explorers)
        return self if now == self.explorers else Mixture(now)

    def init_memory(self, num_envs: int, sizes: Sizes) -> Any:
        memories = tuple(part.init_memory(num_envs, sizes) for part in self.explorers)
        return jnp.zeros(num_envs, jnp.int32), memories

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        chosen, memories = memory
        draw_key, *keys = jax.random.split(key, len(self.explorers) + 1)
        drawn = jax.random.randint(draw_key, chosen.shape, 0, len(self.explorers))
        chosen = jnp.where(first, drawn, chosen)
        each = [
            part.act(view, obs, own, first, k)
            for part, own, k in zip(self.explorers, memories, keys, strict=True)
        ]
        actions = jnp.stack([action for action, _ in each])
        action = actions[chosen, jnp.arange(chosen.shape[0])]
        return action, (chosen, tuple(own for _, own in each))

    def observe(self, memory: Any, transition: Transition) -> Any:
        chosen, memories = memory
        pairs = zip(self.explorers, memories, strict=True)
        return chosen, tuple(part.observe(own, transition) for part, own in pairs)


@final
@dataclass(frozen=True)
class Interleaved(Composed):
    """π under Gaussian noise for a share of the time, in stretches, and the explorer otherwise.

    Only what π does itself corrects its critic where that is too hopeful, and from the states that
    a curious μ has reached, π begins where it would never have come alone.
    """

    other: Explorer = part(
        lambda: Analogous(co_training=False),
        "Who acts when π does not, and whose loss is learned.",
    )
    pi_share: float = setting(0.5, "Share of the time that π itself acts.")
    pi_stretch: int = setting(50, "Mean steps until it is drawn anew who acts.")
    pi_noise: float = setting(0.1, "Standard deviation of the noise on π's action.")

    def __post_init__(self) -> None:
        between(self, 0.0, 1.0, "pi_share")
        counts(self, 1, "pi_stretch")
        at_least(self, 0.0, "pi_noise")
        super().__post_init__()

    def _parts(self) -> Sequence[Explorer]:
        return (self.other,)

    @property
    def lets_pi_act(self) -> bool:
        return True

    def at(self, step: int) -> Explorer:
        now = self.other.at(step)
        return self if now == self.other else replace(self, other=now)

    def init_memory(self, num_envs: int, sizes: Sizes) -> Any:
        return jnp.zeros(num_envs, bool), self.other.init_memory(num_envs, sizes)

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        pi_acts, inner = memory
        who_key, when_key, noise_key, key = jax.random.split(key, 4)
        anew = first | jax.random.bernoulli(when_key, 1.0 / self.pi_stretch, first.shape)
        drawn = jax.random.bernoulli(who_key, self.pi_share, first.shape)
        pi_acts = jnp.where(anew, drawn, pi_acts)
        action, inner = self.other.act(view, obs, inner, first, key)
        own = view.pi.action(obs)
        own = clip(own + self.pi_noise * jax.random.normal(noise_key, own.shape))
        return jnp.where(pi_acts[:, None], own, action), (pi_acts, inner)

    def observe(self, memory: Any, transition: Transition) -> Any:
        pi_acts, inner = memory
        return pi_acts, self.other.observe(inner, transition)
