"""ADAC on TD3 in one file of plain JAX: read it, fork it, run it.

python examples/adac_minimal.py Pendulum-v1 --steps 20000

One network f(s, ξ) is two policies: the target policy π(s) = f(s, 0), which is evaluated, and the
behaviour policy μ(s) = f(s, ξ), ξ ~ N(0, I), which collects. π climbs Q (Eq. 1); μ is moved towards
exp(Q/β) by amortised Stein variational gradient descent (Eq. 3); both by one optimiser on J_π + J_μ
(Eq. 4). The critics are TD3's, bootstrapped through π (Eq. 5). This is the library's `adac-td3`;
tests/test_minimal.py checks that an `update` here is an `update` there. What the library adds:
intrinsic rewards with a critic of their own, other bases and critics, checkpoints, speed.
"""

import argparse
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax

HIDDEN, LATENT = 256, 16  # units of each layer; dimensions of ξ
PARTICLES, STATES = 8, 64  # K particles at each of so many states of a minibatch
BETA = 0.3  # the temperature of exp(Q/β)
CORRELATIONS = (0.0, 0.95)  # ρ of ξ in time: each episode draws one
RATE, BATCH, DISCOUNT, TAU, DELAY = 3e-4, 256, 0.99, 5e-3, 2
TARGET_NOISE, TARGET_CLIP, ACTION_NOISE = 0.2, 0.5, 0.1
WARMUP = 1_000  # random steps; learning goes on meanwhile

Params = Any
ADAM = optax.adam(RATE)


# -- networks --------------------------------------------------------------------------------------


def linear(key: jax.Array, inputs: int, outputs: int) -> Params:
    bound = inputs**-0.5
    w, b = jax.random.split(key)
    return {
        "w": jax.random.uniform(w, (inputs, outputs), minval=-bound, maxval=bound),
        "b": jax.random.uniform(b, (outputs,), minval=-bound, maxval=bound),
    }


def apply(layer: Params, x: jax.Array) -> jax.Array:
    return x @ layer["w"] + layer["b"]


def init_actor(key: jax.Array, obs_dim: int, action_dim: int) -> Params:
    keys = jax.random.split(key, 3)
    return {
        "trunk": linear(keys[0], obs_dim, HIDDEN),
        "joint": linear(keys[1], HIDDEN + LATENT, HIDDEN),  # ξ joins the state's features here
        "head": linear(keys[2], HIDDEN, action_dim),
    }


def f(actor: Params, obs: jax.Array, xi: jax.Array) -> jax.Array:
    """f(s, ξ) before the squash; obs [..., o] and ξ [..., l] with the same leading axes."""
    features = jax.nn.relu(apply(actor["trunk"], obs))
    joined = jax.nn.relu(apply(actor["joint"], jnp.concatenate([features, xi], axis=-1)))
    return apply(actor["head"], joined)


def pi(actor: Params, obs: jax.Array) -> jax.Array:
    return jnp.tanh(f(actor, obs, jnp.zeros((*obs.shape[:-1], LATENT))))


def init_critic(key: jax.Array, obs_dim: int, action_dim: int) -> Params:
    keys = jax.random.split(key, 3)
    return {
        "first": linear(keys[0], obs_dim + action_dim, HIDDEN),
        "second": linear(keys[1], HIDDEN, HIDDEN),
        "head": linear(keys[2], HIDDEN, 1),
    }


def q(critic: Params, obs: jax.Array, action: jax.Array) -> jax.Array:
    x = jax.nn.relu(apply(critic["first"], jnp.concatenate([obs, action], axis=-1)))
    return apply(critic["head"], jax.nn.relu(apply(critic["second"], x)))[..., 0]


# -- amortised SVGD (Eq. 3) ------------------------------------------------------------------------


def kernel_width(squared: jax.Array) -> jax.Array:
    """σ² = (lower) median of ‖u_i − u_j‖² over pairs, divided by 2 log(K + 1); one a state."""
    above = np.triu_indices(PARTICLES, k=1)
    pairs = jnp.sort(squared[:, above[0], above[1]], axis=-1)
    median = pairs[:, (pairs.shape[-1] - 1) // 2]
    return jnp.maximum(jnp.sqrt(median / (2.0 * jnp.log(PARTICLES + 1.0))), 1e-3)[:, None, None]


def stein_direction(u: jax.Array, score: jax.Array) -> jax.Array:
    """φ(u_i) = mean over j ≠ i of k(u_i, u_j) ∇log p(u_j) + β ∇_{u_j} k(u_i, u_j); [B, K, d]."""
    away = u[:, :, None, :] - u[:, None, :, :]  # u_i − u_j
    squared = jnp.sum(away**2, axis=-1)
    width = kernel_width(squared)
    kernel = jnp.exp(-squared / (2.0 * width**2)) * (1.0 - jnp.eye(PARTICLES))
    attraction = jnp.einsum("bij,bjd->bid", kernel, score)
    repulsion = jnp.einsum("bij,bijd->bid", kernel, away) / width**2
    return (attraction + BETA * repulsion) / (PARTICLES - 1)


def score_scale(gradient: jax.Array) -> jax.Array:
    """∇Q is divided by its mean |∂Q/∂a_i|, but never blown up: a flat Q stays flat."""
    return jnp.maximum(jnp.mean(jnp.abs(gradient)) + 1e-8, 1.0)


def behaviour_loss(actor: Params, critic: Params, obs: jax.Array, key: jax.Array) -> jax.Array:
    """A loss whose gradient is −E[φ ∂f/∂w]. Particles live before the squash, a = tanh u."""
    states = min(STATES, obs.shape[0])
    xi = jax.random.normal(key, (states, PARTICLES, LATENT))
    repeated = jnp.repeat(obs[:states, None, :], PARTICLES, axis=1)
    u = f(actor, repeated, xi)
    action = jnp.tanh(jax.lax.stop_gradient(u))
    gradient = jax.grad(lambda a: jnp.sum(q(critic, repeated, a)))(action)
    # log p(u) = Q(s, tanh u) + β Σ log(1 − tanh² u): the squash's log-determinant
    score = gradient / score_scale(gradient) * (1.0 - action**2) - 2.0 * BETA * action
    phi = stein_direction(jax.lax.stop_gradient(u), score)
    return -jnp.mean(jnp.sum(jax.lax.stop_gradient(phi) * u, axis=-1))


# -- learning --------------------------------------------------------------------------------------


class State(NamedTuple):
    actor: Params
    actor_target: Params
    actor_opt: Any
    critics: Params  # two
    critics_target: Params
    critics_opt: Any


class Batch(NamedTuple):
    obs: jax.Array
    action: jax.Array
    reward: jax.Array
    continues: jax.Array  # 0 after a termination; a time limit bootstraps
    next_obs: jax.Array


def init(key: jax.Array, obs_dim: int, action_dim: int) -> State:
    keys = jax.random.split(key, 3)
    actor = init_actor(keys[0], obs_dim, action_dim)
    critics = [init_critic(k, obs_dim, action_dim) for k in keys[1:]]
    return State(actor, actor, ADAM.init(actor), critics, critics, ADAM.init(critics))


def critic_loss(critics: Params, state: State, batch: Batch, key: jax.Array) -> jax.Array:
    """TD3: the lower of two targets, at π's action with clipped noise (Eq. 5)."""
    noise = TARGET_NOISE * jax.random.normal(key, batch.action.shape)
    noise = jnp.clip(noise, -TARGET_CLIP, TARGET_CLIP)
    action = jnp.clip(pi(state.actor_target, batch.next_obs) + noise, -1.0, 1.0)
    lowest = jnp.minimum(*(q(critic, batch.next_obs, action) for critic in state.critics_target))
    target = batch.reward + DISCOUNT * batch.continues * lowest
    return sum(jnp.mean((q(c, batch.obs, batch.action) - target) ** 2) for c in critics)


def policy_loss(actor: Params, state: State, batch: Batch, key: jax.Array) -> jax.Array:
    """J_π + J_μ (Eq. 4)."""
    critic = state.critics[0]
    at_pi = jax.lax.stop_gradient(pi(actor, batch.obs))
    scale = score_scale(jax.grad(lambda a: jnp.sum(q(critic, batch.obs, a)))(at_pi))
    target = -jnp.mean(q(critic, batch.obs, pi(actor, batch.obs)))
    return target / scale + behaviour_loss(actor, critic, batch.obs, key)


def descend(loss: Any, params: Params, opt: Any) -> tuple[Params, Any]:
    step, opt = ADAM.update(jax.grad(loss)(params), opt)
    return optax.apply_updates(params, step), opt


def update(state: State, batch: Batch, key: jax.Array, improve: bool) -> State:
    """One learning step; the policies and targets move in every second one."""
    target_key, _, xi_key, _ = jax.random.split(key, 4)
    critics, opt = descend(
        lambda c: critic_loss(c, state, batch, target_key), state.critics, state.critics_opt
    )
    state = state._replace(critics=critics, critics_opt=opt)
    if not improve:
        return state
    actor, opt = descend(
        lambda a: policy_loss(a, state, batch, xi_key), state.actor, state.actor_opt
    )

    def follow(slow: Params, fast: Params) -> Params:
        return jax.tree.map(lambda s, p: s + TAU * (p - s), slow, fast)

    return state._replace(
        actor=actor,
        actor_opt=opt,
        actor_target=follow(state.actor_target, actor),
        critics_target=follow(state.critics_target, state.critics),
    )


# -- acting ----------------------------------------------------------------------------------------


@jax.jit
def act(actor: Params, obs: jax.Array, xi: jax.Array, rho: float, key: jax.Array) -> Any:
    """μ's action, and ξ, whose marginal is N(0, I) at every step whatever its correlation."""
    latent_key, noise_key = jax.random.split(key)
    xi = rho * xi + jnp.sqrt(1.0 - rho**2) * jax.random.normal(latent_key, xi.shape)
    action = jnp.tanh(f(actor, obs, xi))
    action = action + ACTION_NOISE * jax.random.normal(noise_key, action.shape)
    return jnp.clip(action, -1.0, 1.0), xi


class Replay:
    def __init__(self, capacity: int, obs_dim: int, action_dim: int):
        sizes = (obs_dim, action_dim, 1, 1, obs_dim)
        self.columns = [np.empty((capacity, size), np.float32) for size in sizes]
        self.capacity, self.added = capacity, 0

    def add(self, *row: Any) -> None:
        for column, value in zip(self.columns, row, strict=True):
            column[self.added % self.capacity] = value
        self.added += 1

    def sample(self, random: np.random.Generator) -> Batch:
        chosen = random.integers(0, min(self.added, self.capacity), BATCH)
        obs, action, reward, continues, next_obs = (column[chosen] for column in self.columns)
        return Batch(obs, action, reward[:, 0], continues[:, 0], next_obs)


def evaluate(env: gymnasium.Env, actor: Params, half: Any, episodes: int = 5) -> float:
    total, policy = 0.0, jax.jit(pi)
    for episode in range(episodes):
        obs, _ = env.reset(seed=10_000 + episode)
        done = False
        while not done:
            action = np.asarray(policy(actor, jnp.asarray(obs, jnp.float32)))
            obs, reward, terminated, truncated, _ = env.step(
                env.action_space.low + (action + 1) * half
            )
            total, done = total + float(reward), terminated or truncated
    return total / episodes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("env", nargs="?", default="Pendulum-v1")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eval-every", type=int, default=2_000)
    options = parser.parse_args()
    env, test = gymnasium.make(options.env), gymnasium.make(options.env)
    low, high = env.action_space.low, env.action_space.high
    half, action_dim, obs_dim = (high - low) / 2, len(low), env.observation_space.shape[0]
    random, key = np.random.default_rng(options.seed), jax.random.key(options.seed)
    state = init(jax.random.fold_in(key, 0), obs_dim, action_dim)
    replay, learn = Replay(1_000_000, obs_dim, action_dim), jax.jit(update, static_argnums=3)
    obs, _ = env.reset(seed=options.seed)
    xi, rho = jnp.asarray(random.standard_normal(LATENT), jnp.float32), random.choice(CORRELATIONS)
    for step in range(1, options.steps + 1):
        action, xi = act(state.actor, jnp.asarray(obs), xi, rho, jax.random.fold_in(key, 2 * step))
        action = random.uniform(-1, 1, action_dim) if step <= WARMUP else np.asarray(action)
        next_obs, reward, terminated, truncated, _ = env.step(low + (action + 1) * half)
        replay.add(obs, action, reward, not terminated, next_obs)
        obs = next_obs
        if terminated or truncated:
            obs, _ = env.reset()
            rho = random.choice(CORRELATIONS)
            xi = jnp.asarray(random.standard_normal(LATENT), jnp.float32)
        number = jax.random.fold_in(key, 2 * step + 1)
        state = learn(state, replay.sample(random), number, step % DELAY == 0)
        if step % options.eval_every == 0:
            print(f"step {step:,}: return {evaluate(test, state.actor_target, half):.1f}")


if __name__ == "__main__":
    main()
