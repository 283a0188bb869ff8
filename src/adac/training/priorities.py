"""Prioritised replay: transitions with large TD errors are drawn more often.

Proportional, after T. Schaul et al., Prioritized Experience Replay, 2016: P(i) = p_i / Σ p with
p = (|δ| + ε)^α, and the loss of a transition weighted by (N P(i))^−β, the largest weight being 1.
New transitions get the largest p so far. The sums are a binary tree, each node the sum of the two
below it, so that the priorities alone determine it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adac.training.replay import Places, Replay

EPSILON = 1e-6  # so that no transition is never drawn again
MOST = 1e100  # of a priority that a file brings: sums of them, and their shares, stay finite
Numbers = NDArray[np.float64]


class Priorities:
    """Of the rows of one replay buffer.

    The errors of an update are taken in before the next draw, when they are there anyway; rows
    that came in between wait for it. So it does not matter when a snapshot is taken.
    """

    def __init__(self, replay: Replay, alpha: float, beta: float):
        self.replay, self.alpha, self.beta = replay, alpha, beta
        self.leaves = 1 << (replay.capacity - 1).bit_length()
        self.tree: Numbers = np.zeros(2 * self.leaves)  # the root at 1, row i's at leaves + i
        self.largest = 1.0
        self.admitted = 0  # rows, of all that were ever inserted, that have a priority
        self._expected: tuple[Places, Any] | None = None

    def draw(self, count: int) -> Places:
        """One from each of `count` equal parts of the sum."""
        self.settle()
        self._admit()
        parts = (np.arange(count) + self.replay.generator.random(count)) / count
        left_over, node = parts * self.tree[1], np.ones(count, np.int64)
        while node[0] < self.leaves:
            left = self.tree[2 * node]
            right = left_over >= left
            left_over = np.where(right, left_over - left, left_over)
            node = 2 * node + right
        return np.minimum(node - self.leaves, len(self.replay) - 1)  # a rounding may lead past it

    def weights(self, places: Places, progress: float) -> NDArray[np.float32]:
        """(N P)^−β over its largest; β goes to 1 with `progress`."""
        beta = self.beta + (1.0 - self.beta) * min(progress, 1.0)
        share = self.tree[self.leaves + places] / self.tree[1]
        weights = (len(self.replay) * share) ** -beta
        scaled: NDArray[np.float32] = (weights / weights.max()).astype(np.float32)
        return scaled

    def expect(self, places: Places, errors: Any) -> None:
        """The TD errors of an update that may still run."""
        self._expected = places, errors

    def settle(self) -> None:
        """Take in the errors of the latest update; `_admit` follows, for rows that came over it."""
        if self._expected is None:
            return
        (places, errors), self._expected = self._expected, None
        found = (np.abs(np.asarray(errors, np.float64)) + EPSILON) ** self.alpha
        found = np.where(np.isfinite(found), found, self.largest)
        self.largest = max(self.largest, float(found.max()))
        self._put(places, found)

    def _admit(self) -> None:
        first = max(self.admitted, self.replay.inserted - len(self.replay))
        numbers = np.arange(first, self.replay.inserted)
        self._put(numbers % self.replay.capacity, np.full(len(numbers), self.largest))
        self.admitted = self.replay.inserted

    def _put(self, places: Places, values: Numbers) -> None:
        nodes = self.leaves + places
        self.tree[nodes] = 0.0
        np.maximum.at(self.tree, nodes, values)  # a row may be there twice
        while len(nodes) and nodes[0] > 1:
            nodes = np.unique(nodes >> 1)
            self.tree[nodes] = self.tree[2 * nodes] + self.tree[2 * nodes + 1]

    def snapshot(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        self.settle()
        used = self.tree[self.leaves : self.leaves + len(self.replay)]
        return {"rows": used.copy()}, {"largest": self.largest, "admitted": self.admitted}

    def restore(self, arrays: dict[str, NDArray[Any]], facts: dict[str, Any] | None) -> None:
        """A run that had none begins with equal ones."""
        if facts is None:
            return
        rows = np.asarray(arrays["rows"], np.float64)
        self.largest, self.admitted = float(facts["largest"]), int(facts["admitted"])
        right = rows.shape == (len(self.replay),) and 1.0 <= self.largest <= MOST
        right = right and 0 <= self.admitted <= self.replay.inserted
        if not right or not self._could_be(rows):
            raise ValueError("its priorities are not those of its replay buffer")
        self._put(np.arange(len(rows)), rows)

    def _could_be(self, rows: Numbers) -> bool:
        """Of an admitted row it is above 0 and at most the largest; of one to come, what was."""
        known = self.replay.inserted - 1 - self.replay.ages(np.arange(len(rows))) < self.admitted
        low = np.where(known, 1.0 / MOST, 0.0)
        return bool(((low <= rows) & (rows <= self.largest)).all())
