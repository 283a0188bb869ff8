"""How much of the state space has been visited: a count of cells, the same for all agents.

A cell is a box of a fixed grid. Each entry of a state is normalised by its mean and standard
deviation over the first `FIT` states, which random actions reach, and then never again, so that a
state stays in its cell; more than `AXES` entries are first projected onto that many random
directions, the same for every run. A maze has real cells.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adac.envs import Maze
from adac.runs.checkpoint import Arrays

FIT = 1_000  # states that settle the grid
AXES = 4  # of the grid: in more, every state would have a cell to itself
WIDTH = 0.5  # of a cell, in standard deviations
REACH = 8.0  # standard deviations on either side; what lies beyond is in the outermost cells
BLOCK = 1_000  # states that are put into cells at once
PIXELS = 24  # of a picture of the first two directions, either way
SEEN = 4.0  # standard deviations on either side that a picture shows

Floats = NDArray[np.float64]


class Grid(NamedTuple):
    """cell = ⌊((s − mean) / scale) · axes − low) / width⌋, cut to `shape`."""

    mean: Floats  # [o]
    scale: Floats  # [o]
    axes: Floats  # [o, k]
    low: Floats  # [k]
    width: float
    shape: tuple[int, ...]
    seen: tuple[Floats, Floats]  # what a picture shows of the first two directions: low, high

    def places(self, states: NDArray[Any]) -> Floats:
        found: Floats = ((states - self.mean) / self.scale) @ self.axes
        return found

    def cells(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """The number of each state's cell, [n, o] → [n]."""
        bins = np.floor((self.places(states) - self.low) / self.width).astype(np.int64)
        inside = tuple(np.clip(b, 0, n - 1) for b, n in zip(bins.T, self.shape, strict=True))
        numbers: NDArray[np.int64] = np.ravel_multi_index(inside, self.shape).astype(np.int64)
        return numbers

    def picture(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """How many of the states are in each pixel, [y, x]; a single direction is one line."""
        places = self.places(states)[:, :2]
        flat = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
        low, high = self.seen
        bins = np.floor((flat - low) / (high - low) * PIXELS).astype(np.int64)
        x, y = np.clip(bins, 0, PIXELS - 1).T
        counts: NDArray[np.int64] = np.bincount(y * PIXELS + x, minlength=PIXELS**2)
        return counts.reshape(PIXELS, PIXELS).astype(np.int64)


def fitted(states: NDArray[Any]) -> Grid:
    """The grid whose cells have the size of half a standard deviation of these states."""
    wide = states.astype(np.float64)
    std = wide.std(axis=0)
    axes = _directions(wide.shape[1])
    count = axes.shape[1]
    return Grid(
        mean=wide.mean(axis=0),
        scale=np.where(std > 1e-4, std, 1.0),  # an entry that does not vary is left as it is
        axes=axes,
        low=np.full(count, -REACH),
        width=WIDTH,
        shape=(round(2 * REACH / WIDTH),) * count,
        seen=(np.full(2, -SEEN), np.full(2, SEEN)),
    )


def _directions(size: int) -> Floats:
    if size <= AXES:
        return np.eye(size)
    drawn = np.random.Generator(np.random.PCG64(0)).normal(size=(size, AXES))
    axes: Floats = drawn / np.linalg.norm(drawn, axis=0)
    return axes


def of_maze(maze: Maze, obs_dim: int) -> Grid:
    return Grid(
        mean=np.zeros(obs_dim),
        scale=np.ones(obs_dim),
        axes=np.eye(obs_dim)[:, maze.columns],
        low=np.array(maze.low),
        width=maze.size,
        shape=maze.shape,
        seen=(np.array(maze.low), np.array(maze.low) + maze.size * np.array(maze.shape)),
    )


class Coverage:
    """The cells visited so far; what it counts does not depend on when it is asked."""

    def __init__(self, obs_dim: int, maze: Maze | None = None):
        self.obs_dim = obs_dim
        self.grid = None if maze is None else of_maze(maze, obs_dim)
        self.cells: NDArray[np.int64] = np.zeros(0, np.int64)  # sorted
        self.visits = np.zeros((PIXELS, PIXELS), np.int64)  # since they were last taken
        self._waiting: list[NDArray[np.float32]] = []  # states [N, o] that are in no cell yet
        self._count = 0  # of them

    def see(self, states: NDArray[np.float32]) -> None:
        """States [N, o] in which actions were chosen; kept, so the caller must not change them."""
        self._waiting.append(states)
        self._count += len(states)
        if self._count >= max(BLOCK, FIT):
            self._sort_in()

    @property
    def count(self) -> int:
        """Cells visited; the grid is not settled before `FIT` states are seen."""
        self._sort_in()
        return len(self.cells)

    @property
    def settled(self) -> Grid | None:
        self._sort_in()
        return self.grid

    def take_visits(self) -> NDArray[np.int64]:
        """A picture of where it has been since the last one."""
        self._sort_in()
        taken, self.visits = self.visits, np.zeros_like(self.visits)
        return taken

    def _sort_in(self) -> None:
        if not self._count or (self.grid is None and self._count < FIT):
            return
        states = np.concatenate(self._waiting)
        if self.grid is None:
            self.grid = fitted(states[:FIT])
        self.cells = np.union1d(self.cells, self.grid.cells(states))
        self.visits += self.grid.picture(states)
        self._waiting, self._count = [], 0

    def snapshot(self) -> Arrays:
        self._sort_in()
        empty = np.zeros((0, self.obs_dim), np.float32)
        arrays: Arrays = {"cells": self.cells, "waiting": np.concatenate([empty, *self._waiting])}
        arrays["visits"] = self.visits.copy()
        if self.grid is not None:
            arrays |= {"mean": self.grid.mean, "scale": self.grid.scale}
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Of a run that was saved before there was a coverage, nothing: it counts from here."""
        if "cells" not in arrays:
            return
        waiting = arrays["waiting"].astype(np.float32)
        if waiting.shape[1:] != (self.obs_dim,):
            raise ValueError("its coverage is that of other observations")
        self.cells = arrays["cells"].astype(np.int64)
        self.visits = arrays["visits"].astype(np.int64).reshape(PIXELS, PIXELS)
        self._waiting, self._count = [waiting], len(waiting)
        if "mean" in arrays and self.grid is None:
            mean, scale = arrays["mean"], arrays["scale"]
            if not mean.shape == scale.shape == (self.obs_dim,) or not (scale > 0).all():
                raise ValueError("its grid is that of other observations")
            self.grid = fitted(np.zeros((1, self.obs_dim)))._replace(mean=mean, scale=scale)
