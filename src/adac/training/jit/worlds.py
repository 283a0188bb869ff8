"""Tasks with a functional interface: a state goes in, a state comes out, and all of it is JAX."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.errors import UserError


class Outcome(NamedTuple):
    """What a step brought: `obs` is the episode's own next observation, also where it ends."""

    obs: Array  # [o]
    reward: Array
    terminated: Array
    truncated: Array  # by a time limit: its value still counts


@runtime_checkable
class World(Protocol):
    """What the driver asks of a task; it resets by itself what has ended."""

    @property
    def name(self) -> str: ...

    @property
    def obs_dim(self) -> int: ...

    @property
    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lowest and highest actions, [d] each."""

    def reset(self, key: Array) -> tuple[Any, Array]:
        """A state, and its observation [o]."""

    def step(self, state: Any, action: Array, key: Array) -> tuple[Any, Outcome]:
        """`action` [d] in the task's units."""


@dataclass(frozen=True)
class Gymnax:
    """A task with gymnax's interface: `reset_env` and `step_env`, which do not reset by themselves.

    Since its version 1 a task says itself when it `is_truncated`. Before, `done` meant both, but
    most tasks count steps in `state.time`, up to `params.max_steps_in_episode`.
    """

    env: Any
    params: Any = None

    def __post_init__(self) -> None:
        if self.params is None:
            object.__setattr__(self, "params", self.env.default_params)

    @property
    def name(self) -> str:
        return str(getattr(self.env, "name", type(self.env).__name__))

    @property
    def obs_dim(self) -> int:
        return int(np.prod(self.env.observation_space(self.params).shape))

    @property
    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        space = self.env.action_space(self.params)
        if not hasattr(space, "low"):
            raise UserError(f"{self.name} has no continuous actions, and adac learns no others")
        low, high = (
            np.broadcast_to(np.asarray(end, np.float32), space.shape or (1,)).ravel()
            for end in (space.low, space.high)
        )
        return low, high

    def reset(self, key: Array) -> tuple[Any, Array]:
        obs, state = self.env.reset_env(key, self.params)
        return state, jnp.ravel(obs).astype(jnp.float32)

    def step(self, state: Any, action: Array, key: Array) -> tuple[Any, Outcome]:
        shape = self.env.action_space(self.params).shape
        obs, state, reward, done, _ = self.env.step_env(
            key, state, action.reshape(shape), self.params
        )
        ended, late = self._limits(state, jnp.asarray(done))
        reward = jnp.asarray(reward, jnp.float32).reshape(())
        return state, Outcome(jnp.ravel(obs).astype(jnp.float32), reward, ended, late)

    def _limits(self, state: Any, done: Array) -> tuple[Array, Array]:
        """Whether the episode is over by itself, or by its time limit alone."""
        if hasattr(self.env, "is_truncated"):
            return done, self.env.is_truncated(state, self.params) & ~done
        most = getattr(self.params, "max_steps_in_episode", None)
        time = getattr(state, "time", None)
        late = done & (time >= most) if time is not None and most is not None else done & False
        return done & ~late, late


@dataclass(frozen=True)
class Brax:
    """A task with brax's interface: reset(key) and step(state, action), actions in [-1, 1].

    A time limit is its `state.info["truncation"]`, as brax's EpisodeWrapper has it; leave out its
    AutoResetWrapper.
    """

    env: Any

    @property
    def name(self) -> str:
        return type(getattr(self.env, "unwrapped", self.env)).__name__

    @property
    def obs_dim(self) -> int:
        return int(self.env.observation_size)

    @property
    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        one = np.ones(int(self.env.action_size), np.float32)
        return -one, one

    def reset(self, key: Array) -> tuple[Any, Array]:
        state = self.env.reset(key)
        return state, state.obs.astype(jnp.float32)

    def step(self, state: Any, action: Array, key: Array) -> tuple[Any, Outcome]:
        state = self.env.step(state, action)
        done = state.done.astype(bool)
        late = jnp.asarray(state.info.get("truncation", 0.0)).astype(bool) & done
        return state, Outcome(
            state.obs.astype(jnp.float32), state.reward.astype(jnp.float32), done & ~late, late
        )


def world_of(env: Any) -> World:
    if isinstance(env, World):
        return env
    if hasattr(env, "step_env") and hasattr(env, "reset_env"):
        return Gymnax(env)
    if hasattr(env, "observation_size") and hasattr(env, "action_size"):
        return Brax(env)
    raise UserError(
        f"{env!r} has no functional interface: give a task of gymnax or brax, or a World "
        "(docs/howto/jax-environments.md); for any other there is adac.Learner"
    )
