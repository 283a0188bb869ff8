"""Learning rates that change while a run goes on.

A rate is a constant of an agent's compiled update. Where Stable-Baselines3 is given a schedule, the
same update is compiled with the rate as an argument.
"""

import copy
from typing import Any

import jax
import numpy as np
from jax import Array

from adac.core.agent import Agent, Metrics
from adac.training.compiled import SMALL_PRODUCTS, Program, compile_agent, known_options
from adac.training.packing import Arrays


def program_of(agent: Agent, obs_dim: int, action_dim: int, *, scheduled: bool) -> Program:
    """Compiled functions, shared with every run of the same agent but where a schedule is one's."""
    if scheduled:
        return ScheduledProgram(agent, obs_dim, action_dim)
    return compile_agent(agent, obs_dim, action_dim)


class ScheduledProgram(Program):
    """A program whose `rate` may be set before any update."""

    def __init__(self, agent: Agent, obs_dim: int, action_dim: int):
        super().__init__(agent, obs_dim, action_dim)
        self.rate = agent.base.actor_lr
        compiled = jax.jit(
            self._at_rate,
            static_argnames="improve",
            donate_argnums=1,
            compiler_options=known_options(SMALL_PRODUCTS),
        )

        def update(*args: Any, **named: Any) -> tuple[Arrays, Metrics]:
            found: tuple[Arrays, Metrics] = compiled(np.float32(self.rate), *args, **named)
            return found

        self.update = update  # type: ignore[assignment]

    def _at_rate(
        self, rate: Array, *args: Any, improve: bool, **named: Any
    ) -> tuple[Arrays, Metrics]:
        traced = copy.copy(self)
        traced.agent = _with_rate(self.agent, rate)
        update: Any = Program._update
        found: tuple[Arrays, Metrics] = update(traced, *args, improve=improve, **named)
        return found


def _with_rate(agent: Agent, rate: Array) -> Agent:
    """Around the settings' own checks, which a number that is not yet known cannot pass."""
    base, changed = copy.copy(agent.base), copy.copy(agent)
    fixed = not getattr(base, "temperature_lr", 0.0)
    for name in ("actor_lr", "critic_lr", *(() if fixed else ("temperature_lr",))):
        object.__setattr__(base, name, rate)
    object.__setattr__(changed, "base", base)
    return changed
