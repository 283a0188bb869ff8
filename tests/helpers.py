"""Small agents, data and environments that the tests share."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, final

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from adac.core import agent as core
from adac.core.agent import Agent, AgentState, Metrics
from adac.core.bases import SAC, Base, Deterministic
from adac.core.batch import Batch, batch_fields
from adac.core.critics import Scalar
from adac.core.explorers import Analogous, Explorer, Policy, Sizes, View
from adac.core.intrinsic import Intrinsic
from adac.core.networks import Actor, Networks, QNetwork
from adac.training.learner import Learner
from adac.training.replay import RowSpec

OBS, ACTION, BATCH = 3, 2, 8
TINY = Networks(actor_hidden=(16,), critic_hidden=(16,), latent=16, latent_hidden=(16,))
# The named agents' sizes in every test that trains one and does not mind: a program is compiled by
# the first of them and found by the others (conftest.py).
SMALL: dict[str, Any] = {"actor_hidden": [8], "critic_hidden": [8], "batch_size": 8}
SMALL_LATENT = SMALL | {"latent_hidden": [8], "particles": 4}
DDPG = Deterministic(critics=1, policy_delay=1, target_noise=0.0)
TD3 = Deterministic()
SCALAR = Scalar()
SIZES = Sizes(OBS, ACTION, 16)
BASES: dict[str, Base] = {"ddpg": DDPG, "td3": TD3, "sac": SAC()}
ADAC = Analogous(particles=4, beta_start=2.0)  # annealed: progress matters


@final
@dataclass(frozen=True)
class MadeUp(Intrinsic):
    """scale · (|s'|² + |a|²): a bonus that anyone can compute; its state counts what it saw."""

    scale: float = 1.0

    def init(self, obs_dim: int, action_dim: int, key: Array) -> Array:
        return jnp.zeros(())

    def bonus(self, state: Array, obs: Array, action: Array, next_obs: Array) -> Array:
        return self.scale * (jnp.sum(next_obs**2, axis=-1) + jnp.sum(action**2, axis=-1))

    def update(
        self, state: Array, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[Array, Metrics]:
        return state + obs.shape[0], {"bonus_seen": state}


def tiny(
    base: Base = TD3, explorer: Explorer = ADAC, intrinsic: Intrinsic | None = None, **kw: Any
) -> Agent:
    """It learns once its warm-up is over, so that steps and updates can be counted."""
    kw = {"networks": TINY, "learn_after": kw.get("warmup", 1_000)} | kw
    return Agent(base, explorer, intrinsic, batch_size=BATCH, **kw)


def start(agent: Agent, seed: int = 0, obs_dim: int = OBS, action_dim: int = ACTION) -> AgentState:
    return core.init(agent, obs_dim, action_dim, jax.random.key(seed))


def random_batch(
    seed: int = 0, count: int = BATCH, obs_dim: int = OBS, action_dim: int = ACTION
) -> Batch:
    """Some of its transitions end in a termination; its bonuses are not negative."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return jnp.asarray(draw.normal(size=shape), jnp.float32)

    return Batch(
        obs=normal(count, obs_dim),
        action=jnp.asarray(draw.uniform(-1, 1, (count, action_dim)), jnp.float32),
        reward=normal(count),
        bonus=jnp.abs(normal(count)),
        continues=jnp.asarray(draw.random(count) > 0.3, jnp.float32),
        next_obs=normal(count, obs_dim),
    )


def row_spec(obs_dim: int = OBS, action_dim: int = ACTION) -> RowSpec:
    return RowSpec.of_batch(batch_fields(obs_dim, action_dim))


def unpack(rows: Any, obs_dim: int = OBS, action_dim: int = ACTION) -> Batch:
    """Rows of the replay buffer as an update sees them."""
    return Batch(**row_spec(obs_dim, action_dim).unpack(rows, Batch._fields))


def stored(learner: Learner) -> Batch:
    """All that a learner's replay buffer holds."""
    rows = learner.replay.rows[: len(learner.replay)]
    return unpack(rows, learner.obs_dim, learner.action_dim)


def seen(actor: Actor, base: Base = TD3) -> View:
    """What an explorer sees of an agent that is just this policy network."""
    return View(Policy(actor, ()), base, SCALAR, None)


_update = jax.jit(core.update, static_argnums=0, static_argnames="improve")


def step(
    agent: Agent, state: AgentState, batch: Batch, key: int = 0, *, improve: bool = True
) -> tuple[AgentState, Metrics]:
    """One update, compiled once for each agent, with nothing donated."""
    progress = jnp.float32(0.5)
    new: AgentState
    new, metrics = _update(agent, state, batch, jax.random.key(key), progress, improve=improve)
    return new, metrics


def run(agent: Agent, state: AgentState, batches: list[Batch]) -> AgentState:
    for number, batch in enumerate(batches, 1):
        improve = number % agent.base.policy_delay == 0
        state, _ = step(agent, state, batch, number, improve=improve)
    return state


# -- comparing states ----------------------------------------------------------------------------


def leaves(tree: Any) -> dict[str, NDArray[Any]]:
    """Every array of a tree, by its path."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in found}


def assert_same_bits(one: Any, other: Any) -> None:
    first, second = leaves(one), leaves(other)
    assert first.keys() == second.keys()
    differing = [name for name in first if first[name].tobytes() != second[name].tobytes()]
    assert not differing


def unmoved(before: Any, after: Any) -> list[str]:
    """The paths of the arrays that are what they were."""
    old, new = leaves(before), leaves(after)
    assert old.keys() == new.keys()
    return [name for name in old if np.array_equal(old[name], new[name])]


def first_moment(opt: Any) -> Any:
    """Adam's first moment; after one step from zero it is a tenth of the gradient."""
    return opt[0].mu


# -- networks whose values can be written down ---------------------------------------------------


def linear_critic(like: QNetwork, obs: ArrayLike, action: ArrayLike, bias: float) -> QNetwork:
    """Q(s, a) = s·obs + a·action + bias, in a critic with one hidden layer of two units."""
    s, a = np.asarray(obs, np.float32)[:, None], np.asarray(action, np.float32)[:, None]
    signs = jnp.array([[1.0, -1.0]])
    return eqx.tree_at(
        lambda c: (c.joint.first.weight, c.joint.first.bias, c.joint.second, *_head(c.body[-1])),
        like,
        (s * signs, bias * signs[0], a * signs, signs.T, jnp.zeros(1)),
    )


def linear_actor(like: Actor, weight: ArrayLike, bias: ArrayLike) -> Actor:
    """raw(s) = s W + b, in an actor without ξ and with one hidden layer of 2 o units."""
    w = jnp.asarray(weight, jnp.float32)
    eye = jnp.eye(w.shape[0])
    return eqx.tree_at(
        lambda f: (*_head(f.trunk[0]), *_head(f.head[-1])),
        like,
        (
            jnp.concatenate([eye, -eye], axis=1),
            jnp.zeros(2 * w.shape[0]),
            jnp.concatenate([w, -w]),
            jnp.asarray(bias, jnp.float32),
        ),
    )


def _head(layer: Any) -> tuple[Array, Array]:
    return layer.weight, layer.bias


def linear_sizes(obs_dim: int) -> Networks:
    return Networks(actor_hidden=(2 * obs_dim,), critic_hidden=(2,))


def td_targets(agent: Agent, state: AgentState, batch: Batch, key: int = 0) -> NDArray[Any]:
    """y of every row and stream, [S, B], read off the gradient of the critics' loss.

    The observations must be one-hot, so that row i alone moves row i of the first weights. The
    critics being trained are replaced by Q = 1, whose slope in that row is 2 (1 − y_i) / B.
    """
    count = len(batch.obs)
    np.testing.assert_array_equal(batch.obs, np.eye(count))
    flat = jax.tree.map(
        lambda c: linear_critic(c, np.zeros(count), np.zeros(batch.action.shape[1]), 1.0),
        state.critic.params,
        is_leaf=lambda c: isinstance(c, QNetwork),
    )
    state = state._replace(critic=state.critic._replace(params=flat))
    new, _ = step(agent, state, batch, key, improve=False)
    slopes = [
        [10.0 * member.joint.first.weight[:, 0] for member in members]
        for members in first_moment(new.critic.opts[0])
    ]
    for members in slopes:  # every member of a stream has the same target
        for other in members[1:]:
            np.testing.assert_array_equal(members[0], other)
    return np.stack([1.0 - np.asarray(members[0]) * count / 2.0 for members in slopes])


# -- environments with known values --------------------------------------------------------------


class Toy(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One number seen, one number done; `begin` and `react` are all that a task sets."""

    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    length: ClassVar[int] = 1
    truncates: ClassVar[bool] = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        self.seen = self.begin()
        return self._see(), {}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        reward = self.react(self.seen, float(action[0]))
        self.time += 1
        self.seen = self.proceed()
        over = self.time >= self.length
        return self._see(), reward, over and not self.truncates, over and self.truncates, {}

    def _see(self) -> NDArray[np.float32]:
        return np.array([self.seen], np.float32)

    def begin(self) -> float:
        return 1.0

    def proceed(self) -> float:
        return 1.0

    def react(self, seen: float, action: float) -> float:
        return 1.0


class TerminalReward(Toy):
    """Reward 1, then the end: Q = 1."""


class TruncatedReward(Toy):
    """Reward 1 for ever, seen one step at a time: Q = 1 / (1 − γ)."""

    truncates = True


class TwoSteps(Toy):
    """Reward 0, then 1 and the end: Q = γ at −1, and 1 at 1."""

    length = 2

    def begin(self) -> float:
        return -1.0

    def react(self, seen: float, action: float) -> float:
        return float(self.time == 1)


class SeenReward(Toy):
    """Reward s, drawn from {−1, 1}, then the end: Q = s."""

    def begin(self) -> float:
        return float(self.np_random.choice([-1.0, 1.0]))

    def react(self, seen: float, action: float) -> float:
        return seen


class ChosenReward(Toy):
    """Reward −(a − 0.4)², then the end: π = 0.4."""

    def react(self, seen: float, action: float) -> float:
        return -((action - 0.4) ** 2)


class MatchingReward(SeenReward):
    """Reward 0.5 s · a, then the end: π has the sign of s, and Q = 0.5 s · a."""

    def react(self, seen: float, action: float) -> float:
        return 0.5 * seen * action


TOY_AGENT = Agent(
    Deterministic(discount=0.6, tau=0.1, actor_lr=3e-3, critic_lr=5e-3),
    ADAC,
    None,
    Networks(actor_hidden=(16,), critic_hidden=(32,), latent=4, latent_hidden=(16,)),
    batch_size=32,
    warmup=100,
    learn_after=100,
)


def with_base(agent: Agent, **changes: Any) -> Agent:
    return replace(agent, base=replace(agent.base, **changes))


def q_values(state: AgentState, obs: ArrayLike, action: ArrayLike) -> NDArray[Any]:
    """Of the first task critic, for lists of numbers."""
    column = partial(np.reshape, shape=(-1, 1))
    network = state.critic.params[0][0]
    q = SCALAR.at(network, column(np.asarray(obs, np.float32)))
    return np.asarray(q(column(np.asarray(action, np.float32))))
