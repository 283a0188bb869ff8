"""A tree of many arrays as a short list of them, and where in it the tree's parts lie.

To hand an array over the border of a jitted call, there and back, takes some four microseconds, and
an agent's state has 80 to 200 leaves, all but 12 to 28 of them small. So the small ones that move
together share an array; XLA takes it apart inside, for next to nothing (docs/performance.md).
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Arrays = list[Array]
SMALL = 6_000  # elements: first and last layers, biases; the large matrices lie alone


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
    """Some of the tree's leaves: the arrays they lie in, and how to put them together."""

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


def numbered(tree: Any) -> Any:
    """The tree with each leaf's number in its place."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, range(len(leaves)))


def make_shelves(tree: Any, together: Sequence[Any]) -> list[Shelf]:
    """Small leaves share one if they have the same type and are in the same `together` trees."""
    leaves, groups = jax.tree.leaves(tree), [set(jax.tree.leaves(part)) for part in together]
    found: dict[Any, list[int]] = {}
    for number, leaf in enumerate(leaves):
        kind = (leaf.dtype, *(number in group for group in groups))
        found.setdefault(kind if leaf.size <= SMALL else number, []).append(number)
    return [Shelf(group, [leaves[n].shape for n in group]) for group in found.values()]
