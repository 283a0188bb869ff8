"""Floating-point operations of one update, counted from the sizes of its matrix products.

2·m·n·k for an [m, k] by [k, n] product; a backward pass has one product for the gradient of the
weights and one for that of the input, where either is needed. Biases, activations, Adam, Polyak
averages and random numbers are not counted: they are what keeps an update from this limit.
"""

from collections.abc import Sequence
from itertools import pairwise

from adac.core.agent import Agent
from adac.core.bases import Deterministic
from adac.core.explorers import Analogous

Layers = Sequence[tuple[int, int]]


def per_update(agent: Agent, obs_dim: int, action_dim: int) -> float:
    """The mean over a cycle of critic updates with one policy update among them."""
    if agent.intrinsic is not None:
        raise ValueError("the operations of an intrinsic reward are not counted")
    policy = _policy_update(agent, obs_dim, action_dim)
    if isinstance(agent.explorer, Analogous):
        policy += _behaviour_update(agent, agent.explorer, obs_dim, action_dim)
    return _critic_update(agent, obs_dim, action_dim) + policy / agent.base.policy_delay


def _products(rows: int, layers: Layers) -> int:
    return sum(2 * rows * inputs * outputs for inputs, outputs in layers)


def _training(rows: int, layers: Layers) -> int:
    """Forward, gradients of all weights, and of all inputs but the network's own."""
    return 2 * _products(rows, layers) + _products(rows, layers[1:])


def _critic(agent: Agent, obs_dim: int, action_dim: int) -> Layers:
    outputs = agent.critic.outputs
    return list(pairwise((obs_dim + action_dim, *agent.networks.critic_hidden, outputs)))


def _actor(agent: Agent, obs_dim: int, action_dim: int) -> Layers:
    """π: f(s, ξ) at ξ = 0."""
    after = agent.networks.latent_hidden if agent.networks.latent else ()
    outputs = agent.base.outputs * action_dim
    return list(pairwise((obs_dim, *agent.networks.actor_hidden, *after, outputs)))


def _critic_update(agent: Agent, obs_dim: int, action_dim: int) -> int:
    rows, critic = agent.batch_size, _critic(agent, obs_dim, action_dim)
    if agent.critic.batch_renorm:  # (s, a) and (s', a') in one pass, and through both backward
        one = _training(2 * rows, critic)
    else:
        one = _products(rows, critic) + _training(rows, critic)  # the target's value, then the loss
    next_action = _products(rows, _actor(agent, obs_dim, action_dim))
    return next_action + agent.base.critics * one


def _policy_update(agent: Agent, obs_dim: int, action_dim: int) -> int:
    rows, critic = agent.batch_size, _critic(agent, obs_dim, action_dim)
    to_action = [(action_dim, critic[0][1]), *critic[1:]]
    values = 1 if isinstance(agent.base, Deterministic) else agent.base.critics
    one = _products(rows, critic) + _products(rows, to_action)  # Q, and its gradient in the action
    return _training(rows, _actor(agent, obs_dim, action_dim)) + values * one


def _behaviour_update(agent: Agent, explorer: Analogous, obs_dim: int, action_dim: int) -> int:
    """Eq. 3 with K particles a state, which share the state's part of both networks."""
    rows = min(explorer.behaviour_states or agent.batch_size, agent.batch_size)
    particles, sizes = explorer.particles, agent.networks
    many = rows * particles
    trunk = list(pairwise((obs_dim, *sizes.actor_hidden, sizes.latent_hidden[0])))
    head = [
        (sizes.latent, sizes.latent_hidden[0]),
        *pairwise((*sizes.latent_hidden, agent.base.outputs * action_dim)),
    ]
    critic = _critic(agent, obs_dim, action_dim)
    embed, value = [(obs_dim, critic[0][1])], [(action_dim, critic[0][1]), *critic[1:]]
    score = _products(rows, embed) + 2 * _products(many, value)  # Q, and its gradient
    kernel = 3 * _products(many, [(particles, action_dim)])  # distances, attraction, repulsion
    # One optimiser on both losses: ∇Q at π too, for the scale of J_π.
    scale = _products(agent.batch_size, critic) + _products(agent.batch_size, value)
    joined = scale if explorer.joins_the_base else 0
    return _training(rows, trunk) + _training(many, head) + score + kernel + joined
