"""Intrinsic rewards: a bonus for what the agent does not know yet.

An intrinsic reward is frozen settings plus pure functions over a state of its own, which lives in
`AgentState` and so in the checkpoint. docs/intrinsic.md writes a new one step by step.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from jax import Array

from adac.core.fields import setting


@dataclass(frozen=True)
class Intrinsic(ABC):
    """What an intrinsic reward is asked. Observations are raw, actions in [-1, 1]."""

    fresh_bonus: bool = setting(
        False, "Recompute the bonus for each minibatch instead of storing it."
    )

    @abstractmethod
    def init(self, obs_dim: int, action_dim: int, key: Array) -> Any:
        """The state: everything that changes."""

    @abstractmethod
    def bonus(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        """The non-negative bonus of each transition, [B]."""

    @abstractmethod
    def update(
        self, state: Any, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[Any, dict[str, Array]]:
        """Learn from a minibatch of the replay buffer; returns the state and what to log."""

    def predict(self, state: Any, obs: Array, action: Array, key: Array) -> Array | None:
        """Next observations as this reward's own model expects them, [B, o]; None without one."""
        return None
