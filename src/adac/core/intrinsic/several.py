"""Several bonuses at once: each with its own model, scale and η, added up."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.fields import setting
from adac.core.intrinsic.interface import Intrinsic
from adac.core.validation import tuples


@final
@dataclass(frozen=True)
class Sum(Intrinsic):
    """The sum of several bonuses; MULEX's explorer gives each of them a critic of its own."""

    bonuses: tuple[Intrinsic, ...] = setting((), "The bonuses that are added up.")

    aliases: ClassVar[tuple[str, ...]] = ("several",)

    def __post_init__(self) -> None:
        tuples(self, "bonuses")
        if not self.bonuses:
            raise ValueError("a sum needs at least one bonus: counts+rnd adds two")

    @property
    def parts(self) -> int:
        return len(self.bonuses)

    def init(self, obs_dim: int, action_dim: int, key: Array) -> tuple[Any, ...]:
        keys = jax.random.split(key, len(self.bonuses))
        pairs = zip(self.bonuses, keys, strict=True)
        return tuple(part.init(obs_dim, action_dim, k) for part, k in pairs)

    def each(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        pairs = zip(self.bonuses, state, strict=True)
        return jnp.stack([part.bonus(own, obs, action, next_obs) for part, own in pairs])

    def bonus(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        return jnp.sum(self.each(state, obs, action, next_obs), axis=0)

    def collect(self, state: Any, obs: Array, action: Array, next_obs: Array) -> tuple[Any, Array]:
        pairs = zip(self.bonuses, state, strict=True)
        found = [part.collect(own, obs, action, next_obs) for part, own in pairs]
        return tuple(own for own, _ in found), jnp.sum(jnp.stack([b for _, b in found]), axis=0)

    def update(
        self, state: Any, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[Any, dict[str, Array]]:
        """What a part reports is logged under its name: `rnd_model_loss`."""
        keys, after = jax.random.split(key, len(self.bonuses)), []
        metrics: dict[str, Array] = {}
        for part, own, k in zip(self.bonuses, state, keys, strict=True):
            learned, reported = part.update(own, obs, action, next_obs, k)
            after.append(learned)
            name = type(part).__name__.lower()
            metrics |= {f"{name}_{column}": value for column, value in reported.items()}
        return tuple(after), metrics
