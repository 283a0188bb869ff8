"""The driver: `lax.scan` over act, update, step and store, for one seed or for many at once.

The order within an iteration is `training.loop`'s: the action is chosen, the updates that are due
learn from what was stored before, then the task steps. Keys are folded as there, so seed 0 here and
seed 0 of a `Learner` differ only in how their compilers round.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.core import agent as core
from adac.core import presets, settings
from adac.core.agent import Agent, AgentState
from adac.core.batch import Batch, batch_fields
from adac.core.explorers import Explorer, Sizes, Transition, Uniform
from adac.core.normalise import Statistics, observe
from adac.core.validation import whole
from adac.errors import RunError, UserError
from adac.runs.export.facts import Facts
from adac.training.compiled import SMALL_PRODUCTS, known_options
from adac.training.environments import Scaling
from adac.training.jit.plan import Chunk, Plan
from adac.training.jit.worlds import World, world_of
from adac.training.loop import ACT, INIT, UPDATE, WARMUP
from adac.training.policy import TargetPolicy
from adac.training.replay import RowSpec

RESET, STEP = 100, 101  # domains of the task's keys, beside the loop's


class Carry(NamedTuple):
    """All that changes from step to step, of one seed."""

    agent: AgentState
    memory: Any
    worlds: Any  # [N]
    obs: Array  # [N, o]
    first: Array  # [N]
    episodes: Array  # [N], the number of each one's episode
    returns: Array  # [N], so far
    rows: Array  # [capacity, width], the replay buffer


class Seen(NamedTuple):
    """Of each iteration."""

    ended: Array  # [N]
    returns: Array  # [N], of what ended
    critic_loss: Array
    q: Array


@dataclass(frozen=True)
class Trained:
    """What a training ended in; arrays have a leading axis for the seeds."""

    agent: Agent
    agent_name: str
    world: World
    seeds: list[int]
    state: AgentState
    steps: NDArray[np.int64]  # [C], environment steps at the end of each stretch
    returns: NDArray[np.float64]  # [S, C], mean return of episodes that ended in it; or NaN
    q: NDArray[np.float64]  # [S, C], the task critic's mean value at the end of it

    def state_of(self, place: int) -> AgentState:
        """One seed's, as `adac.init` and `adac.update` have it."""
        state: AgentState = jax.tree.map(lambda leaf: leaf[place], self.state)
        return state

    def policy(self, place: int = 0) -> TargetPolicy:
        """The target policy of one seed: to predict with, to save, to export."""
        low, high = self.world.bounds
        policy = core.target_policy(self.agent, self.state_of(place))
        total = int(self.steps[-1]) if len(self.steps) else 0
        facts = Facts(self.world.name, self.agent_name, self.seeds[place], total, False)
        space = gymnasium.spaces.Box(-np.inf, np.inf, (self.world.obs_dim,), np.float32)
        return TargetPolicy.of(
            self.agent, policy, Scaling(low, high, (high - low) / 2), facts, space
        )


def train(
    env: Any,
    agent: str | Agent = presets.DEFAULT,
    steps: int = 100_000,
    *,
    seeds: int | Sequence[int] = 1,
    num_envs: int = 1,
    overrides: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    log_every: int = 1_000,
) -> Trained:
    """Train on a task of JAX functions, all seeds at once; `seeds` is how many, or which.

    `log_every` is the length in steps of a stretch: one compiled scan, and one point of the curves.
    """
    world, steps = world_of(env), whole("steps", steps)
    chosen = presets.make(agent) if isinstance(agent, str) else agent
    chosen = settings.override(chosen, overrides or {})
    numbers = list(range(seeds)) if isinstance(seeds, int) else [whole("seed", s) for s in seeds]
    _require(chosen, steps, numbers, num_envs)
    plan = Plan(chosen, numbers, num_envs, steps)
    driver = Driver(chosen, world, num_envs, plan.capacity, horizon or steps)
    carry = driver.begin(numbers)
    curves: list[tuple[int, NDArray[Any], NDArray[Any]]] = []
    for chunk in plan.chunks(max(log_every // num_envs, 1)):
        carry, seen = driver.run(carry, chunk, numbers)
        curves.append((int(chunk.steps[-1]) + num_envs, *_means(seen)))
    if not np.isfinite(np.asarray(carry.obs)).all():
        raise RunError(f"an observation of {world.name} is not finite: learning has diverged")
    ends, returns, q = zip(*curves, strict=True)
    name = agent if isinstance(agent, str) else "custom"
    return Trained(
        chosen, name, world, numbers, carry.agent,
        np.array(ends), np.stack(returns, axis=1), np.stack(q, axis=1),
    )  # fmt: skip


def _require(agent: Agent, steps: int, seeds: list[int], num_envs: int) -> None:
    if steps < 1 or num_envs < 1 or not seeds:
        raise UserError("steps, num_envs and the number of seeds must be at least 1")
    if agent.n_steps > 1:
        raise UserError("n-step returns are not part of the compiled driver: set n_steps to 1")


def _means(seen: Seen) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of each seed, over a stretch [S, T, N]."""
    ended, returns = np.asarray(seen.ended), np.asarray(seen.returns, np.float64)
    count = ended.sum((1, 2))
    total = (returns * ended).sum((1, 2))
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean, np.asarray(seen.q, np.float64)[:, -1]


class Driver:
    """One agent on one task: its compiled scans."""

    def __init__(self, agent: Agent, world: World, num_envs: int, capacity: int, horizon: int):
        self.agent, self.world, self.num_envs = agent, world, num_envs
        self.capacity, self.horizon = capacity, horizon
        self.low, self.high = world.bounds
        self.rows = RowSpec(batch_fields(world.obs_dim, len(self.low)))
        self.sizes = Sizes(world.obs_dim, len(self.low), agent.networks.latent)
        self._scans: dict[Explorer, Callable[..., Any]] = {}

    def begin(self, seeds: list[int]) -> Carry:
        carry: Carry = jax.jit(jax.vmap(self._begin))(np.array(seeds, np.int32))
        return carry

    def _begin(self, seed: Array) -> Carry:
        count, sizes, root = self.num_envs, self.sizes, jax.random.key(seed)
        episodes = jnp.zeros(count, jnp.int32)
        worlds, obs = jax.vmap(partial(self._reset, root))(jnp.arange(count), episodes)
        return Carry(
            core.init(
                self.agent, self.world.obs_dim, len(self.low), jax.random.fold_in(root, INIT)
            ),
            self.agent.behaviour.at(0).init_memory(count, sizes),
            worlds,
            obs,
            jnp.ones(count, bool),
            episodes,
            jnp.zeros(count),
            jnp.zeros((self.capacity, self.rows.width)),
        )

    def _reset(self, root: Array, place: Array, episode: Array) -> tuple[Any, Array]:
        key = jax.random.fold_in(jax.random.fold_in(root, RESET), place)
        return self.world.reset(jax.random.fold_in(key, episode))

    def run(self, carry: Carry, chunk: Chunk, seeds: list[int]) -> tuple[Carry, Seen]:
        if chunk.begins:  # a new explorer begins here, wherever the episodes are
            memory = chunk.explorer.init_memory(self.num_envs, self.sizes)
            spread = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(seeds)), memory)
            carry = carry._replace(memory=spread, first=jnp.ones_like(carry.first))
        scanned: tuple[Carry, Seen] = self._scan(chunk.explorer)(
            carry, (chunk.steps, chunk.updates), chunk.places, np.array(seeds, np.int32)
        )
        return scanned

    def _scan(self, explorer: Explorer) -> Callable[..., Any]:
        if explorer not in self._scans:
            self._scans[explorer] = jax.jit(
                jax.vmap(partial(self._stretch, explorer), in_axes=(0, None, 0, 0)),
                donate_argnums=0,
                compiler_options=known_options(SMALL_PRODUCTS),
            )
        return self._scans[explorer]

    def _stretch(
        self,
        explorer: Explorer,
        carry: Carry,
        ticks: tuple[Array, Array],
        places: Array,
        seed: Array,
    ) -> tuple[Carry, Seen]:
        root = jax.random.key(seed)
        act_key = jax.random.fold_in(root, WARMUP if isinstance(explorer, Uniform) else ACT)
        update_key = jax.random.fold_in(root, UPDATE)

        def iterate(carry: Carry, tick: tuple[Array, Array, Array]) -> tuple[Carry, Seen]:
            step, numbers, places = tick
            if isinstance(carry.agent.statistics, Statistics):
                statistics = observe(carry.agent.statistics, carry.obs)
                carry = carry._replace(agent=carry.agent._replace(statistics=statistics))
            action, memory = self._act(explorer, carry, jax.random.fold_in(act_key, step))
            learned, loss, q = self._updates(carry, step, numbers, places, update_key)
            carry = carry._replace(agent=learned, memory=memory)
            carry, ended, returns = self._step(explorer, carry, action, step, root)
            return carry, Seen(ended, returns, loss, q)

        steps, updates = ticks
        return jax.lax.scan(iterate, carry, (steps, updates, places))

    def _act(self, explorer: Explorer, carry: Carry, key: Array) -> tuple[Array, Any]:
        policy = core.behaviour_policy(self.agent, carry.agent)
        acting = replace(self.agent, explorer=explorer)
        return core.act(acting, policy, carry.obs, carry.memory, carry.first, key)

    def _updates(
        self, carry: Carry, step: Array, numbers: Array, places: Array, key: Array
    ) -> tuple[AgentState, Array, Array]:
        """Those that are due. Which of them move the policies is known, not computed: a branch."""
        progress, delay = step / self.horizon, self.agent.base.policy_delay

        def learn(improve: bool, state: AgentState, number: Array, rows: Array) -> Any:
            batch = Batch(**self.rows.unpack(rows, Batch._fields))
            own = jax.random.fold_in(key, number)
            state, metrics = core.update(
                self.agent, state, batch, own, progress.astype(jnp.float32), improve=improve
            )
            return state, metrics["critic_loss"], metrics["q"]

        def one(kept: Any, due: tuple[Array, Array]) -> tuple[Any, None]:
            number, at = due
            kind = jnp.where(number == 0, 0, jnp.where(number % delay == 0, 2, 1))
            branches: list[Callable[..., Any]] = [
                lambda state, *_: (state, kept[1], kept[2]),
                partial(learn, False),
                partial(learn, True),
            ]
            return jax.lax.switch(kind, branches, kept[0], number, carry.rows[at]), None

        nothing = (carry.agent, jnp.zeros(()), jnp.zeros(()))
        kept, _ = jax.lax.scan(one, nothing, (numbers, places))
        state, loss, q = kept
        return state, loss, q

    def _step(
        self, explorer: Explorer, carry: Carry, action: Array, step: Array, root: Array
    ) -> tuple[Carry, Array, Array]:
        lanes = jnp.arange(self.num_envs)
        key = jax.random.fold_in(jax.random.fold_in(root, STEP), step)
        keys = jax.vmap(partial(jax.random.fold_in, key))(lanes)
        half = (self.high - self.low) / 2
        scaled = jnp.clip(self.low + (action + 1.0) * half, self.low, self.high)
        worlds, out = jax.vmap(self.world.step)(carry.worlds, scaled, keys)
        ended = out.terminated | out.truncated
        carry = self._store(explorer, carry, action, out, ended, step)
        returns, episodes = carry.returns + out.reward, carry.episodes + ended
        fresh = jax.vmap(partial(self._reset, root))(lanes, episodes)
        worlds, obs = jax.tree.map(partial(_where, ended), fresh, (worlds, out.obs))
        carry = carry._replace(
            worlds=worlds,
            obs=obs,
            first=ended,
            episodes=episodes,
            returns=jnp.where(ended, 0.0, returns),
        )
        return carry, ended, returns

    def _store(
        self, explorer: Explorer, carry: Carry, action: Array, out: Any, ended: Array, step: Array
    ) -> Carry:
        agent, obs, bonus = carry.agent, carry.obs, jnp.zeros(self.num_envs)
        if self.agent.intrinsic is not None:
            learned, bonus = self.agent.intrinsic.collect(agent.intrinsic, obs, action, out.obs)
            agent = agent._replace(intrinsic=learned)
        memory = carry.memory
        if explorer.observes:
            reward = out.reward * (not self.agent.reward_free)
            brought = Transition(obs, action, reward, out.obs, ended)
            memory = explorer.observe(memory, brought)
        stored = Batch(obs, action, out.reward, bonus, 1.0 - out.terminated, out.obs)
        flat = [jnp.reshape(part, (self.num_envs, -1)) for part in stored]
        at = (step + jnp.arange(self.num_envs)) % self.capacity
        rows = carry.rows.at[at].set(jnp.concatenate(flat, axis=1))
        return carry._replace(agent=agent, memory=memory, rows=rows)


def _where(ended: Array, fresh: Array, old: Array) -> Array:
    return jnp.where(ended.reshape(ended.shape + (1,) * (fresh.ndim - 1)), fresh, old)
