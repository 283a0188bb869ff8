"""READ FIRST: an agent is base × explorer × intrinsic, and this is its one `update`.

`Agent` is the frozen settings, `AgentState` all that changes, and `init`, `act`, `greedy` and
`update` are pure functions of the two. Equation numbers are the paper's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.bases import Base, Deterministic
from adac.core.explorers import Analogous, Explorer
from adac.core.intrinsic import Intrinsic
from adac.core.intrinsic.gap import action_gap
from adac.core.networks import Actor, Critic, Networks
from adac.core.normalise import Statistics, empty, normalise
from adac.core.validation import at_least, counts

Metrics = dict[str, Array]
PARTS: dict[str, Any] = {
    "base": Base, "explorer": Explorer, "intrinsic": Intrinsic | None, "networks": Networks,
}  # fmt: skip


@dataclass(frozen=True)
class Agent:
    """Everything that is chosen before learning. A new agent is a value of this class."""

    base: Base = field(default_factory=Deterministic)
    explorer: Explorer = field(default_factory=Analogous)
    intrinsic: Intrinsic | None = None
    networks: Networks = field(default_factory=lambda: Networks(latent=16))
    batch_size: int = 100
    replay_size: int = 1_000_000
    warmup: int = 1_000  # uniformly random steps before learning starts
    updates_per_step: float = 1.0
    normalise_obs: bool = False

    def __post_init__(self) -> None:
        for name, kind in PARTS.items():
            value, wanted = getattr(self, name), getattr(kind, "__name__", kind)
            if not isinstance(value, kind):
                raise ValueError(f"{name} must be of the type {wanted}, not {value!r}")
        counts(self, 1, "batch_size", "replay_size")
        counts(self, 0, "warmup")
        at_least(self, 0, "updates_per_step")
        if self.explorer.uses_latent and not self.networks.latent:
            raise ValueError(f"{type(self.explorer).__name__} needs a latent: set latent to 16")

    @property
    def streams(self) -> int:
        """How many reward streams get critics: the task's, and the behaviour's if it differs."""
        return 2 if self.explorer.disentangled and self.intrinsic is not None else 1


class Net(NamedTuple):
    """Online and target weights, and one optimiser state for each loss on them."""

    params: Any
    target: Any
    opts: tuple[optax.OptState, ...]


class AgentState(NamedTuple):
    """All that changes: one pytree, so a checkpoint is one value."""

    actor: Net
    behaviour: Net | tuple[()]  # μ's own network; () with co-training
    critic: Net  # params[stream][member]: the task's stream first, the behaviour's last
    aux: Any  # the base's own: SAC's temperature
    intrinsic: Any
    statistics: Statistics | tuple[()]


class Batch(NamedTuple):
    obs: Array  # [B, o]
    action: Array  # [B, d], in [-1, 1]
    reward: Array  # [B]
    bonus: Array  # [B], the intrinsic reward stored at collection
    continues: Array  # [B], 0 after a termination, 1 otherwise: a time limit bootstraps
    next_obs: Array  # [B, o]


def init(agent: Agent, obs_dim: int, action_dim: int, key: Array) -> AgentState:
    actor_key, critic_key, intrinsic_key = jax.random.split(key, 3)
    actor = Actor(agent.networks, obs_dim, agent.base.outputs * action_dim, actor_key)
    keys = jax.random.split(critic_key, (agent.streams, agent.base.critics))
    critics = tuple(
        tuple(Critic(agent.networks, obs_dim, action_dim, k) for k in row) for row in keys
    )
    explorer = agent.explorer
    shared = explorer.trained and not explorer.separate
    adam = optax.adam(1.0).init  # the state is the same for every learning rate
    return AgentState(
        actor=Net(
            actor,
            _copy(actor) if agent.base.target_actor else (),
            (adam(actor), adam(actor)) if shared else (adam(actor),),
        ),
        behaviour=Net(_copy(actor), (), (adam(actor),)) if explorer.separate else (),
        critic=Net(critics, _copy(critics), (adam(critics),)),
        aux=agent.base.init_aux(),
        intrinsic=(
            () if agent.intrinsic is None
            else agent.intrinsic.init(obs_dim, action_dim, intrinsic_key)
        ),
        statistics=empty(obs_dim) if agent.normalise_obs else (),
    )  # fmt: skip


def _copy(tree: Any) -> Any:
    """Buffers of their own, because the state is donated to `update`."""
    return jax.tree.map(jnp.copy, tree)


def act(
    agent: Agent, state: AgentState, obs: Array, memory: Any, first: Array, key: Array
) -> tuple[Array, Any]:
    """Actions of the behaviour policy μ in [-1, 1], for obs [N, o]."""
    obs = normalise(state.statistics, obs)
    actor = behaviour_net(state).params
    return agent.explorer.act(agent.base, actor, obs, memory, first, key)


def behaviour_net(state: AgentState) -> Net:
    return state.behaviour if isinstance(state.behaviour, Net) else state.actor


def target_weights(agent: Agent, state: AgentState) -> Actor:
    """The weights of π that targets bootstrap through and evaluation uses."""
    weights: Actor = state.actor.target if agent.base.target_actor else state.actor.params
    return weights


def greedy(agent: Agent, state: AgentState, obs: Array) -> Array:
    """The target policy π(s) = f(s, 0), with the target weights: what is evaluated."""
    raw = target_weights(agent, state)(normalise(state.statistics, obs))
    return jnp.tanh(agent.base.location(raw))


def update(
    agent: Agent, state: AgentState, batch: Batch, key: Array, progress: Array, *, improve: bool
) -> tuple[AgentState, Metrics]:
    """One learning step, in the order of Algorithms 2 and 3; `progress` in [0, 1] anneals β.

    `improve` is static: whether the policies and targets move too, or the critics alone.
    """
    target_key, base_key, xi_key, model_key = jax.random.split(key, 4)
    state, batch, model_metrics = _improve_intrinsic(agent, state, batch, model_key)
    critic, metrics = _improve_critics(agent, state, batch, target_key)
    metrics |= model_metrics
    state = state._replace(critic=critic)
    if improve:
        state, base_metrics = _improve_target_policy(agent, state, batch, base_key)
        state, behaviour_metrics = _improve_behaviour_policy(agent, state, batch, progress, xi_key)
        state = _move_targets(agent, state)
        metrics |= base_metrics | behaviour_metrics
    return state, metrics


def _improve_intrinsic(
    agent: Agent, state: AgentState, batch: Batch, key: Array
) -> tuple[AgentState, Batch, Metrics]:
    """The intrinsic reward learns from raw observations; afterwards they are normalised."""
    metrics: Metrics = {}
    raw = (batch.obs, batch.action, batch.next_obs)
    if agent.intrinsic is not None:
        if agent.intrinsic.fresh_bonus:
            batch = batch._replace(bonus=agent.intrinsic.bonus(state.intrinsic, *raw))
        learned, metrics = agent.intrinsic.update(state.intrinsic, *raw, key)
        state = state._replace(intrinsic=learned)
        metrics = metrics | {"bonus": jnp.mean(batch.bonus)}
    batch = batch._replace(
        obs=normalise(state.statistics, batch.obs),
        next_obs=normalise(state.statistics, batch.next_obs),
    )
    return state, batch, metrics


def _improve_critics(
    agent: Agent, state: AgentState, batch: Batch, key: Array
) -> tuple[Net, Metrics]:
    """Every critic of every stream towards its own reward, all bootstrapped through π (Eq. 5)."""
    has_bonus = agent.intrinsic is not None
    rewards = agent.explorer.streams(batch.reward, batch.bonus if has_bonus else None)
    raw = target_weights(agent, state)(batch.next_obs)
    action, extra = agent.base.next_action(raw, state.aux, key)
    targets = tuple(
        reward + agent.base.discount * batch.continues * (_lowest(members, batch, action) + extra)
        for reward, members in zip(rewards, state.critic.target, strict=True)
    )

    def loss(critics: Any) -> tuple[Array, list[Array]]:
        values = [[c(batch.obs, batch.action) for c in members] for members in critics]
        errors = [
            jnp.mean((value - target) ** 2)
            for row, target in zip(values, targets, strict=True)
            for value in row
        ]
        return sum(errors, jnp.zeros(())), [jnp.mean(row[0]) for row in values]

    critic, (total, q) = descend(loss, agent.base.critic_lr, state.critic)
    names = ("q", "q_behaviour")[: len(q)]
    return critic, {"critic_loss": total, **dict(zip(names, q, strict=True))}


def _lowest(members: tuple[Critic, ...], batch: Batch, action: Array) -> Array:
    values = [critic(batch.next_obs, action) for critic in members]
    lowest = values[0]
    for value in values[1:]:
        lowest = jnp.minimum(lowest, value)
    return lowest


def _improve_target_policy(
    agent: Agent, state: AgentState, batch: Batch, key: Array
) -> tuple[AgentState, Metrics]:
    """π by the base's own objective on the task critic, stream 0 (Eq. 1)."""
    qs = [_at(critic, batch.obs) for critic in state.critic.params[0]]

    def loss(actor: Actor) -> tuple[Array, Array]:
        return agent.base.actor_loss(actor(batch.obs), qs, state.aux, key)

    actor, (value, log_prob) = descend(loss, agent.base.actor_lr, state.actor)
    aux = agent.base.improve_aux(state.aux, log_prob, batch.action.shape[-1])
    metrics = {"actor_loss": value, **agent.base.aux_metrics(aux)}
    return state._replace(actor=actor, aux=aux), metrics


def _at(critic: Critic, obs: Array) -> Callable[[Array], Array]:
    return lambda action: critic(obs, action)


def _improve_behaviour_policy(
    agent: Agent, state: AgentState, batch: Batch, progress: Array, key: Array
) -> tuple[AgentState, Metrics]:
    """μ by amortised SVGD on the behaviour critic, the last stream (Eq. 3).

    With co-training the same weights move, under a second optimiser (Eq. 4).
    """
    explorer = agent.explorer
    if not explorer.trained:
        return state, {}
    critic = state.critic.params[-1][0]

    def loss(actor: Actor) -> tuple[Array, Metrics]:
        return explorer.loss(agent.base, actor, critic, batch.obs, progress, key)

    net, (value, metrics) = descend(loss, explorer.learning_rate, behaviour_net(state), opt=-1)
    moved = state._replace(behaviour=net) if explorer.separate else state._replace(actor=net)
    return moved, {"behaviour_loss": value, **metrics}


def _move_targets(agent: Agent, state: AgentState) -> AgentState:
    tau = agent.base.tau

    def move(net: Net) -> Net:
        step = jax.tree.map(lambda t, p: t + tau * (p - t), net.target, net.params)
        return net._replace(target=step)

    actor = move(state.actor) if agent.base.target_actor else state.actor
    return state._replace(actor=actor, critic=move(state.critic))


def descend(
    loss: Callable[[Any], tuple[Array, Any]], learning_rate: float, net: Net, opt: int = 0
) -> tuple[Net, tuple[Array, Any]]:
    """One Adam step on `net.params`, with the optimiser state number `opt`."""
    (value, extra), gradient = jax.value_and_grad(loss, has_aux=True)(net.params)
    opts = list(net.opts)
    step, opts[opt] = optax.adam(learning_rate).update(gradient, opts[opt])
    params = optax.apply_updates(net.params, step)
    return net._replace(params=params, opts=tuple(opts)), (value, extra)


def diagnose(
    agent: Agent, state: AgentState, obs: Array, recent: Batch, key: Array, *, samples: int = 16
) -> Metrics:
    """How far μ has drifted from π ("bias", Figure 3), how wide it is, and who is saturated.

    Saturation (|a| > 0.98) is how the literal algorithm collapses: it must never be silent. With
    an intrinsic reward, also how much more bonus μ's `recent` actions promise than π's.
    """
    mu_key, gap_key = jax.random.split(key)
    count, action_dim = obs.shape[0], _action_dim(agent, state)
    latent = agent.networks.latent
    repeated = jnp.repeat(obs, samples, axis=0)
    memory = agent.explorer.init_memory(count * samples, action_dim, latent)
    first = jnp.ones(count * samples, bool)
    learned = replace(agent, explorer=agent.explorer.learned())
    mu, _ = act(learned, state, repeated, memory, first, mu_key)
    mu = mu.reshape(count, samples, action_dim)
    pi = _online_policy(agent, state, obs)
    metrics = {
        "bias": jnp.mean(jnp.linalg.norm(jnp.mean(mu, axis=1) - pi, axis=-1)),
        "spread": jnp.mean(jnp.std(mu, axis=1)),
        "saturation_pi": jnp.mean((jnp.abs(pi) > 0.98).astype(jnp.float32)),
        "saturation_mu": jnp.mean((jnp.abs(mu) > 0.98).astype(jnp.float32)),
    }
    if agent.intrinsic is None:
        return metrics
    greedy_action = _online_policy(agent, state, recent.obs)
    gap = action_gap(
        agent.intrinsic, state.intrinsic, recent.obs, recent.action, greedy_action, gap_key
    )
    return metrics | gap


def _online_policy(agent: Agent, state: AgentState, obs: Array) -> Array:
    actor = state.actor.params
    return jnp.tanh(agent.base.location(actor(normalise(state.statistics, obs))))


def _action_dim(agent: Agent, state: AgentState) -> int:
    return int(state.actor.params.head[-1].bias.shape[0]) // agent.base.outputs
