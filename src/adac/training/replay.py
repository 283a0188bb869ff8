"""The replay buffer: one row a transition, in one preallocated ring with its own generator.

A row is obs | action | reward | bonus | continues | next_obs, so that a minibatch is one gather and
one transfer; `unpack` takes rows apart again, for free, inside the jitted update.
"""

from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.core.agent import Batch

Rows = NDArray[np.float32]
Places = NDArray[np.int64]


class Replay:
    def __init__(self, capacity: int, obs_dim: int, action_dim: int, seed: np.random.SeedSequence):
        self.rows: Rows = np.empty((capacity, width(obs_dim, action_dim)), np.float32)
        self.bonus_column = obs_dim + action_dim + 1
        self.inserted = 0  # transitions ever added; the next one goes to inserted % capacity
        self.generator = np.random.Generator(np.random.PCG64(seed))

    @property
    def capacity(self) -> int:
        return len(self.rows)

    def __len__(self) -> int:
        return min(self.inserted, self.capacity)

    def add(self, *columns: NDArray[Any]) -> None:
        """Transitions, as arrays in the order of a row: [N, o], [N, d], [N], [N], [N], [N, o]."""
        for row in zip(*columns, strict=True):
            self.rows[self.inserted % self.capacity] = np.hstack(row)
            self.inserted += 1

    def draw(self, count: int) -> Places:
        return self.generator.integers(0, len(self), count)

    def sample(self, count: int) -> Rows:
        return self.take(self.draw(count))

    def take(self, places: Places) -> Rows:
        """Fresh memory each time: the update that reads it may still run at the next call."""
        return self.rows.take(places, axis=0)

    def ages(self, places: Places) -> Places:
        """How many transitions came after each: 0 for the latest."""
        return (self.inserted - 1 - places) % self.capacity

    def put_bonus(self, bonus: NDArray[Any]) -> None:
        """Of the latest transitions, known only after they were added."""
        self.rows[self._latest(len(bonus)), self.bonus_column] = bonus

    def recent(self, count: int) -> Rows:
        """The latest transitions."""
        return self.rows[self._latest(min(count, len(self)))]

    def _latest(self, count: int) -> Places:
        return np.arange(self.inserted - count, self.inserted) % self.capacity

    def random_state(self) -> dict[str, Any]:
        return dict(self.generator.bit_generator.state)

    def set_random_state(self, state: dict[str, Any]) -> None:
        self.generator.bit_generator.state = state


def width(obs_dim: int, action_dim: int) -> int:
    return 2 * obs_dim + action_dim + 3


def unpack(rows: Array, obs_dim: int, action_dim: int) -> Batch:
    end = obs_dim + action_dim
    return Batch(
        obs=rows[:, :obs_dim],
        action=rows[:, obs_dim:end],
        reward=rows[:, end],
        bonus=rows[:, end + 1],
        continues=rows[:, end + 2],
        next_obs=rows[:, end + 3 :],
    )
