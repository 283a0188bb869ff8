"""What an explorer is, and what it sees."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from adac.core.bases import Base
from adac.core.critics import Critic, Value
from adac.core.intrinsic.interface import Intrinsic
from adac.core.networks import Actor
from adac.core.normalise import Statistics, restore

Streams = tuple[Array, ...]  # one reward [B] per stream: the task's first, the behaviour's last


class Sizes(NamedTuple):
    obs: int
    action: int
    latent: int


class Policy(NamedTuple):
    """What acts: a network, the statistics of its input, and whatever else its explorer reads."""

    actor: Actor
    statistics: Any
    critics: Any = ()  # params[stream][member], where the explorer looks at values
    intrinsic: Any = ()  # where it looks at the bonus
    learned: Any = ()  # the explorer's own numbers
    slow: Any = ()  # the network's slowly following copy, where the explorer compares the two
    pi: Any = ()  # π's network, where μ has its own and lets π act at times


class Transition(NamedTuple):
    """What a step brought, for N environments."""

    obs: Array  # [N, o], raw
    action: Array  # [N, d], in [-1, 1]
    reward: Array  # [N]
    next_obs: Array  # [N, o], raw
    ended: Array  # [N], whether the episode is over


class View(NamedTuple):
    """What an explorer sees of the agent, as closures: it need not know how networks are built."""

    policy: Policy
    base: Base
    critic: Critic
    intrinsic: Intrinsic | None

    @property
    def latent(self) -> int:
        """Dimensions of ξ."""
        return self.policy.actor.latent

    @property
    def action_dim(self) -> int:
        return self.policy.actor.outputs // self.base.outputs

    @property
    def learned(self) -> Any:
        return self.policy.learned

    def location(self, obs: Array, xi: Array | None = None) -> Array:
        """f(s, ξ) before the squash; without ξ the target policy's."""
        return self.base.location(self.policy.actor(obs, xi))

    def action(self, obs: Array, xi: Array | None = None) -> Array:
        """f(s, ξ); without ξ the target policy π."""
        return jnp.tanh(self.location(obs, xi))

    def particles(self, obs: Array, xi: Array) -> Array:
        """f(s, ξ) before the squash for K ξ a state, [B, K, l] → [B, K, d]."""
        actor = self.policy.actor
        return self.base.location(actor.decode(actor.embed(obs)[:, None, :], xi))

    def sample(self, obs: Array, key: Array) -> Array:
        """The base's own policy."""
        return self.base.sample(self.policy.actor(obs), key)

    def disturbed(self, obs: Array, x: Array, noise: float) -> Array:
        """π under noise x of unit variance, of the base's own width where that has one."""
        raw = self.policy.actor(obs)
        std = self.base.deviation(raw)
        if std is None:
            return clip(self.base.greedy(raw) + noise * x)
        return jnp.tanh(self.base.location(raw) + std * x)

    def output(self, obs: Array, xi: Array | None = None) -> Array:
        """The policy network's raw output, which the base interprets."""
        return self.policy.actor(obs, xi)

    def features(self, obs: Array) -> Array:
        """The policy network's last hidden layer."""
        return self.policy.actor.features(self.policy.actor.embed(obs))

    def values(self, obs: Array, stream: int = 0) -> Sequence[Value]:
        """Q(s, ·) of each critic of a stream, for explorers that say `sees_values`."""
        return [self.critic.at(network, obs) for network in self.policy.critics[stream]]

    def bonus(self, obs: Array, action: Array, next_obs: Array) -> Array:
        """Of raw observations, for explorers that say `sees_bonus`."""
        assert self.intrinsic is not None
        return self.intrinsic.bonus(self.policy.intrinsic, obs, action, next_obs)

    def promise(self, obs: Array, action: Array, key: Array) -> Array:
        """The novelty that actions promise before they are taken, for those that `weigh` it."""
        assert self.intrinsic is not None
        return self.intrinsic.promise(self.policy.intrinsic, self.as_seen(obs), action, key)

    def as_seen(self, obs: Array) -> Array:
        """Observations as the task gave them."""
        statistics = self.policy.statistics
        return restore(statistics, obs) if isinstance(statistics, Statistics) else obs

    @property
    def slowly(self) -> "View":
        """The same view of the slowly following copy, for explorers that say `follows`."""
        return self._replace(policy=self.policy._replace(actor=self.policy.slow))

    @property
    def pi(self) -> "View":
        """The same view of π's network, for explorers that say `lets_pi_act`."""
        own = self.policy.pi
        return self if own == () else self._replace(policy=self.policy._replace(actor=own))


@dataclass(frozen=True)
class Explorer(ABC):
    """How the agent acts while it learns: the behaviour policy μ.

    Laws, which the tests check of every explorer: actions are in [-1, 1]; `act` is a function of
    its arguments alone; where `first` is true, what was remembered of the episode before has no
    influence, but on those that say `observes`: they learn from episodes.
    """

    disentangled: ClassVar[bool] = False  # a bonus gets a critic of its own
    uses_latent: ClassVar[bool] = False  # reads f(s, ξ) at ξ ≠ 0
    trained: ClassVar[bool] = False  # adds a `loss` on the policy network
    sees_values: ClassVar[bool] = False  # reads critics when it acts
    sees_bonus: ClassVar[bool] = False  # reads the bonus when it acts
    observes: ClassVar[bool] = False  # wants to be told what a step brought
    each_bonus: ClassVar[bool] = False  # every bonus of a `Sum` gets a critic of its own
    adapts: ClassVar[bool] = False  # reads learned numbers of its own when it acts
    raises: ClassVar[bool] = False  # adds a term to the task's value of an action

    @property
    def weighs(self) -> bool:
        """Needs a bonus that an action promises before it is taken."""
        return False

    @property
    def lets_pi_act(self) -> bool:
        """Whether π itself acts at times: it needs π's network where μ has its own."""
        return False

    @property
    def follows(self) -> bool:
        """Needs a slowly following copy of μ's network."""
        return False

    @abstractmethod
    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        """Actions of μ for (normalised) obs [N, o]; `first` [N] marks an episode's first step."""

    def init_memory(self, num_envs: int, sizes: Sizes) -> Any:
        """What μ remembers from one step to the next: arrays with a leading axis [N], or ()."""
        return ()

    def observe(self, memory: Any, transition: Transition) -> Any:
        """The memory after a step, for explorers that say `observes`."""
        return memory

    def at(self, step: int) -> "Explorer":
        """Who acts at this environment step; a new one starts with a new memory."""
        return self

    @property
    def separate(self) -> bool:
        """Whether μ has a network of its own."""
        return False

    @property
    def joins_the_base(self) -> bool:
        """Whether its loss is added to the base's, under one optimiser (Eq. 4)."""
        return False

    def score_scale(self, gradient: Array) -> Array:
        """What ∇Q is divided by where the loss joins the base's."""
        return jnp.ones(())

    def without_noise(self) -> "Explorer":
        """μ as far as it is learned, without noise that would hide a collapse."""
        return self

    def streams(self, reward: Array, bonus: Array | None, learned: Any) -> Streams:
        """Without disentanglement the bonus ends up in the only critic: contamination."""
        return (reward,) if bonus is None else (reward + bonus,)

    def init_learned(self, sizes: Sizes, key: Array) -> Any:
        """The explorer's own learned numbers, beside the base's: part of the agent's state."""
        return ()

    def loss(
        self, view: View, q: Value, obs: Array, progress: Array, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """What trains μ on the behaviour critic, for a `trained` explorer; and what to log."""
        raise TypeError(f"{type(self).__name__} has no loss")

    @property
    def learning_rate(self) -> float:
        """Of the optimiser that descends `loss`."""
        return 0.0

    def measure(self, view: View, obs: Array, key: Array) -> dict[str, Array]:
        """What `improve_learned` learns from, and the log shows, where there is no `loss`."""
        return {}

    def improve_learned(self, learned: Any, metrics: dict[str, Array]) -> Any:
        """The explorer's own numbers after an improvement, from what `loss` or `measure` said."""
        return learned

    def raised(self, view: View, obs: Array, action: Array, key: Array) -> Array:
        """What an action's value gets on top, [B], from an explorer that `raises` it."""
        raise TypeError(f"{type(self).__name__} raises no value")

    def continuations(self, view: View, next_obs: Array, bonuses: int) -> Sequence[Array]:
        """Raw outputs at s' of the policy that each bonus stream's target goes on with; () for π,
        as the task's does (Eq. 5)."""
        return ()


def clip(action: Array) -> Array:
    return jnp.clip(action, -1.0, 1.0)
