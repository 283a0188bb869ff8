"""READ FIRST: an agent is base × explorer × intrinsic × critic, and this is its one `update`.

`Agent` (definition.py) is the frozen settings, `AgentState` all that changes, and `init`, `act`,
`greedy` and `update` are pure functions of the two. Equation numbers are the paper's.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.batch import Batch
from adac.core.critics import TD_ERROR, Bootstrap, Raised, Value, ensembles
from adac.core.definition import PARTS as PARTS
from adac.core.definition import Agent as Agent
from adac.core.explorers import Policy, Sizes, View
from adac.core.nets import Adam, Net, begin, copied, descend, follow, optimisers
from adac.core.networks import Actor, with_statistics
from adac.core.normalise import Statistics, empty, normalise
from adac.core.reward_scale import Scales, in_units, none_yet, units

Metrics = dict[str, Array]


class AgentState(NamedTuple):
    """All that changes: one pytree, so a checkpoint is one value."""

    actor: Net
    behaviour: Net | tuple[()]  # μ's own network; () with co-training
    critic: Net  # params[stream][member]: the task's stream first, the behaviour's last
    aux: Any  # the base's own: SAC's temperature
    intrinsic: Any
    statistics: Statistics | tuple[()]
    explorer: Any = ()  # the explorer's own learned numbers
    rewards: Scales = ()  # of each stream, with `reward_units`


def init(agent: Agent, obs_dim: int, action_dim: int, key: Array) -> AgentState:
    actor_key, critic_key, intrinsic_key = jax.random.split(key, 3)
    actor = agent.networks.actor(obs_dim, agent.base.outputs * action_dim, actor_key)
    make = partial(agent.critic.network, agent.networks, obs_dim, action_dim)
    critics = ensembles(make, agent.critics, critic_key)
    explorer, sizes = agent.explorer, Sizes(obs_dim, action_dim, agent.networks.latent)
    shared = explorer.trained and not (explorer.separate or explorer.joins_the_base)
    slow = copied(actor) if explorer.follows else ()
    return AgentState(
        actor=Net(
            actor,
            copied(actor) if agent.base.target_actor or explorer.follows else (),
            (begin(actor), begin(actor)) if shared else (begin(actor),),
        ),
        behaviour=Net(copied(actor), slow, (begin(actor),)) if explorer.separate else (),
        critic=Net(
            critics, copied(critics) if agent.critic.target_network else (), (begin(critics),)
        ),
        aux=agent.base.init_aux(),
        intrinsic=(
            () if agent.intrinsic is None
            else agent.intrinsic.init(obs_dim, action_dim, intrinsic_key)
        ),
        statistics=empty(obs_dim) if agent.normalise_obs else (),
        explorer=explorer.init_learned(sizes, jax.random.fold_in(key, EXPLORER)),
        rewards=tuple(none_yet() for _ in range(agent.streams if agent.reward_units else 0)),
    )  # fmt: skip


# Keys beside those that have always been split off: the explorer's, and each stream's.
EXPLORER, PRIORITY, CRITIC, STREAMS = 3, 99, 100, 200


def init_memory(agent: Agent, num_envs: int, obs_dim: int, action_dim: int) -> Any:
    """What the agent's explorer remembers before its first step."""
    return agent.explorer.init_memory(num_envs, Sizes(obs_dim, action_dim, agent.networks.latent))


def behaviour_policy(agent: Agent, state: AgentState) -> Policy:
    """The behaviour policy μ, with what its explorer looks at when it acts."""
    explorer = agent.explorer
    return Policy(
        behaviour_net(state).params,
        state.statistics,
        state.critic.params if explorer.sees_values else (),
        state.intrinsic if explorer.sees_bonus else (),
        state.explorer,
        behaviour_net(state).target if explorer.follows else (),
        state.actor.params if explorer.separate and explorer.lets_pi_act else (),
    )


def target_policy(agent: Agent, state: AgentState) -> Policy:
    """The target policy π, with the weights that targets bootstrap through and evaluation uses."""
    weights = state.actor.target if agent.base.target_actor else state.actor.params
    return Policy(weights, state.statistics)


def behaviour_net(state: AgentState) -> Net:
    return state.behaviour if isinstance(state.behaviour, Net) else state.actor


def view(agent: Agent, policy: Policy) -> View:
    return View(policy, agent.base, agent.critic, agent.intrinsic)


def act(
    agent: Agent, policy: AgentState | Policy, obs: Array, memory: Any, first: Array, key: Array
) -> tuple[Array, Any]:
    """Actions of the behaviour policy μ in [-1, 1], for obs [N, o]."""
    if isinstance(policy, AgentState):
        policy = behaviour_policy(agent, policy)
    obs = normalise(policy.statistics, obs)
    return agent.explorer.act(view(agent, policy), obs, memory, first, key)


def greedy(agent: Agent, policy: AgentState | Policy, obs: Array) -> Array:
    """The target policy π(s) = f(s, 0), with the target weights: what is evaluated."""
    if isinstance(policy, AgentState):
        policy = target_policy(agent, policy)
    return agent.base.greedy(policy.actor(normalise(policy.statistics, obs)))


def update(
    agent: Agent,
    state: AgentState,
    batch: Batch,
    key: Array,
    progress: Array,
    *,
    improve: bool,
    weights: Array | None = None,
) -> tuple[AgentState, Metrics]:
    """One learning step, in the order of Algorithms 2 and 3; `progress` in [0, 1] anneals.

    `improve` is static: whether the policies and targets move too, or the critics alone. With
    `weights` [B] of the transitions in the critics' loss, TD_ERROR [B] is among the metrics.
    """
    target_key, base_key, xi_key, model_key = jax.random.split(key, 4)
    state, batch, model_metrics = _improve_intrinsic(agent, state, batch, model_key)
    adam = optimisers(agent.base, state.critic, progress)
    state, metrics = _improve_critics(agent, state, batch, target_key, adam, weights)
    metrics |= model_metrics
    if improve and agent.explorer.joins_the_base:
        keys = base_key, xi_key
        state, policy_metrics = _improve_both_policies(agent, state, batch, progress, keys, adam)
        state, metrics = _move_targets(agent, state), metrics | policy_metrics
    elif improve:
        state, base_metrics = _improve_target_policy(agent, state, batch, base_key, adam)
        state, mu_metrics = _improve_behaviour_policy(agent, state, batch, progress, xi_key, adam)
        state = _move_targets(agent, state)
        metrics |= base_metrics | mu_metrics
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
        if agent.explorer.each_bonus:  # the memory keeps their sum
            batch = batch._replace(bonus=agent.intrinsic.each(state.intrinsic, *raw))
        learned, metrics = agent.intrinsic.update(state.intrinsic, *raw, key)
        state = state._replace(intrinsic=learned)
        metrics = metrics | {"bonus": jnp.mean(batch.bonus)}
    batch = batch._replace(
        obs=normalise(state.statistics, batch.obs),
        next_obs=normalise(state.statistics, batch.next_obs),
    )
    return state, batch, metrics


def _improve_critics(
    agent: Agent, state: AgentState, batch: Batch, key: Array, adam: Adam, weights: Array | None
) -> tuple[AgentState, Metrics]:
    """Every critic of every stream towards its own reward."""
    bonus = None if agent.intrinsic is None else batch.bonus
    reward = jnp.zeros_like(batch.reward) if agent.reward_free else batch.reward
    streams = agent.explorer.streams(reward, bonus, state.explorer)
    scales, rewards = in_units(state.rewards, streams)
    discount, key_of = agent.base.discount * batch.continues, partial(jax.random.fold_in, key)
    nexts = _next_actions(agent, state, batch.next_obs, len(rewards), key)
    steps = [
        Bootstrap(
            batch.obs, batch.action, reward, discount,
            batch.next_obs, action, extra, key_of(CRITIC + stream), weights,
        )
        for stream, (reward, (action, extra)) in enumerate(zip(rewards, nexts, strict=True))
    ]  # fmt: skip
    targets = state.critic.target if agent.critic.target_network else state.critic.params

    def loss(critics: Any) -> tuple[Array, Any]:
        found = [
            agent.critic.regress(members, slow, step)
            for members, slow, step in zip(critics, targets, steps, strict=True)
        ]
        total = sum((value for value, _ in found), jnp.zeros(()))
        return total, ([q for _, (q, _) in found], tuple(tuple(m) for _, (_, m) in found))

    critic, (total, (q, members)) = descend(loss, adam(agent.base.critic_lr), state.critic)
    critic = critic._replace(params=with_statistics(critic.params, members))
    names = ("q", "q_behaviour", *(f"q_behaviour_{n}" for n in range(2, len(q))))[: len(q)]
    metrics = {"critic_loss": total, **dict(zip(names, q, strict=True)), **units(scales)}
    if weights is not None:
        task = steps[0]._replace(key=key_of(PRIORITY))
        metrics[TD_ERROR] = agent.critic.error(state.critic.params[0], targets[0], task)
    return state._replace(critic=critic, rewards=scales), metrics


def _next_actions(
    agent: Agent, state: AgentState, next_obs: Array, streams: int, key: Array
) -> list[tuple[Array, Array | float]]:
    """What each stream's target goes on with, and what is added to its value: π for all of them
    (Eq. 5), or a policy for each."""
    seen = view(agent, target_policy(agent, state))

    def go_on(raw: Array, key: Array) -> tuple[Array, Array | float]:
        action, extra = agent.base.next_action(raw, state.aux, key)
        if agent.explorer.raises:
            extra += _term(agent, state, key)(next_obs, action)
        return action, extra

    task = go_on(seen.output(next_obs), key)
    own = agent.explorer.continuations(seen, next_obs, streams - 1)
    keys = (jax.random.fold_in(key, STREAMS + number) for number in range(streams - 1))
    return [task, *map(go_on, own, keys)] if own else [task] * streams


def _term(agent: Agent, state: AgentState, key: Array) -> Callable[[Array, Array], Array]:
    """What an explorer that `raises` the value of an action adds to it, from (s, a)."""
    seen = view(agent, behaviour_policy(agent, state))
    key = jax.random.fold_in(key, EXPLORER)
    return lambda obs, action: agent.explorer.raised(seen, obs, action, key)


def _improve_both_policies(
    agent: Agent,
    state: AgentState,
    batch: Batch,
    progress: Array,
    keys: tuple[Array, Array],
    adam: Adam,
) -> tuple[AgentState, Metrics]:
    """π and μ by J_π + J_μ under one optimiser (Eq. 4), each ∇Q at the same scale.

    Adam makes full steps of any gradient, however small: a loss of its own lets π run to the bound
    where Q is flat, and μ with it. Beside J_μ, a gradient that means nothing moves nothing.
    """
    explorer, base_key, xi_key = agent.explorer, *keys
    qs, aux = _task_values(agent, state, batch.obs), state.aux
    policy, behaviour_q = behaviour_policy(agent, state), _behaviour_value(agent, state, batch.obs)
    action = agent.base.greedy(state.actor.params(batch.obs))
    scale = explorer.score_scale(jax.grad(lambda a: jnp.sum(qs[0](a)))(action))

    def loss(actor: Actor) -> tuple[Array, Any]:
        pi, log_prob = agent.base.actor_loss(actor(batch.obs), qs, aux, base_key)
        seen = view(agent, policy._replace(actor=actor))
        mu, metrics = explorer.loss(seen, behaviour_q, batch.obs, progress, xi_key)
        return pi / scale + mu, (log_prob, metrics | {"actor_loss": pi, "behaviour_loss": mu})

    actor, (_, (log_prob, metrics)) = descend(loss, adam(agent.base.actor_lr), state.actor)
    aux = agent.base.improve_aux(aux, log_prob, batch.action.shape[-1])
    learned = explorer.improve_learned(state.explorer, metrics)
    state = state._replace(actor=actor, aux=aux, explorer=learned)
    return state, metrics | agent.base.aux_metrics(aux)


def _task_values(agent: Agent, state: AgentState, obs: Array) -> list[Value]:
    return [agent.critic.at(network, obs) for network in state.critic.params[0]]


def _behaviour_value(agent: Agent, state: AgentState, obs: Array) -> Value:
    """Of the first critic of the last stream."""
    return agent.critic.at(state.critic.params[-1][0], obs)


def _improve_target_policy(
    agent: Agent, state: AgentState, batch: Batch, key: Array, adam: Adam
) -> tuple[AgentState, Metrics]:
    """π by the base's own objective on the task critic, stream 0 (Eq. 1)."""
    qs = _task_values(agent, state, batch.obs)
    if agent.explorer.raises:
        terms = [_term(agent, state, jax.random.fold_in(key, n)) for n in range(len(qs))]
        qs = [Raised(q, term, batch.obs) for q, term in zip(qs, terms, strict=True)]

    def loss(actor: Actor) -> tuple[Array, Array]:
        return agent.base.actor_loss(actor(batch.obs), qs, state.aux, key)

    actor, (value, log_prob) = descend(loss, adam(agent.base.actor_lr), state.actor)
    aux = agent.base.improve_aux(state.aux, log_prob, batch.action.shape[-1])
    metrics = {"actor_loss": value, **agent.base.aux_metrics(aux)}
    return state._replace(actor=actor, aux=aux), metrics


def _improve_behaviour_policy(
    agent: Agent, state: AgentState, batch: Batch, progress: Array, key: Array, adam: Adam
) -> tuple[AgentState, Metrics]:
    """μ by amortised SVGD on the behaviour critic, the last stream (Eq. 3).

    With co-training the same weights move, under a second optimiser (Appendix B).
    """
    explorer = agent.explorer
    policy = behaviour_policy(agent, state)
    if not explorer.trained:
        metrics = explorer.measure(view(agent, policy), batch.obs, key)
        learned = explorer.improve_learned(state.explorer, metrics)
        return state._replace(explorer=learned), metrics
    q = _behaviour_value(agent, state, batch.obs)

    def loss(actor: Actor) -> tuple[Array, Metrics]:
        seen = view(agent, policy._replace(actor=actor))
        return explorer.loss(seen, q, batch.obs, progress, key)

    net, (value, metrics) = descend(
        loss, adam(explorer.learning_rate), behaviour_net(state), opt=-1
    )
    moved = state._replace(behaviour=net) if explorer.separate else state._replace(actor=net)
    learned = explorer.improve_learned(state.explorer, metrics)
    return moved._replace(explorer=learned), {"behaviour_loss": value, **metrics}


def _move_targets(agent: Agent, state: AgentState) -> AgentState:
    tau, behaviour = agent.base.tau, state.behaviour
    return state._replace(
        actor=follow(state.actor, tau),
        behaviour=follow(behaviour, tau) if isinstance(behaviour, Net) else (),
        critic=follow(state.critic, tau),
    )
