"""The loop: act, learn, step the simulator, store.

`advance` dispatches the action and the update after it, and as soon as the action is there steps
the simulator, while XLA computes: XLA always has the next thing to do, and never waits for Python.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.core.agent import Agent, AgentState
from adac.core.explorers import Explorer, Transition, Uniform
from adac.envs import maze_of
from adac.errors import RunError
from adac.runs.checkpoint import flatten, unflatten
from adac.training.answers import Floats
from adac.training.behaviour import fresh_memory
from adac.training.compiled import Late, RunningAgent, compile_agent, no_late
from adac.training.coverage import Coverage
from adac.training.environments import Environments, Episode
from adac.training.hindsight import hindsight_of
from adac.training.memory import require_room
from adac.training.priorities import Priorities
from adac.training.replay import Places, Replay, Returns, Rows

# Domains of the run's random keys: each use has its own.
INIT, ACT, WARMUP, UPDATE, DIAGNOSE, PREDICT, SAMPLE, GAP = range(8)

BLOCK = 4_096  # rows from elsewhere that are looked at together
Snapshot = tuple[dict[str, NDArray[Any]], dict[str, Any]]  # arrays, and plain facts


def run_keys(seed: int) -> list[Array]:
    """One key for each domain."""
    root = jax.random.key(seed)
    return [jax.random.fold_in(root, domain) for domain in range(8)]


class Loop:
    """An agent in its environments, from step to step; all of it can be saved and restored."""

    def __init__(self, agent: Agent, environments: Environments, seed: int):
        self.agent, self.environments, self.seed = agent, environments, seed
        self.obs_dim, self.action_dim = environments.obs_dim, environments.action_dim
        self.keys = run_keys(seed)
        program = compile_agent(agent, self.obs_dim, self.action_dim)
        require_room(agent, program.rows.width, program.numbers)
        self.running = RunningAgent(program, self.keys[INIT])
        self._late = no_late(agent, environments.num_envs)  # not () with a bonus
        self._behaviour = agent.behaviour
        self.explorer = self._behaviour.at(0)  # who acted last
        self.memory = self.init_memory(self.explorer)
        seeds = np.random.SeedSequence((seed, SAMPLE))
        self._replay = Replay(agent.replay_size, program.rows, seeds)
        self.coverage = Coverage(self.obs_dim, maze_of(environments.model))
        self._hindsight = hindsight_of(
            environments.model,
            environments.observation_space,
            environments.name,
            agent.hindsight,
            agent.n_steps,
            self._replay,
        )
        self._returns = Returns(agent.n_steps, agent.base.discount)
        alpha, beta = agent.priority_alpha, agent.priority_beta
        self._priorities = Priorities(self._replay, alpha, beta) if alpha else None
        self.updates = 0
        self.offline = 0  # updates that no step made due
        self._left_out = 0  # updates that were due and not made, or made and not due
        self.horizon = 1_000_000  # steps over which β is annealed; set by `train`
        self.recent: list[Episode] = []  # finished since the last log
        self._collected = np.zeros(environments.num_envs)  # bonus of the unfinished episodes
        self._bonus: Any = None  # of the latest step, while it is not yet stored
        self._ended: list[tuple[int, Episode]] = []  # by the latest step
        self._begun = False
        self.acted_at = 0  # the step at which the latest action was chosen

    def init_memory(self, explorer: Explorer, num_envs: int | None = None) -> Any:
        count = self.environments.num_envs if num_envs is None else num_envs
        return fresh_memory(self.running, explorer, count)

    @property
    def step(self) -> int:
        """Environment steps so far, over all environments."""
        return self.environments.steps

    @property
    def state(self) -> AgentState:
        """Everything learned, as one value; a training step makes a new one."""
        return self.running.state

    @property
    def replay(self) -> Replay:
        self.settle()
        return self._replay

    def advance(self) -> None:
        """One step of every environment, and the updates that are due."""
        if not self._begun:
            self.environments.begin()
            self._begun = True
        obs = self.environments.obs
        if self.agent.normalise_obs:
            self.running.observe(obs)
        drawn = self._dispatch_action(obs)
        self.coverage.see(obs)
        self._dispatch_updates()
        self.settle()
        action = self._finite_action(drawn)
        step = self.environments.step(action)
        ended = self.environments.first
        self._replay.add(
            obs=obs,
            action=action,
            reward=step.reward,
            bonus=np.zeros(len(obs)),
            continues=step.continues,
            next_obs=step.next_obs,
            ahead=np.where(ended, 0, len(obs)),
        )
        if self._hindsight is not None:
            self._hindsight.added(len(obs), np.flatnonzero(ended))
        if self.explorer.observes:
            reward = step.reward * (not self.agent.reward_free)
            columns: Any = (obs, action, reward, step.next_obs, ended)
            brought = Transition(*columns)
            self.memory = self.running.remember(self.memory, brought, explorer=self.explorer)
        self._ended = list(zip(np.flatnonzero(ended), step.finished, strict=True))
        if self._late:
            self._bonus = self.running.collect(obs, action, step.next_obs)
        else:
            self._collect(np.zeros(len(obs), np.float32))

    def add(
        self,
        obs: Floats,
        action: Floats,
        reward: Floats,
        next_obs: Floats,
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_] | None,
    ) -> None:
        """Transitions from elsewhere, in order; actions in [-1, 1]."""
        ended = terminated if truncated is None else terminated | truncated
        ended = np.append(ended[:-1], True)
        columns = {
            "obs": obs,
            "action": action,
            "reward": reward,
            "bonus": np.zeros(len(obs), np.float32),
            "continues": 1.0 - terminated,
            "next_obs": next_obs,
            "ahead": 1.0 - ended,
        }
        self.add_rows(self._replay.spec.pack(columns))

    def add_rows(self, rows: Rows) -> None:
        """Rows of a buffer like this one, the oldest first; the latest that there is room for."""
        self.settle()
        self._cut(np.ones(self.environments.num_envs, bool))
        rows = rows[-self._replay.capacity :]
        columns = self._replay.spec.unpack(rows, list(self._replay.spec.fields))
        there = np.arange(len(rows)) + columns["ahead"] < len(rows)
        for begin in range(0, len(rows), BLOCK):
            some = {name: column[begin : begin + BLOCK] for name, column in columns.items()}
            if self.agent.normalise_obs:
                self.running.observe(some["obs"])
            bonus = self._bonus_of(some["obs"], some["action"], some["next_obs"])
            ahead = np.where(there[begin : begin + BLOCK], some["ahead"], 0)
            self._replay.add(**(some | {"bonus": bonus, "ahead": ahead}))
        if self._hindsight is not None:
            self._hindsight.rebuild()

    def _cut(self, where: NDArray[np.bool_]) -> None:
        """Where true, an environment's next row will not follow its latest."""
        count = len(where)
        if len(self._replay) < count:
            return
        ahead = self._replay.recent(count)[:, self._replay.spec.columns["ahead"]][:, 0]
        # Rows from elsewhere are not the environments', and never that many ahead of one another.
        self._replay.put("ahead", np.where(where & (ahead == count), 0, ahead))

    def _bonus_of(self, obs: Floats, action: Floats, next_obs: Floats) -> Floats:
        if not self._late:
            return np.zeros(len(obs), np.float32)
        return np.asarray(self.running.bonus(obs, action, next_obs))

    def settle(self) -> None:
        """Wait for the latest step's bonus, and store it."""
        if self._bonus is not None:
            bonus, self._bonus = np.asarray(self._bonus), None
            self._require_finite_bonus(bonus)
            self._replay.put("bonus", bonus)
            self._collect(bonus)

    def _collect(self, bonus: Floats) -> None:
        self._collected += bonus
        for i, episode in self._ended:
            self.recent.append(episode._replace(bonus=float(self._collected[i])))
            self._collected[i] = 0.0

    def _dispatch_action(self, obs: Floats) -> Any:
        self.acted_at = self.step
        explorer, first = self._behaviour.at(self.step), self.environments.first
        if explorer != self.explorer:  # it begins here, wherever the episode is
            self.explorer, self.memory = explorer, self.init_memory(explorer)
            first = np.ones_like(first)
        key = self.keys[WARMUP if isinstance(explorer, Uniform) else ACT]
        drawn, self.memory = self.running.act(
            obs, self.memory, first, key, np.int32(self.step), explorer=explorer
        )
        return drawn

    def _finite_action(self, drawn: Any) -> Floats:
        action = np.asarray(drawn)
        if not np.isfinite(action).all():  # else the task is blamed for what it makes of it
            self._require_finite_bonus(float(self.running.metrics.get("bonus", 0.0)))
            raise RunError(f"the action is not finite at step {self.step}: learning has diverged")
        return action

    def _dispatch_updates(self) -> None:
        """Asynchronous: nothing here waits for a result, and none needs the step being taken."""
        learned_from = max(self.step - self.agent.learn_after, 0) / self.environments.action_repeat
        due = int(learned_from * self.agent.updates_per_step) - self.updates - self._left_out
        for _ in range(due if len(self._replay) else 0):
            self._update()

    def update_offline(self) -> None:
        """One from the buffer as it is, beside those that steps of the environments make due."""
        self.settle()
        self.offline += 1
        self._left_out -= 1
        self._update()

    def _update(self) -> None:
        self.updates += 1
        drawn_from, progress = self._priorities or self._replay, self.step / self.horizon
        places = drawn_from.draw(self.agent.batch_size)
        errors = self.running.update(
            self._take(places),
            self.keys[UPDATE],
            np.int32(self.updates),
            np.float32(progress),
            improve=self.updates % self.agent.base.policy_delay == 0,
            late=self._late_bonus(places),
            weights=self._priorities.weights(places, progress) if self._priorities else (),
        )
        if self._priorities is not None:
            self._priorities.expect(places, errors)

    def _take(self, places: Places) -> Rows:
        if self._hindsight is not None:
            return self._hindsight.relabel(places, self._replay.take(places))
        if self._returns.steps == 1:
            return self._replay.take(places)
        self.settle()  # the latest bonus may be in an earlier row's return
        return self._returns.take(self._replay, places)

    def _late_bonus(self, places: Places) -> Late:
        if self._bonus is None:
            return self._late
        ages, last = self._replay.ages(places), self.environments.num_envs - 1
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
        seen = self.running.diagnose(rows, recent, self.keys[DIAGNOSE], number)
        values = {name: float(value) for name, value in (self.running.metrics | seen).items()}
        self._require_finite_bonus(values.get("bonus", 0.0))
        for name, value in values.items():
            if not np.isfinite(value):
                raise RunError(
                    f"{name} is {value} at step {self.step}: learning has diverged; "
                    "a smaller learning rate or reward scale may help"
                )
        return values

    def require_finite(self) -> None:
        for leaf in self.running.arrays:
            if not np.isfinite(np.asarray(leaf)).all():
                raise RunError(
                    f"the weights are not finite at step {self.step}: learning has diverged, and "
                    "there is nothing worth saving"
                )

    def state_bytes(self) -> int:
        """What a checkpoint of this run takes at most: the agent, and long episodes' actions."""
        leaves = jax.tree.leaves((self.state, self.memory))
        return 2 * sum(int(leaf.nbytes) for leaf in leaves) + 2**30

    def snapshot(self) -> Snapshot:
        """Everything but the rows of the replay buffer, which a checkpoint stores by segments."""
        self.settle()
        world_arrays, world_facts = self.environments.snapshot()
        arrays = flatten({"agent": self.state, "memory": self.memory})
        arrays |= {f"world.{name}": value for name, value in world_arrays.items()}
        arrays |= {f"coverage.{name}": value for name, value in self.coverage.snapshot().items()}
        facts = {
            "world": world_facts,
            "begun": self._begun,
            "acted_at": self.acted_at,
            "updates": self.updates,
            "left_out": self._left_out,
            "offline": self.offline,
            "horizon": self.horizon,
            "replay_random": self._replay.random_state(),
            "metrics": {name: float(value) for name, value in self.running.metrics.items()},
            "recent": [list(episode) for episode in self.recent],
            "collected": self._collected.tolist(),
        }
        if self._priorities is not None:
            rows, facts["priorities"] = self._priorities.snapshot()
            arrays |= {f"priorities.{name}": value for name, value in rows.items()}
        return arrays, facts

    def restore(
        self, arrays: dict[str, NDArray[Any]], facts: dict[str, Any], *, with_replay: bool = True
    ) -> list[str]:
        """Stand where the snapshot was taken; returns a warning for each place not found again.

        The rows of the replay buffer are already there, or are not wanted.
        """
        self.environments.steps = int(facts["world"]["steps"])
        self.acted_at = int(facts.get("acted_at", self.step - self.environments.num_envs))
        self.running.state = unflatten({"agent": self.state}, arrays)["agent"]
        self.require_finite()
        self.updates, self.horizon = int(facts["updates"]), max(int(facts["horizon"]), 1)
        self._left_out, self.offline = int(facts.get("left_out", 0)), int(facts.get("offline", 0))
        metrics = facts["metrics"].items()
        self.running.metrics = {name: jnp.float32(value) for name, value in metrics}
        self.recent = [_episode(*values) for values in facts["recent"]]
        self._collected = np.array(facts["collected"], float)
        if self._collected.shape != (self.environments.num_envs,):
            raise ValueError("its bonuses are those of other environments")
        self.coverage.restore(_part(arrays, "coverage."))
        if not with_replay:  # as many transitions as at the start, before it learns on
            decisions = self.step / self.environments.action_repeat
            self._left_out = int(decisions * self.agent.updates_per_step) - self.updates
            self._collected[:] = 0.0
            return []
        return self._restore_place(arrays, facts)

    def _restore_place(self, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> list[str]:
        """Where the run stood in its episodes, and what its explorer remembered of them."""
        self._replay.require_chained()
        if self.step:
            self.explorer = self._behaviour.at(self.acted_at)
        memory = self.init_memory(self.explorer)
        self.memory = unflatten({"memory": memory}, arrays)["memory"]
        self._replay.set_random_state(facts["replay_random"])
        if self._priorities is not None:
            self._priorities.restore(_part(arrays, "priorities."), facts.get("priorities"))
        self._begun = bool(facts["begun"])
        if not self._begun:
            return []
        notes = self.environments.restore(_part(arrays, "world."), facts["world"])
        self._cut(self.environments.first)
        self._collected[self.environments.first] = 0.0  # also of an episode not found again
        if self._hindsight is not None:
            self._hindsight.rebuild()
        return notes


def _episode(total: Any, length: Any, bonus: Any, told: Any = None) -> Episode:
    numbers = {str(name): float(value) for name, value in (told or {}).items()}
    return Episode(float(total), int(length), float(bonus), numbers)


def _part(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
