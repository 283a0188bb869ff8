"""The loop: act, learn, step the simulator, store.

`advance` dispatches the action and the update after it, and as soon as the action is there steps
the simulator, while XLA computes: XLA always has the next thing to do, and never waits for Python.
"""

from typing import Any

import jax
import numpy as np

from adac.core.agent import Agent, AgentState
from adac.errors import RunError
from adac.training.compiled import Late, compile_steps, no_late
from adac.training.environments import Episode, Floats, World
from adac.training.live import Live
from adac.training.replay import Places, Replay

# Domains of the run's random keys: each use has its own.
INIT, ACT, WARMUP, UPDATE, DIAGNOSE, PREDICT, SAMPLE, GAP = range(8)


class Loop:
    """An agent in a world, from step to step; `Learner` is what a program holds on to."""

    def __init__(self, agent: Agent, world: World, seed: int):
        self.agent, self.world, self.seed = agent, world, seed
        self.obs_dim, self.action_dim = world.obs_dim, world.action_dim
        root = jax.random.key(seed)
        self.keys = [jax.random.fold_in(root, domain) for domain in range(8)]
        self.live = Live(compile_steps(self.agent, self.obs_dim, self.action_dim), self.keys[INIT])
        self._late = no_late(self.agent, world.num_envs)  # not () where bonuses are stored
        self.memory = self.agent.explorer.init_memory(
            world.num_envs, self.action_dim, self.agent.networks.latent
        )
        self._replay = self._empty_replay()
        self.updates = 0
        self.horizon = 1_000_000  # steps over which β is annealed; set by `learn`
        self.recent: list[Episode] = []  # finished since the last log
        self._collected = np.zeros(world.num_envs)  # bonus of the unfinished episodes
        self._bonus: Any = None  # of the latest step, while it is not yet stored
        self._ended: list[tuple[int, Episode]] = []  # by the latest step
        self._begun = False

    def _empty_replay(self) -> Replay:
        return Replay(
            self.agent.replay_size,
            self.obs_dim,
            self.action_dim,
            np.random.SeedSequence((self.seed, SAMPLE)),
        )

    @property
    def step(self) -> int:
        """Environment steps so far, over all environments."""
        return self.world.steps

    @property
    def state(self) -> AgentState:
        """Everything learned, as one value; a training step makes a new one."""
        return self.live.state

    @property
    def replay(self) -> Replay:
        self.settle()
        return self._replay

    def advance(self) -> None:
        """One step of every environment, and the updates that are due."""
        if not self._begun:
            self.world.begin()
            self._begun = True
        obs = self.world.obs
        if self.agent.normalise_obs:
            self.live.observe(obs)
        drawn = self._dispatch_action(obs)
        self._dispatch_updates()
        self.settle()
        action = self._finite_action(drawn)
        step = self.world.step(action)
        columns = (obs, action, step.reward, np.zeros(len(obs)), step.continues, step.next_obs)
        self._replay.add(*columns)
        self._ended = list(zip(np.flatnonzero(self.world.first), step.finished, strict=True))
        if self._late:
            self._bonus = self.live.bonus(obs, action, step.next_obs)
        else:
            self._collect(np.zeros(len(obs), np.float32))

    def settle(self) -> None:
        """Wait for the latest step's bonus, and store it."""
        if self._bonus is not None:
            bonus, self._bonus = np.asarray(self._bonus), None
            self._require_finite_bonus(bonus)
            self._replay.put_bonus(bonus)
            self._collect(bonus)

    def _collect(self, bonus: Floats) -> None:
        self._collected += bonus
        for i, episode in self._ended:
            self.recent.append(episode._replace(bonus=float(self._collected[i])))
            self._collected[i] = 0.0

    def _dispatch_action(self, obs: Floats) -> Any:
        number = np.int32(self.step)
        if self.step < self.agent.warmup:
            return self.live.steps.random(len(obs), self.keys[WARMUP], number)
        first = self.world.first
        if self.step - self.world.num_envs < self.agent.warmup:
            first = np.ones_like(first)  # μ begins here, wherever the episode is
        drawn, self.memory = self.live.act(obs, self.memory, first, self.keys[ACT], number)
        return drawn

    def _finite_action(self, drawn: Any) -> Floats:
        action = np.asarray(drawn)
        if not np.isfinite(action).all():  # else the task is blamed for what it makes of it
            self._require_finite_bonus(float(self.live.metrics.get("bonus", 0.0)))
            raise RunError(f"the action is not finite at step {self.step}: learning has diverged")
        return action

    def _dispatch_updates(self) -> None:
        """Asynchronous: nothing here waits for a result, and none needs the step being taken."""
        learned_from = self.step - self.agent.warmup
        due = int(learned_from * self.agent.updates_per_step) - self.updates
        progress = np.float32(self.step / self.horizon)
        for _ in range(due if len(self._replay) else 0):
            self.updates += 1
            places = self._replay.draw(self.agent.batch_size)
            self.live.update(
                self._replay.take(places),
                self.keys[UPDATE],
                np.int32(self.updates),
                progress,
                improve=self.updates % self.agent.base.policy_delay == 0,
                late=self._late_bonus(places),
            )

    def _late_bonus(self, places: Places) -> Late:
        if self._bonus is None:
            return self._late
        ages, last = self._replay.ages(places), self.world.num_envs - 1
        return self._bonus, np.where(ages <= last, last - ages, -1).astype(np.int32)

    def _require_finite_bonus(self, bonus: Floats | float) -> None:
        if not np.isfinite(bonus).all():
            kind = type(self.agent.intrinsic).__name__
            raise RunError(f"the intrinsic reward {kind} is not finite at step {self.step}")

    def diagnose(self) -> dict[str, float]:
        """Losses and values of the last update, μ's bias and spread, saturation."""
        if not self.updates:
            return {}
        count = min(64, len(self.replay))
        rows = self.replay.rows[np.linspace(0, len(self.replay) - 1, count).astype(int)]
        recent = self.replay.recent(count)
        number = np.int32(self.step)
        seen = self.live.diagnose(rows, recent, self.keys[DIAGNOSE], number)
        values = {name: float(value) for name, value in (self.live.metrics | seen).items()}
        self._require_finite_bonus(values.get("bonus", 0.0))
        for name, value in values.items():
            if not np.isfinite(value):
                raise RunError(
                    f"{name} is {value} at step {self.step}: learning has diverged; "
                    "a smaller learning rate or reward scale may help"
                )
        return values
