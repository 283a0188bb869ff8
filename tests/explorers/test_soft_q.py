"""Soft Q-learning: its sampler against exp(Q/α), and its value against the integral."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from adac.core import agent as core
from adac.core.agent import Agent
from adac.core.bases import Deterministic
from adac.core.critics import Bootstrap
from adac.core.explorers import Analogous
from adac.core.networks import Networks
from adac.core.presets import make
from adac.core.presets_exploration import SAMPLER
from adac.core.soft_value import SoftValue

ALPHA = 0.2


class Known:
    """Q(s, a) = −(a² − 0.25)², with two modes at ±0.5."""

    def __call__(self, action: Any) -> Any:
        return -jnp.sum((action**2 - 0.25) ** 2, axis=-1) * 4.0

    def at(self, states: int) -> "Known":
        return self

    def gradient(self, action: Any) -> Any:
        return jax.grad(lambda a: jnp.sum(self(a)))(action)


def test_its_policy_is_exp_q_over_alpha() -> None:
    explorer = Analogous(**SAMPLER | {"beta_start": ALPHA, "beta_end": ALPHA, "particles": 32})
    networks = Networks(actor_hidden=(32,), critic_hidden=(4,), latent=2, latent_hidden=(64,))
    agent = Agent(Deterministic(), explorer, networks=networks)
    state = core.init(agent, 1, 1, jax.random.key(0))
    policy, obs = core.behaviour_policy(agent, state), jnp.zeros((16, 1))
    opt = optax.adam(3e-3)

    def step(carry: Any, key: Any) -> Any:
        def loss(actor: Any) -> Any:
            view = core.view(agent, policy._replace(actor=actor))
            return explorer.loss(view, Known(), obs, jnp.float32(0.0), key)[0]

        actor, moments = carry
        change, moments = opt.update(jax.grad(loss)(actor), moments)
        return (optax.apply_updates(actor, change), moments), None

    keys = jax.random.split(jax.random.key(1), 2_000)
    start = policy.actor, opt.init(policy.actor)
    actor = jax.jit(lambda c: jax.lax.scan(step, c, keys)[0])(start)[0]
    xi = jax.random.normal(jax.random.key(2), (4_000, 2))
    actions = np.asarray(jnp.tanh(actor(jnp.zeros((4_000, 1)), xi)))[:, 0]
    edges = np.linspace(-1, 1, 9)
    fine = np.linspace(-1, 1, 8_001)
    density = np.exp(np.asarray(Known()(fine[:, None])) / ALPHA)
    wanted = np.histogram(fine, edges, weights=density)[0] / density.sum()
    found = np.histogram(actions, edges)[0] / len(actions)
    assert 0.5 * np.abs(found - wanted).sum() < 0.12  # total variation
    uniform = 0.5 * np.abs(1 / 8 - wanted).sum()
    assert uniform > 0.2  # which a sampler that ignores Q would have


def test_the_value_is_the_integral_over_actions() -> None:
    critic = SoftValue(soft_temperature=ALPHA, value_samples=4_000)
    rows = jnp.zeros((3, 1))
    step = Bootstrap(rows, rows, rows[:, 0], rows[:, 0], rows, rows, 0.0, jax.random.key(0))

    def one(obs: Any, action: Any) -> Any:
        return Known()(action)[..., None]

    def two(obs: Any, action: Any) -> Any:
        return one(obs, action) + 0.5  # the lower one counts

    fine = np.linspace(-1, 1, 100_001)[:, None]
    exact = ALPHA * np.log(np.mean(np.exp(np.asarray(Known()(fine)) / ALPHA)) * 2.0)
    np.testing.assert_allclose(critic.soft_value([one, two], step), exact, atol=0.01)


def test_the_preset_samples_at_the_temperature_of_its_value() -> None:
    agent = make("soft-q")
    assert isinstance(agent.explorer, Analogous)
    assert isinstance(agent.critic, SoftValue)
    assert agent.explorer.beta_start == agent.explorer.beta_end == agent.critic.soft_temperature


def test_a_target_has_the_soft_value_in_it() -> None:
    critic = SoftValue(soft_temperature=ALPHA, value_samples=2_000)
    rows, reward = jnp.zeros((2, 1)), jnp.array([1.0, 2.0])
    discount = jnp.array([0.9, 0.0])

    def net(obs: Any, action: Any) -> Any:
        return jnp.zeros((*jnp.shape(action)[:-1], 1)) + 3.0

    step = Bootstrap(rows, rows, reward, discount, rows, rows, 0.0, jax.random.key(0))
    loss, _ = critic.regress([net], [net], step)
    target = np.array([1.0 + 0.9 * (3.0 + ALPHA * np.log(2.0)), 2.0])
    assert float(loss) == pytest.approx(np.mean((3.0 - target) ** 2), rel=1e-4)
