"""What a goal exploration process aims at: the outcome of an episode, and how a policy sees it.

Two spaces are the authors' own (Colas et al. 2018); two are for any task.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.errors import UserError


class Trail(NamedTuple):
    """What is kept of an episode, of one environment."""

    steps: Array
    last: Array  # [o]
    total: Array  # [o], the sum of the observations
    low: Array  # [o]
    high: Array  # [o]
    squares: Array  # the sum of squared actions


def no_trail(obs_dim: int) -> Trail:
    zero, rows = jnp.zeros(()), jnp.zeros(obs_dim)
    return Trail(zero, rows, rows, rows + jnp.inf, rows - jnp.inf, zero)


def extend(trail: Trail, obs: Array, action: Array, next_obs: Array) -> Trail:
    """The first observation counts, too."""
    start = trail.steps == 0
    low, high = jnp.minimum(trail.low, next_obs), jnp.maximum(trail.high, next_obs)
    return Trail(
        trail.steps + 1,
        next_obs,
        trail.total + next_obs,
        jnp.where(start, jnp.minimum(low, obs), low),
        jnp.where(start, jnp.maximum(high, obs), high),
        trail.squares + jnp.sum(action**2),
    )


class Goals(NamedTuple):
    """A goal space. Without `space`, goals come from around the outcomes met so far."""

    outcome: Callable[[Trail], Array]  # [g]
    space: Any = None  # [g, 2], the outcomes that are −1 and 1
    wanted: Any = None  # [g, 2], where goals are drawn; all of `space` without it
    centre: Any = None  # [o], of the observations that a policy sees; running ones without it
    spread: Any = None  # [o], infinite for those that it does not see
    gain: float | None = None  # of the linear policy; 1/√o without it
    obs_dim: int | None = None  # of the task that it is made for


def _cheetah(trail: Trail) -> Array:
    """Mean forward velocity, least height of the body."""
    return jnp.stack([trail.total[8] / trail.steps, trail.low[0]])


def _car(trail: Trail) -> Array:
    """Furthest position, range of positions, energy spent."""
    return jnp.stack([trail.high[0], trail.high[0] - trail.low[0], 0.1 * trail.squares])


def _halfcheetah_unit() -> tuple[NDArray[Any], NDArray[Any]]:
    """Their means and deviations of the joints' angles and velocities; the rest is not seen."""
    centre, spread = np.zeros(17, np.float32), np.full(17, np.inf, np.float32)
    centre[2:8] = 0.14, 0.17, 0.079, -0.082, -0.08, -0.084
    spread[2:8] = 0.22, 0.22, 0.25, 0.35, 0.27, 0.25
    centre[11:17] = 0.0065, -0.055, 0.014, -0.011, 0.073, 0.054
    spread[11:17] = 2.1, 2.9, 3.5, 3.9, 3.5, 3.4
    return centre, spread


SPACES: dict[str, Goals] = {
    "final": Goals(lambda trail: trail.last),
    "mean": Goals(lambda trail: trail.total / trail.steps),
    "half-cheetah": Goals(
        _cheetah,
        np.array([[-4.0, 7.0], [-3.0, 2.0]]),
        np.array([[2.0, 6.0], [-0.5, 0.0]]),
        *_halfcheetah_unit(),
        gain=0.15,
        obs_dim=17,
    ),
    "mountain-car": Goals(
        _car,
        np.array([[-0.6, 0.6], [0.0, 1.8], [0.0, 100.0]]),
        None,
        np.array([-0.3, 0.0]),
        np.array([0.9, 0.07]),
        gain=1.0,
        obs_dim=2,
    ),
}


def require(name: str, obs_dim: int) -> Goals:
    """The space, if it is made for a task with so many observations."""
    goals = SPACES[name]
    if goals.obs_dim not in (None, obs_dim):
        raise UserError(
            f"the goals '{name}' are made for {goals.obs_dim} observations and the task has "
            f"{obs_dim}: set goals to final or mean"
        )
    return goals
