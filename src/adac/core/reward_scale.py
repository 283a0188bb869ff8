"""What a stream's rewards are divided by: their own running root mean square.

Critics then learn numbers of one size whatever unit a task pays in, and however rarely: a reward
of 1 in one step of a thousand counts as about 30. It also gives `score_floor` its unit, so that a
flat Q is told from a small one. Where nothing was ever paid the unit is 1, and Q stays flat.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

MEMORY = 1_000  # minibatches: many times over what a buffer of rare rewards needs to be seen
NOTHING = 1e-12  # a mean square below this is no reward at all


class RewardScale(NamedTuple):
    seen: Array  # minibatches so far
    square: Array  # the running mean of r²


def none_yet() -> RewardScale:
    return RewardScale(jnp.zeros(()), jnp.zeros(()))


def observe(scale: RewardScale, reward: Array) -> RewardScale:
    """With a minibatch; a plain mean at first, then one that forgets."""
    seen = scale.seen + 1.0
    rate = 1.0 / jnp.minimum(seen, MEMORY)
    return RewardScale(seen, scale.square + rate * (jnp.mean(reward**2) - scale.square))


def unit(scale: RewardScale) -> Array:
    """The root mean square, or 1 where nothing was paid yet."""
    paid = scale.square > NOTHING
    return jnp.where(paid, jnp.sqrt(jnp.where(paid, scale.square, 1.0)), 1.0)


Scales = tuple[RewardScale, ...]  # one a stream; () where rewards stay in the task's own unit


def in_units(scales: Scales, rewards: Sequence[Array]) -> tuple[Scales, Sequence[Array]]:
    """The scales after seeing the rewards of each stream, and the rewards in their units."""
    if not scales:
        return scales, rewards
    pairs = list(zip(scales, rewards, strict=True))
    moved = tuple(observe(scale, reward) for scale, reward in pairs)
    return moved, [reward / unit(s) for s, (_, reward) in zip(moved, pairs, strict=True)]


def units(scales: Scales) -> dict[str, Array]:
    """What to log: the task's unit, and those of the behaviour's streams."""
    more = (f"behaviour_unit_{n}" for n in range(2, len(scales)))
    names = ("reward_unit", "behaviour_unit", *more)[: len(scales)]
    return {name: unit(scale) for name, scale in zip(names, scales, strict=True)}
