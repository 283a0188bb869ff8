"""An agent's state while it runs, and its compiled functions, each declared once.

Over the border of a jitted call go short lists of arrays (`packing`): to take nested modules apart
and put them together again takes longer than a small agent's arithmetic. What an update does not
change does not go through it. Keys are folded from a run key and a number inside, so a run has no
random state.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from adac.core import agent as core
from adac.core.agent import Agent, AgentState, Metrics
from adac.core.batch import Batch, batch_fields
from adac.core.critics import TD_ERROR
from adac.core.diagnose import diagnose as diagnose_agent
from adac.core.explorers import Explorer, Policy, Transition
from adac.core.normalise import Statistics
from adac.core.normalise import observe as observe_statistics
from adac.training.packing import Arrays, Part, make_shelves, numbered
from adac.training.replay import RowSpec

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
    """Of the shape that `with_late` reads, with nothing in it; () without a bonus."""
    if agent.intrinsic is None:
        return ()
    return np.zeros(num_envs, np.float32), np.full(agent.batch_size, -1, np.int32)


def with_late(batch: Batch, late: Late) -> Batch:
    """Bonuses that were still being computed when the rows were taken: (of each environment's
    latest transition, which environment's a row is or −1). So that no update waits for them."""
    if not late:
        return batch
    bonus, whose = late
    return batch._replace(bonus=jnp.where(whose < 0, batch.bonus, bonus[whose]))


def moved(state: AgentState, improve: bool) -> Any:
    """What an update changes: targets move with the policies, statistics in `observe`."""
    if improve:
        return state._replace(statistics=())
    return state.critic._replace(target=()), state.intrinsic, state.rewards


class Program:
    """The layout and the compiled functions of one agent on one task size, shared by its runs."""

    def __init__(self, agent: Agent, obs_dim: int, action_dim: int):
        self.agent, self.obs_dim, self.action_dim = agent, obs_dim, action_dim
        self.rows = RowSpec.of_batch(batch_fields(obs_dim, action_dim))
        begin = partial(core.init, agent, obs_dim, action_dim)
        shape = jax.eval_shape(begin, jax.random.key(0))
        state: AgentState = numbered(shape)
        moving = {improve: moved(state, improve) for improve in (False, True)}
        shelves = make_shelves(shape, [*moving.values(), state.intrinsic])
        self.parts = {
            "state": Part(shelves, state),
            "behaviour": Part(shelves, core.behaviour_policy(agent, state)),
            "online": Part(shelves, Policy(state.actor.params, state.statistics)),
            "target": Part(shelves, core.target_policy(agent, state)),
            "intrinsic": Part(shelves, state.intrinsic),
            "statistics": Part(shelves, state.statistics),
        }
        self.whole = self.parts["state"]
        self.numbers = sum(int(leaf.size) for leaf in jax.tree.leaves(shape))
        self.moving = {improve: Part(shelves, part) for improve, part in moving.items()}
        self.still = {
            improve: Part(shelves, sorted(set(self.whole.leaves) - set(part.leaves)))
            for improve, part in self.moving.items()
        }
        self.init = jax.jit(lambda key: self.whole.pack(begin(key)))
        self.build = jax.jit(self.whole.build)
        self.pack = jax.jit(self.whole.pack)
        self.update = jax.jit(
            self._update,
            static_argnames="improve",
            donate_argnums=0,
            compiler_options=known_options(SMALL_PRODUCTS),
        )
        self._verbs: dict[str, Callable[..., Any]] = {}

    def batch(self, rows: Array) -> Batch:
        return Batch(**self.rows.unpack(rows, Batch._fields))

    def verb(self, verb: "Verb") -> Callable[..., Any]:
        """Compiled when first called."""
        if verb.name not in self._verbs:
            self._verbs[verb.name] = jax.jit(
                partial(verb.compute, self), static_argnames=verb.static
            )
        return self._verbs[verb.name]

    def _update(
        self,
        moving: Arrays,
        still: Arrays,
        rows: Array,
        late: Late,
        key: Array,
        count: Array,
        progress: Array,
        improve: bool,
        weights: Any = (),
    ) -> tuple[Arrays, Metrics]:
        arrays: Arrays = [*moving, *still]
        self.moving[improve].put(arrays, moving)
        self.still[improve].put(arrays, still)
        batch = with_late(self.batch(rows), late)
        key = jax.random.fold_in(key, count)
        state = self.whole.build(arrays)
        more = {} if isinstance(weights, tuple) else {"weights": weights}
        new, metrics = core.update(self.agent, state, batch, key, progress, improve=improve, **more)
        self._require_still(state, new, improve)
        return self.moving[improve].pack(moved(new, improve)), metrics

    def _require_still(self, old: AgentState, new: AgentState, improve: bool) -> None:
        """While tracing: what `moved` leaves out must be the same objects, or a change is lost."""
        moving = set(self.moving[improve].leaves)
        names = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(old)]
        pairs = zip(names, jax.tree.leaves(old), jax.tree.leaves(new), strict=True)
        lost = [name for n, (name, a, b) in enumerate(pairs) if n not in moving and a is not b]
        if lost:
            raise AssertionError(
                f"update(improve={improve}) moves {lost[0]}, `moved` says it stays"
            )


@lru_cache(maxsize=8)  # each holds over a thousand memory mappings, of which Linux allows 65,530
def compile_agent(agent: Agent, obs_dim: int, action_dim: int) -> Program:
    return Program(agent, obs_dim, action_dim)


class Verb:
    """A function of a part of the state, as a method of `RunningAgent`."""

    def __init__(
        self, function: Callable[..., Any], part: str, writes: bool, static: Sequence[str]
    ):
        self.function, self.part, self.writes = function, part, writes
        self.static, self.name = tuple(static), function.__name__
        self.__doc__ = function.__doc__

    def compute(self, program: Program, arrays: Arrays, *args: Any, **static: Any) -> Any:
        part = program.parts[self.part]
        result = self.function(program, part.build(arrays), *args, **static)
        return (part.pack(result[0]), result[1]) if self.writes else result

    def __get__(self, running: "RunningAgent", owner: type) -> Callable[..., Any]:
        return partial(self._call, running)

    def _call(self, running: "RunningAgent", *args: Any, **static: Any) -> Any:
        part = running.program.parts[self.part]
        result = running.program.verb(self)(part.of(running.arrays), *args, **static)
        if not self.writes:
            return result
        arrays, answer = result
        part.put(running.arrays, arrays)
        return answer


def reads(part: str, *static: str, writes: bool = False) -> Callable[[Callable[..., Any]], Verb]:
    """A function of the program, that part of the state, and what the caller gives.

    One that `writes` returns the part anew, and an answer.
    """
    return lambda function: Verb(function, part, writes, static)


@reads("behaviour", "explorer")
def act(
    program: Program,
    policy: Policy,
    obs: Array,
    memory: Any,
    first: Array,
    key: Array,
    number: Array,
    *,
    explorer: Explorer,
) -> tuple[Array, Any]:
    """Actions of the explorer that acts at this step, and what it remembers."""
    agent = replace(program.agent, explorer=explorer)
    return core.act(agent, policy, obs, memory, first, jax.random.fold_in(key, number))


@reads("target")
def greedy(program: Program, policy: Policy, obs: Array) -> Array:
    """π(s), [n, o] → [n, d]."""
    return core.greedy(program.agent, policy, obs)


@reads("online")
def online(program: Program, policy: Policy, obs: Array) -> Array:
    """π(s) with the weights that learn, which the target's follow slowly."""
    return core.greedy(program.agent, policy, obs)


@reads("intrinsic", writes=True)
def collect(
    program: Program, intrinsic: Any, obs: Array, action: Array, next_obs: Array
) -> tuple[Any, Array]:
    """The bonus of transitions just collected, whose novelty the scale follows."""
    assert program.agent.intrinsic is not None
    return program.agent.intrinsic.collect(intrinsic, obs, action, next_obs)


@reads("intrinsic")
def bonus(program: Program, intrinsic: Any, obs: Array, action: Array, next_obs: Array) -> Array:
    assert program.agent.intrinsic is not None
    return program.agent.intrinsic.bonus(intrinsic, obs, action, next_obs)


@reads("statistics", writes=True)
def observe(program: Program, statistics: Statistics, obs: Array) -> tuple[Statistics, None]:
    """Running statistics of the observations."""
    return observe_statistics(statistics, obs), None


@reads("behaviour", "explorer")
def remember(
    program: Program, policy: Policy, memory: Any, step: Transition, *, explorer: Explorer
) -> Any:
    """What an explorer that `observes` remembers of a step."""
    return explorer.observe(memory, step)


@reads("state")
def diagnose(
    program: Program, state: AgentState, rows: Array, recent: Array, key: Array, number: Array
) -> Metrics:
    key = jax.random.fold_in(key, number)
    obs = program.batch(rows).obs
    return diagnose_agent(program.agent, state, obs, program.batch(recent), key)


class RunningAgent:
    """A state as packed arrays, and the calls that read and move it.

    Every call is asynchronous: whoever reads a result waits for it.
    """

    def __init__(self, program: Program, key: Array):
        self.program = program
        self.metrics: Metrics = {}  # what the latest updates reported
        self.arrays: Arrays = program.init(key)

    @property
    def state(self) -> AgentState:
        state: AgentState = self.program.build(self.arrays)
        return state

    @state.setter
    def state(self, state: AgentState) -> None:
        self.arrays = self.program.pack(state)

    def update(
        self,
        rows: Any,
        key: Array,
        count: Any,
        progress: Any,
        *,
        improve: bool,
        late: Late = (),
        weights: Any = (),
    ) -> Any:
        """With `weights` of the rows, their TD errors [B]."""
        moving, still = self.program.moving[improve], self.program.still[improve]
        new, metrics = self.program.update(
            moving.of(self.arrays), still.of(self.arrays), rows, late, key, count, progress,
            improve=improve, weights=weights,
        )  # fmt: skip
        moving.put(self.arrays, new)
        errors = metrics.pop(TD_ERROR, None)
        self.metrics |= metrics
        return errors

    act, remember, greedy, online = act, remember, greedy, online
    bonus, collect, observe, diagnose = bonus, collect, observe, diagnose


def metric_names(program: Program) -> list[str]:
    """All that `update` and `diagnose` report, without running them."""
    key, count, zero = jax.random.key(0), jnp.zeros((), jnp.int32), jnp.zeros(())
    arrays = jax.eval_shape(program.init, key)
    rows = jnp.zeros((program.agent.batch_size, program.rows.width))
    parts = program.moving[True].of(arrays), program.still[True].of(arrays)
    update: Any = program.update  # traced once, for this and for its first call
    late = no_late(program.agent)
    weights = jnp.ones(len(rows)) if program.agent.priority_alpha else ()
    _, learned = update.eval_shape(
        *parts, rows, late, key, count, zero, improve=True, weights=weights
    )
    learned.pop(TD_ERROR, None)
    seen = jax.eval_shape(program.verb(diagnose), program.whole.of(arrays), rows, rows, key, count)
    return [*sorted(learned), *sorted(seen)]
