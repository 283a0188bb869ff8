"""The jitted functions of one agent on one task size, compiled once and shared.

Over the border of a jitted call go flat lists of arrays: to take nested modules apart and put them
together again takes longer than a small agent's arithmetic. What an update does not change does not
go through it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from adac import agent as core
from adac.agent import Agent, AgentState, Batch, Metrics, Net
from adac.normalise import Statistics, observe
from adac.replay import unpack, width

Leaves = list[Array]
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


class Weights(NamedTuple):
    """Just what acting reads."""

    params: Any
    statistics: Any


class Part:
    """Some of the state's leaves: their places in the flat list, and how to put them together."""

    def __init__(self, numbered: Any):
        self.places, self.tree = jax.tree.flatten(numbered)

    def of(self, leaves: Leaves) -> Leaves:
        return [leaves[place] for place in self.places]

    def put(self, leaves: Leaves, new: Sequence[Array]) -> None:
        for place, leaf in zip(self.places, new, strict=True):
            leaves[place] = leaf

    def build(self, leaves: Sequence[Array]) -> Any:
        return jax.tree.unflatten(self.tree, leaves)


class Layout:
    """Where each part of an AgentState lies in the flat list of its leaves."""

    def __init__(self, agent: Agent, shape: AgentState):
        leaves, tree = jax.tree.flatten(shape)
        state: AgentState = jax.tree.unflatten(tree, range(len(leaves)))
        self.whole = Part(state)
        self.behaviour = Part(Weights(core.behaviour_net(state).params, state.statistics))
        self.target = Part(Weights(core.target_weights(agent, state), state.statistics))
        self.intrinsic = Part(state.intrinsic)
        self.statistics = Part(state.statistics)
        learned = state._replace(statistics=())
        critic = state.critic._replace(target=())  # targets move with the policies
        self.moving = {False: Part((critic, state.intrinsic)), True: Part(learned)}
        self.still = {
            improve: Part(sorted(set(self.whole.places) - set(part.places)))
            for improve, part in self.moving.items()
        }


class Steps(NamedTuple):
    """Keys are folded from a run key and a step number inside, so a run has no random state."""

    layout: Layout
    init: Callable[[Array], AgentState]  # (key)
    act: Callable[..., tuple[Array, Any]]  # (weights, obs, memory, first, key, step)
    random: Callable[..., Array]  # (count, key, step): a uniform action, before learning
    greedy: Callable[..., Array]  # (weights, obs)
    update: Callable[..., tuple[Leaves, Metrics]]  # (moving, still, rows, late, key, …)
    bonus: Callable[..., Array]  # (intrinsic, obs, action, next_obs)
    observe: Callable[..., Statistics]
    diagnose: Callable[..., Metrics]  # (leaves, rows, recent rows, key, step)


class Functions:
    """What each step computes, from flat lists to flat lists."""

    def __init__(self, agent: Agent, obs_dim: int, action_dim: int):
        self.agent, self.obs_dim, self.action_dim = agent, obs_dim, action_dim
        self.layout = Layout(agent, jax.eval_shape(self.init, jax.random.key(0)))

    def init(self, key: Array) -> AgentState:
        return core.init(self.agent, self.obs_dim, self.action_dim, key)

    def act(
        self, leaves: Leaves, obs: Array, memory: Any, first: Array, key: Array, step: Array
    ) -> tuple[Array, Any]:
        state = _just(self.layout.behaviour.build(leaves))
        return core.act(self.agent, state, obs, memory, first, jax.random.fold_in(key, step))

    def random(self, count: int, key: Array, step: Array) -> Array:
        shape = (count, self.action_dim)
        return jax.random.uniform(jax.random.fold_in(key, step), shape, minval=-1.0, maxval=1.0)

    def greedy(self, leaves: Leaves, obs: Array) -> Array:
        return core.greedy(self.agent, _just(self.layout.target.build(leaves)), obs)

    def update(
        self,
        moving: Leaves,
        still: Leaves,
        rows: Array,
        late: Late,
        key: Array,
        count: Array,
        progress: Array,
        improve: bool,
    ) -> tuple[Leaves, Metrics]:
        layout, leaves = self.layout, [*moving, *still]
        layout.moving[improve].put(leaves, moving)
        layout.still[improve].put(leaves, still)
        batch = with_late(self._unpack(rows), late)
        key = jax.random.fold_in(key, count)
        state = layout.whole.build(leaves)
        state, metrics = core.update(self.agent, state, batch, key, progress, improve=improve)
        return layout.moving[improve].of(jax.tree.leaves(state)), metrics

    def bonus(self, leaves: Leaves, obs: Array, action: Array, next_obs: Array) -> Array:
        intrinsic = self.agent.intrinsic
        assert intrinsic is not None
        return intrinsic.bonus(self.layout.intrinsic.build(leaves), obs, action, next_obs)

    def diagnose(
        self, leaves: Leaves, rows: Array, recent: Array, key: Array, step: Array
    ) -> Metrics:
        state, obs = self.layout.whole.build(leaves), self._unpack(rows).obs
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
    """Lazily compiled; the moving leaves given to `update` are donated."""
    plain = Functions(agent, obs_dim, action_dim)
    return Steps(
        layout=plain.layout,
        init=jax.jit(plain.init),
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
        observe=jax.jit(observe),
        diagnose=jax.jit(plain.diagnose),
    )


def metric_names(agent: Agent, obs_dim: int, action_dim: int) -> list[str]:
    """All that `update` and `diagnose` report, without running them."""
    steps = compile_steps(agent, obs_dim, action_dim)
    key = jax.random.key(0)
    state = jax.eval_shape(partial(core.init, agent, obs_dim, action_dim), key)
    leaves = jax.tree.leaves(state)
    rows = jnp.zeros((agent.batch_size, width(obs_dim, action_dim)))
    zero = jnp.zeros(())
    count = jnp.zeros((), jnp.int32)
    parts = steps.layout.moving[True].of(leaves), steps.layout.still[True].of(leaves)
    update: Any = steps.update  # traced once, for this and for its first call
    _, learned = update.eval_shape(*parts, rows, no_late(agent), key, count, zero, improve=True)
    seen = jax.eval_shape(steps.diagnose, leaves, rows, rows, key, count)
    return [*sorted(learned), *sorted(seen)]
