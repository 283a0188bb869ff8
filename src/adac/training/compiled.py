"""The jitted functions of one agent on one task size, compiled once and shared.

Over the border of a jitted call go short lists of arrays (`layout`): to take nested modules apart
and put them together again takes longer than a small agent's arithmetic. What an update does not
change does not go through it.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from adac.core import agent as core
from adac.core.agent import Agent, AgentState, Batch, Metrics, Net
from adac.core.normalise import observe
from adac.training.packing import Arrays, Layout, Weights, moved
from adac.training.replay import unpack, width

Late = tuple[Any, Any] | tuple[()]

# Eigen's products instead of YNNPACK's, and not split over threads where XLA heeds that: an update
# has many small ones, and takes 3 to 10 % less time this way (docs/performance.md).
SMALL_PRODUCTS = {
    "xla_cpu_multi_thread_eigen": False,
    "xla_cpu_experimental_ynn_fusion_type": "",
}


def known_options(options: dict[str, Any]) -> dict[str, Any] | None:
    """None where XLA does not know them: one is experimental, and may go."""
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(jnp.negative, compiler_options=options)(jnp.zeros(()))
    except jax.errors.JaxRuntimeError:
        return None
    return options


def no_late(agent: Agent, num_envs: int = 1) -> Late:
    """Of the shape that `with_late` reads, with nothing in it; () where no bonus is stored."""
    if agent.intrinsic is None or agent.intrinsic.fresh_bonus:
        return ()
    return np.zeros(num_envs, np.float32), np.full(agent.batch_size, -1, np.int32)


def with_late(batch: Batch, late: Late) -> Batch:
    """Bonuses that were still being computed when the rows were taken: (of each environment's
    latest transition, which environment's a row is or −1). So that no update waits for them."""
    if not late:
        return batch
    bonus, whose = late
    return batch._replace(bonus=jnp.where(whose < 0, batch.bonus, bonus[whose]))


class Steps(NamedTuple):
    """Keys are folded from a run key and a step number inside, so a run has no random state."""

    layout: Layout
    init: Callable[[Array], Arrays]  # (key)
    build: Callable[[Arrays], AgentState]
    pack: Callable[[AgentState], Arrays]
    act: Callable[..., tuple[Array, Any]]  # (weights, obs, memory, first, key, step)
    random: Callable[..., Array]  # (count, key, step): a uniform action, before learning
    greedy: Callable[..., Array]  # (weights, obs)
    update: Callable[..., tuple[Arrays, Metrics]]  # (moving, still, rows, late, key, …)
    bonus: Callable[..., Array]  # (intrinsic, obs, action, next_obs)
    observe: Callable[..., Arrays]  # (statistics, obs)
    diagnose: Callable[..., Metrics]  # (arrays, rows, recent rows, key, step)


class Functions:
    """What each step computes, from lists of arrays to lists of arrays."""

    def __init__(self, agent: Agent, obs_dim: int, action_dim: int):
        self.agent, self.obs_dim, self.action_dim = agent, obs_dim, action_dim
        begin = partial(core.init, agent, obs_dim, action_dim)
        self.layout = Layout(agent, jax.eval_shape(begin, jax.random.key(0)))

    def init(self, key: Array) -> Arrays:
        state = core.init(self.agent, self.obs_dim, self.action_dim, key)
        return self.layout.whole.pack(state)

    def act(
        self, arrays: Arrays, obs: Array, memory: Any, first: Array, key: Array, step: Array
    ) -> tuple[Array, Any]:
        state = _just(self.layout.behaviour.build(arrays))
        return core.act(self.agent, state, obs, memory, first, jax.random.fold_in(key, step))

    def random(self, count: int, key: Array, step: Array) -> Array:
        shape = (count, self.action_dim)
        return jax.random.uniform(jax.random.fold_in(key, step), shape, minval=-1.0, maxval=1.0)

    def greedy(self, arrays: Arrays, obs: Array) -> Array:
        return core.greedy(self.agent, _just(self.layout.target.build(arrays)), obs)

    def update(
        self,
        moving: Arrays,
        still: Arrays,
        rows: Array,
        late: Late,
        key: Array,
        count: Array,
        progress: Array,
        improve: bool,
    ) -> tuple[Arrays, Metrics]:
        layout, arrays = self.layout, [*moving, *still]
        layout.moving[improve].put(arrays, moving)
        layout.still[improve].put(arrays, still)
        batch = with_late(self._unpack(rows), late)
        key = jax.random.fold_in(key, count)
        state = layout.whole.build(arrays)
        state, metrics = core.update(self.agent, state, batch, key, progress, improve=improve)
        return layout.moving[improve].pack(moved(state, improve)), metrics

    def bonus(self, arrays: Arrays, obs: Array, action: Array, next_obs: Array) -> Array:
        intrinsic = self.agent.intrinsic
        assert intrinsic is not None
        return intrinsic.bonus(self.layout.intrinsic.build(arrays), obs, action, next_obs)

    def observe(self, arrays: Arrays, obs: Array) -> Arrays:
        """Running statistics of the observations."""
        part = self.layout.statistics
        return part.pack(observe(part.build(arrays), obs))

    def diagnose(
        self, arrays: Arrays, rows: Array, recent: Array, key: Array, step: Array
    ) -> Metrics:
        state, obs = self.layout.whole.build(arrays), self._unpack(rows).obs
        key = jax.random.fold_in(key, step)
        return core.diagnose(self.agent, state, obs, self._unpack(recent), key)

    def _unpack(self, rows: Array) -> Batch:
        return unpack(rows, self.obs_dim, self.action_dim)


def _just(weights: Weights) -> AgentState:
    """A state with nothing in it but a policy's weights."""
    net = Net(weights.params, weights.params, ())
    return AgentState(net, (), Net((), (), ()), (), (), weights.statistics)


@lru_cache(maxsize=64)
def compile_steps(agent: Agent, obs_dim: int, action_dim: int) -> Steps:
    """Lazily compiled; the moving arrays given to `update` are donated."""
    plain = Functions(agent, obs_dim, action_dim)
    return Steps(
        layout=plain.layout,
        init=jax.jit(plain.init),
        build=jax.jit(plain.layout.whole.build),
        pack=jax.jit(plain.layout.whole.pack),
        act=jax.jit(plain.act),
        random=jax.jit(plain.random, static_argnums=0),
        greedy=jax.jit(plain.greedy),
        update=jax.jit(
            plain.update,
            static_argnames="improve",
            donate_argnums=0,
            compiler_options=known_options(SMALL_PRODUCTS),
        ),
        bonus=jax.jit(plain.bonus),
        observe=jax.jit(plain.observe),
        diagnose=jax.jit(plain.diagnose),
    )


def metric_names(agent: Agent, obs_dim: int, action_dim: int) -> list[str]:
    """All that `update` and `diagnose` report, without running them."""
    steps = compile_steps(agent, obs_dim, action_dim)
    key = jax.random.key(0)
    arrays = jax.eval_shape(steps.init, key)
    rows = jnp.zeros((agent.batch_size, width(obs_dim, action_dim)))
    zero = jnp.zeros(())
    count = jnp.zeros((), jnp.int32)
    parts = steps.layout.moving[True].of(arrays), steps.layout.still[True].of(arrays)
    update: Any = steps.update  # traced once, for this and for its first call
    _, learned = update.eval_shape(*parts, rows, no_late(agent), key, count, zero, improve=True)
    seen = jax.eval_shape(steps.diagnose, arrays, rows, rows, key, count)
    return [*sorted(learned), *sorted(seen)]
