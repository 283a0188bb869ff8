"""What is known of a run before it begins: who acts when, which updates follow, on which rows.

It is the very schedule of `training.loop`, with the same draws from the replay buffer, so that a
run here is the run there.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adac.core.agent import Agent
from adac.core.explorers import Explorer
from adac.training.loop import SAMPLE

Ints = NDArray[np.int32]


class Chunk(NamedTuple):
    """T steps in which one explorer acts, with at most U updates each."""

    explorer: Explorer
    begins: bool  # it has not acted before
    steps: Ints  # [T], environment steps before each
    updates: Ints  # [T, U], the update's number; 0 is none
    places: Ints  # [S, T, U, B], rows of the buffer for each seed


class Plan:
    def __init__(self, agent: Agent, seeds: list[int], num_envs: int, steps: int):
        self.agent, self.num_envs = agent, num_envs
        self.length = -(-steps // num_envs)  # of the scan: an iteration is a step of each
        sequences = [np.random.SeedSequence((seed, SAMPLE)) for seed in seeds]
        self.generators = [np.random.Generator(np.random.PCG64(one)) for one in sequences]
        self.done = 0  # updates so far
        totals = [self._total(n * num_envs) for n in range(self.length)]
        self.most = max((now - before for before, now in pairwise(totals)), default=0)

    @property
    def capacity(self) -> int:
        """Of the buffer: no more than will be stored."""
        return min(self.agent.replay_size, self.length * self.num_envs)

    def _total(self, step: int) -> int:
        """Updates that have been due, with so many steps taken."""
        learned_from = max(step - self.agent.learn_after, 0)
        return int(learned_from * self.agent.updates_per_step) if step else 0

    def chunks(self, most: int) -> Iterator[Chunk]:
        """Of at most so many iterations, and new ones where another explorer takes over."""
        explorer, begins, begun = None, False, 0
        for n in range(self.length + 1):
            who = self.agent.behaviour.at(n * self.num_envs) if n < self.length else None
            if n and (who != explorer or n - begun == most):
                assert explorer is not None
                yield self._chunk(explorer, begins, begun, n)
                begun, begins = n, False
            if who != explorer:
                explorer, begins = who, True

    def _chunk(self, explorer: Explorer, begins: bool, begun: int, end: int) -> Chunk:
        shape = (end - begun, self.most)
        steps = np.arange(begun, end, dtype=np.int32) * self.num_envs
        updates = np.zeros(shape, np.int32)
        places = np.zeros((len(self.generators), *shape, self.agent.batch_size), np.int32)
        for row, step in enumerate(steps):
            stored = min(int(step), self.agent.replay_size)
            for place in range(self._total(int(step)) - self.done):
                self.done += 1
                updates[row, place] = self.done
                for seed, generator in enumerate(self.generators):
                    drawn = generator.integers(0, stored, self.agent.batch_size)
                    places[seed, row, place] = drawn
        return Chunk(explorer, begins, steps, updates, places)
