"""The behaviour policy μ in the environments, from step to step, as `training.loop` has it."""

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from adac.core.explorers import Transition, Uniform
from adac.errors import RunError
from adac.sb3.observations import Floats
from adac.sb3.policy import AgentPolicy
from adac.training.behaviour import fresh_memory
from adac.training.loop import ACT, WARMUP


class Acting:
    """Who acts, and what it remembers of each environment."""

    def __init__(self, policy: AgentPolicy, num_envs: int):
        self.policy, self.num_envs = policy, num_envs
        self._behaviour = policy.agent.behaviour
        self.explorer = self._behaviour.at(0)
        self.memory = fresh_memory(policy.running, self.explorer, num_envs)
        self.number = 0  # of the next action; a run may count its steps from 0 again

    def __call__(self, obs: Floats, first: NDArray[np.bool_], step: int) -> Floats:
        """Actions in [-1, 1], [n, d]."""
        running, explorer = self.policy.running, self._behaviour.at(step)
        if self.policy.agent.normalise_obs:
            running.observe(obs)
        if explorer != self.explorer:
            self.explorer = explorer
            self.memory = fresh_memory(running, explorer, self.num_envs)
            first = np.ones_like(first)
        if self.policy.noise_is_old:
            self.policy.noise_is_old, first = False, self._renewed(first)
        key = self.policy.keys[WARMUP if isinstance(explorer, Uniform) else ACT]
        drawn, self.memory = running.act(
            obs, self.memory, first, key, np.int32(self.number), explorer=explorer
        )
        self.number += 1
        action = np.asarray(drawn)
        if not np.isfinite(action).all():
            raise RunError(f"the action is not finite at step {step}: learning has diverged")
        return action

    def _renewed(self, first: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """gSDE draws its matrix where an episode begins, or where it is told to."""
        return np.ones_like(first) if self.policy.uses_sde else first

    @property
    def watches(self) -> bool:
        """Whether the agent wants to know what a step brought, beside the buffer."""
        return self.explorer.observes or self.policy.agent.intrinsic is not None

    def saw(
        self, obs: Floats, action: Floats, reward: Floats, next_obs: Floats, ended: Any
    ) -> None:
        running = self.policy.running
        if self.explorer.observes:
            columns: Any = (obs, action, reward, next_obs, ended)
            step = Transition(*columns)
            self.memory = running.remember(self.memory, step, explorer=self.explorer)
        if self.policy.agent.intrinsic is not None:
            running.collect(obs, action, next_obs)

    def restore(self, memory: Any, step: int) -> None:
        """Where it stood when it was saved, if that was in as many environments."""
        explorer = self._behaviour.at(step)
        fresh = fresh_memory(self.policy.running, explorer, self.num_envs)
        shapes = [jax.numpy.shape(leaf) for leaf in jax.tree.leaves(fresh)]
        if shapes == [jax.numpy.shape(leaf) for leaf in jax.tree.leaves(memory)]:
            self.explorer, self.memory = explorer, memory
