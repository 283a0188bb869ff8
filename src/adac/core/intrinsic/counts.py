"""Counts: the bonus of a state is one over the root of how often its like has been visited.

Tang et al. 2017, "#Exploration": φ(s) = sgn(A s) ∈ {−1, 1}^k with A ~ N(0, 1), k = 32, and the
bonus β / √n(φ(s)). Each plane has an offset here: planes through the origin alone would not tell a
state from its double. Observations are normalised by the first ones collected, and by no later
ones, so that a state never changes its cell.

n is kept in four small tables, each with its own hash of φ; the least of the four entries is n, or
more only where all four have met another state (a count-min sketch).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from adac.core.fields import log, setting
from adac.core.intrinsic.interface import Intrinsic
from adac.core.normalise import Statistics, empty, normalise, observe
from adac.core.validation import at_least, between, counts

# Odd numbers near 2³² over the golden ratio, √2, e and π: multiplicative hashing.
MULTIPLIERS = np.array([0x9E3779B1, 0xB504F333, 0x5E2D58D9, 0x517CC1B7], np.uint32)
SLOT_BITS = 14


class CountState(NamedTuple):
    planes: Array  # [o + 1, k], the offsets last
    visits: Array  # [tables, slots]
    observations: Statistics  # of the first `bonus_after` next observations


@final
@dataclass(frozen=True)
class Counts(Intrinsic):
    """η / √n, where n is how often a state with the same 32 signs has been reached."""

    eta: float = setting(
        0.1, "β, the bonus of a state that is reached for the first time.", log(1e-3, 1.0)
    )
    bonus_after: int = setting(500, "Collected transitions that set the unit; no bonus until then.")
    hash_bits: int = setting(32, "Planes k that tell states apart: more are finer.")

    aliases: ClassVar[tuple[str, ...]] = ("simhash", "count")

    def __post_init__(self) -> None:
        at_least(self, 0.0, "eta")
        counts(self, 0, "bonus_after")
        counts(self, 1, "hash_bits")
        between(self, 1, 32, "hash_bits")

    def init(self, obs_dim: int, action_dim: int, key: Array) -> CountState:
        planes = jax.random.normal(key, (obs_dim + 1, self.hash_bits))
        visits = jnp.zeros((len(MULTIPLIERS), 2**SLOT_BITS), jnp.int32)
        return CountState(planes, visits, empty(obs_dim))

    def bonus(self, state: CountState, obs: Array, action: Array, next_obs: Array) -> Array:
        visits = jnp.maximum(visited(state, next_obs), 1)
        return jnp.where(self._counting(state), self.eta / jnp.sqrt(visits), 0.0)

    def _counting(self, state: CountState) -> Array:
        return state.observations.seen >= self.bonus_after

    def collect(
        self, state: CountState, obs: Array, action: Array, next_obs: Array
    ) -> tuple[CountState, Array]:
        """Every transition counts once, when it is collected."""
        counting = self._counting(state)
        tables, slots = _places(state, next_obs)
        visits = state.visits.at[tables, slots].add(counting.astype(jnp.int32))
        merged = observe(state.observations, next_obs)
        unit = jax.tree.map(
            lambda old, new: jnp.where(counting, old, new), state.observations, merged
        )
        state = CountState(state.planes, visits, unit)
        return state, self.bonus(state, obs, action, next_obs)

    def update(
        self, state: CountState, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[CountState, dict[str, Array]]:
        """Nothing is learned from a minibatch."""
        return state, {"cells_visited": jnp.mean(state.visits > 0)}


def visited(state: CountState, obs: Array) -> Array:
    """n of each state, [B]."""
    return jnp.min(state.visits[_places(state, obs)], axis=0)


def _places(state: CountState, obs: Array) -> tuple[Any, Array]:
    """Where each table counts a state: table numbers [tables, 1] and slots [tables, B]."""
    x = normalise(state.observations, obs)
    signs = x @ state.planes[:-1] + state.planes[-1] > 0.0
    powers = jnp.left_shift(jnp.uint32(1), jnp.arange(signs.shape[-1], dtype=jnp.uint32))
    code = jnp.sum(jnp.where(signs, powers, jnp.uint32(0)), axis=-1, dtype=jnp.uint32)
    mixed = code ^ (code >> 15)  # else the high bits alone would choose between few states
    slots = (jnp.asarray(MULTIPLIERS)[:, None] * mixed) >> (32 - SLOT_BITS)
    return np.arange(len(MULTIPLIERS))[:, None], slots.astype(jnp.int32)
