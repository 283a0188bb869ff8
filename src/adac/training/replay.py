"""The replay buffer: one row a transition, in one preallocated ring with its own generator.

A row's layout is derived from named fields (`RowSpec`), so that a minibatch is one gather and one
transfer; inside the jitted update it is taken apart again, for free.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adac.errors import UserError
from adac.training.memory import MOST_ENVS

Rows = NDArray[np.float32]
Places = NDArray[np.int64]


class RowSpec:
    """Which columns of a row hold which field."""

    def __init__(self, fields: Mapping[str, tuple[int, ...]]):
        self.fields = dict(fields)
        self.columns: dict[str, slice] = {}
        begin = 0
        for name, shape in self.fields.items():
            end = begin + math.prod(shape)
            self.columns[name] = slice(begin, end)
            begin = end
        self.width = begin
        self._widths = [math.prod(shape) for shape in self.fields.values()]

    @classmethod
    def of_batch(cls, fields: Mapping[str, tuple[int, ...]]) -> "RowSpec":
        """What an update reads, and `ahead`: how many rows further on the episode's next transition
        is, 0 where there is none. That is what n-step returns follow."""
        return cls({**fields, "ahead": ()})

    def unpack(self, rows: Any, names: Sequence[str]) -> dict[str, Any]:
        """Some fields of rows [B, width], NumPy's or JAX's."""
        return {
            name: rows[:, self.columns[name]].reshape((len(rows), *self.fields[name]))
            for name in names
        }

    def pack(self, columns: Mapping[str, NDArray[Any]]) -> Rows:
        """Rows [N, width] from arrays [N, ...] of every field."""
        try:
            flat = [np.reshape(columns[name], (len(columns[name]), -1)) for name in self.fields]
            same = columns.keys() == self.fields.keys()
            if same and [part.shape[1] for part in flat] == self._widths:
                return np.concatenate(flat, axis=1, dtype=np.float32, casting="unsafe")
        except (KeyError, TypeError, ValueError):
            pass
        wanted = [f"{name} [{', '.join(['n', *map(str, s)])}]" for name, s in self.fields.items()]
        given = [f"{name} {_shape(column)}" for name, column in columns.items()]
        raise UserError(
            f"transitions are arrays of numbers, {', '.join(wanted)}; not "
            f"{', '.join(given) or 'nothing'} (Learner.add takes them in the task's units)"
        )


def _shape(column: Any) -> str:
    shape = getattr(column, "shape", None)
    return f"a {type(column).__name__}" if shape is None else str(list(shape))


class Replay:
    def __init__(self, capacity: int, spec: RowSpec, seed: np.random.SeedSequence):
        self.spec = spec
        self.rows: Rows = np.empty((capacity, spec.width), np.float32)
        self.inserted = 0  # transitions ever added; the next one goes to inserted % capacity
        self.generator = np.random.Generator(np.random.PCG64(seed))

    @property
    def capacity(self) -> int:
        return len(self.rows)

    def __len__(self) -> int:
        return min(self.inserted, self.capacity)

    def add(self, **columns: NDArray[Any]) -> None:
        """Transitions, as arrays [N, ...] of each field."""
        rows = self.spec.pack(columns)
        if not np.isfinite(rows).all():
            raise UserError("a transition must be finite: one that is not would spoil the weights")
        if len(rows) == 1:  # a step of one environment: the usual case, and worth a short cut
            self.rows[self.inserted % self.capacity] = rows[0]
        else:
            self.rows[np.arange(self.inserted, self.inserted + len(rows)) % self.capacity] = rows
        self.inserted += len(rows)

    def draw(self, count: int) -> Places:
        return self.generator.integers(0, len(self), count)

    def take(self, places: Places) -> Rows:
        """Fresh memory each time: the update that reads it may still run at the next call."""
        return self.rows.take(places, axis=0)

    def ages(self, places: Places) -> Places:
        """How many transitions came after each: 0 for the latest."""
        return (self.inserted - 1 - places) % self.capacity

    def put(self, name: str, values: NDArray[Any]) -> None:
        """A field of the latest transitions that was known only after they were added."""
        self.rows[self._latest(len(values)), self.spec.columns[name]] = values[:, None]

    def recent(self, count: int) -> Rows:
        """The latest transitions."""
        return self.rows[self._latest(min(count, len(self)))]

    def _latest(self, count: int) -> Places:
        return np.arange(self.inserted - count, self.inserted) % self.capacity

    def require_chained(self) -> None:
        """Of rows that a file brought: each says how many further on its episode continues."""
        ahead = self.rows[: len(self), self.spec.columns["ahead"]]
        if not ((ahead >= 0) & (ahead <= MOST_ENVS) & (ahead == np.floor(ahead))).all():
            raise ValueError("its transitions do not say where their episodes go on")

    def random_state(self) -> dict[str, Any]:
        return dict(self.generator.bit_generator.state)

    def set_random_state(self, state: dict[str, Any]) -> None:
        self.generator.bit_generator.state = state


class Returns(NamedTuple):
    """n-step returns, put together when a minibatch is taken: the buffer holds single steps."""

    steps: int
    discount: float

    def take(self, replay: Replay, places: Places) -> Rows:
        """Rows whose reward and bonus are Σ_{k<m} γ^k r_k, m ≤ n, whose next_obs is m steps on and
        whose `continues` carries γ^{m−1}: the update needs to know nothing of it."""
        rows = replay.take(places)
        columns, at, weight = replay.spec.columns, places.copy(), 1.0
        alive = np.ones(len(places), bool)
        kept = [columns[name] for name in ("next_obs", "continues", "ahead")]
        for _ in range(self.steps - 1):
            ahead = rows[:, columns["ahead"]][:, 0].astype(np.int64)
            alive &= (ahead > 0) & (replay.ages(at) >= ahead)
            if not alive.any():
                break
            weight *= self.discount
            at = np.where(alive, (at + ahead) % replay.capacity, at)
            after = replay.take(at[alive])
            for name in ("reward", "bonus"):
                rows[alive, columns[name]] += weight * after[:, columns[name]]
            after[:, columns["continues"]] *= weight
            for column in kept:
                rows[alive, column] = after[:, column]
        return rows
