"""The agent's state while it runs: a short list of arrays, and where in them its parts lie.

To hand an array over the border of a jitted call, there and back, takes some four microseconds, and
a state has 80 to 200 leaves, all but 12 to 28 of them small. So the small ones that move together
share an array; XLA takes it apart inside, for next to nothing (docs/performance.md).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from adac.core import agent as core
from adac.core.agent import Agent, AgentState

Arrays = list[Array]
SMALL = 6_000  # elements: first and last layers, biases; the large matrices lie alone


class Weights(NamedTuple):
    """Just what acting reads."""

    params: Any
    statistics: Any


class Shelf:
    """One array, and the leaves that lie in it: a large one alone, or small ones side by side."""

    def __init__(self, leaves: Sequence[int], shapes: Sequence[tuple[int, ...]]):
        self.leaves, self.shapes = leaves, shapes

    def join(self, values: Sequence[Array]) -> Array:
        if len(values) == 1:
            return values[0]
        return jnp.concatenate([jnp.ravel(value) for value in values])

    def split(self, array: Array) -> Sequence[Array]:
        if len(self.leaves) == 1:
            return [array]
        values, begin = [], 0
        for shape in self.shapes:
            end = begin + math.prod(shape)
            values.append(array[begin:end].reshape(shape))
            begin = end
        return values


class Part:
    """Some of the state's leaves: the arrays they lie in, and how to put them together."""

    def __init__(self, shelves: Sequence[Shelf], numbered: Any):
        self.leaves, self.tree = jax.tree.flatten(numbered)
        self.shelves = shelves
        self.places = [p for p, s in enumerate(shelves) if set(s.leaves) & set(self.leaves)]

    def of(self, arrays: Arrays) -> Arrays:
        return [arrays[place] for place in self.places]

    def put(self, arrays: Arrays, new: Sequence[Array]) -> None:
        for place, array in zip(self.places, new, strict=True):
            arrays[place] = array

    def build(self, arrays: Sequence[Array]) -> Any:
        """From `of(...)`, inside a jitted function."""
        found: dict[int, Array] = {}
        for place, array in zip(self.places, arrays, strict=True):
            shelf = self.shelves[place]
            found |= zip(shelf.leaves, shelf.split(array), strict=True)
        return jax.tree.unflatten(self.tree, [found[leaf] for leaf in self.leaves])

    def pack(self, tree: Any) -> Arrays:
        """Of a part that shares no array with others: the arrays that `build` would read."""
        found = dict(zip(self.leaves, jax.tree.leaves(tree), strict=True))
        shelves = (self.shelves[place] for place in self.places)
        return [shelf.join([found[leaf] for leaf in shelf.leaves]) for shelf in shelves]


def moved(state: AgentState, improve: bool) -> Any:
    """What an update changes: targets move with the policies, statistics in `observe`."""
    if improve:
        return state._replace(statistics=())
    return state.critic._replace(target=()), state.intrinsic


class Layout:
    """Where each part of an AgentState lies in the list of arrays."""

    def __init__(self, agent: Agent, shape: AgentState):
        leaves, tree = jax.tree.flatten(shape)
        state: AgentState = jax.tree.unflatten(tree, range(len(leaves)))
        moving = {improve: moved(state, improve) for improve in (False, True)}
        shelves = _shelves(leaves, [set(jax.tree.leaves(part)) for part in moving.values()])
        self.whole = Part(shelves, state)
        self.behaviour = Part(
            shelves, Weights(core.behaviour_net(state).params, state.statistics)
        )  # fmt: skip
        self.target = Part(shelves, Weights(core.target_weights(agent, state), state.statistics))
        self.intrinsic = Part(shelves, state.intrinsic)
        self.statistics = Part(shelves, state.statistics)
        self.moving = {improve: Part(shelves, part) for improve, part in moving.items()}
        self.still = {
            improve: Part(shelves, sorted(set(self.whole.leaves) - set(part.leaves)))
            for improve, part in self.moving.items()
        }


def _shelves(leaves: Sequence[Any], moving: Sequence[set[int]]) -> list[Shelf]:
    """Small leaves share one if they have the same type and move in the same updates."""
    together: dict[Any, list[int]] = {}
    for number, leaf in enumerate(leaves):
        kind = (leaf.dtype, *(number in part for part in moving))
        together.setdefault(kind if leaf.size <= SMALL else number, []).append(number)
    return [Shelf(group, [leaves[n].shape for n in group]) for group in together.values()]
