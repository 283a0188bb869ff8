"""Intrinsic rewards: a bonus for what the agent does not know yet.

An intrinsic reward is frozen settings plus pure functions over a state of its own, which lives in
`AgentState` and so in the checkpoint. docs/intrinsic.md writes a new one step by step.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from adac.core.fields import log, setting
from adac.core.intrinsic import scale
from adac.core.validation import above, at_least, counts


@dataclass(frozen=True)
class Intrinsic(ABC):
    """What an intrinsic reward is asked. Observations are raw, actions in [-1, 1]."""

    fresh_bonus: bool = setting(
        False, "Recompute the bonus for each minibatch instead of storing it."
    )

    promises: ClassVar[bool] = False  # knows the novelty of an action before it is taken

    @property
    def parts(self) -> int:
        """How many bonuses it is made of."""
        return 1

    @abstractmethod
    def init(self, obs_dim: int, action_dim: int, key: Array) -> Any:
        """The state: everything that changes."""

    @abstractmethod
    def bonus(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        """The non-negative bonus of each transition, [B]."""

    def collect(self, state: Any, obs: Array, action: Array, next_obs: Array) -> tuple[Any, Array]:
        """Transitions just collected: the state after seeing them, and their bonus."""
        return state, self.bonus(state, obs, action, next_obs)

    @abstractmethod
    def update(
        self, state: Any, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[Any, dict[str, Array]]:
        """Learn from a minibatch of the replay buffer; returns the state and what to log."""

    def predict(self, state: Any, obs: Array, action: Array, key: Array) -> Array | None:
        """Next observations as this reward's own model expects them, [B, o]; None without one."""
        return None

    def promise(self, state: Any, obs: Array, action: Array, key: Array) -> Array:
        """The novelty that actions promise, [B], in any unit, of a reward that `promises` it."""
        raise TypeError(f"{type(self).__name__} does not know an action's novelty beforehand")

    def each(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        """The bonuses that it is made of, [parts, B]."""
        return self.bonus(state, obs, action, next_obs)[None]


@dataclass(frozen=True)
class Novelty(Intrinsic):
    """A bonus that is a novelty over its own scale: η · min(novelty / scale, clip).

    Its state is a NamedTuple with a field `scale`; the rest is the subclass's.
    """

    eta: float = setting(0.1, "η, the bonus of a typical collected step.", log(1e-3, 1.0))
    bonus_after: int = setting(500, "No bonus until so many transitions have been collected.")
    bonus_clip: float = setting(5.0, "Upper bound of the bonus, in η.")
    scale_memory: int = setting(200, "Collected transitions over which the scale is a mean.")

    def __post_init__(self) -> None:
        at_least(self, 0.0, "eta", "bonus_after")
        above(self, 0.0, "bonus_clip")
        counts(self, 1, "scale_memory")

    @abstractmethod
    def novelty(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        """How new each transition is, in any unit; not negative, [B]."""

    def bonus(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        return self._bonus(state, self.novelty(state, obs, action, next_obs))

    def _bonus(self, state: Any, novelty: Array) -> Array:
        relative = scale.relative(novelty, state.scale, self.bonus_clip)
        return jnp.where(state.scale.seen >= self.bonus_after, self.eta * relative, 0.0)

    def promise(self, state: Any, obs: Array, action: Array, key: Array) -> Array:
        """The novelty of where the reward's own model expects the action to lead."""
        expected = self.predict(state, obs, action, key)
        if expected is None:
            return super().promise(state, obs, action, key)
        return self.novelty(state, obs, action, expected)

    def collect(self, state: Any, obs: Array, action: Array, next_obs: Array) -> tuple[Any, Array]:
        novelty = self.novelty(state, obs, action, next_obs)
        state = state._replace(scale=scale.observe(state.scale, novelty, self.scale_memory))
        return state, self._bonus(state, novelty)
