"""examples/adac_minimal.py computes what the library's `update` computes."""

import importlib.util
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adac
from adac.core.agent import AgentState

FILE = Path(__file__).parents[1] / "examples" / "adac_minimal.py"
OBS, ACTION = 3, 2


@pytest.fixture(scope="module")
def minimal() -> Any:
    spec = importlib.util.spec_from_file_location("adac_minimal", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def layer(linear: Any) -> dict[str, Any]:
    return {"w": linear.weight, "b": linear.bias}


def joined(joint: Any) -> dict[str, Any]:
    return {"w": jnp.concatenate([joint.first.weight, joint.second]), "b": joint.first.bias}


def actor(network: Any) -> dict[str, Any]:
    return {
        "trunk": layer(network.trunk[0]),
        "joint": joined(network.joint),
        "head": layer(network.head[0]),
    }


def critics(stream: Any) -> list[dict[str, Any]]:
    return [
        {"first": joined(c.joint), "second": layer(c.body[0]), "head": layer(c.body[1])}
        for c in stream
    ]


def translated(minimal: Any, state: AgentState) -> Any:
    """The library's state as the file's, with fresh optimisers."""
    policy, values = actor(state.actor.params), critics(state.critic.params[0])
    opts = minimal.ADAM.init(policy), minimal.ADAM.init(values)
    return minimal.State(policy, policy, opts[0], values, values, opts[1])


def test_three_updates_agree(minimal: Any) -> None:
    agent = adac.make_agent("adac-td3")
    state = adac.init(agent, OBS, ACTION, jax.random.key(0))
    mine = translated(minimal, state)
    draw = np.random.default_rng(0)
    for number in range(1, 4):
        normal = [draw.normal(size=s).astype(np.float32) for s in ((256, OBS), (256, OBS), (256,))]
        action = draw.uniform(-1, 1, (256, ACTION)).astype(np.float32)
        continues = (draw.random(256) > 0.2).astype(np.float32)
        obs, next_obs, reward = normal
        improve = number % 2 == 0
        theirs = adac.Batch(obs, action, reward, np.zeros(256), continues, next_obs)  # type: ignore[arg-type]
        update = jax.jit(adac.update, static_argnums=0, static_argnames="improve")
        state, _ = update(
            agent, state, theirs, jax.random.key(number), jnp.float32(0.0), improve=improve
        )
        batch = minimal.Batch(obs, action, reward, continues, next_obs)
        mine = jax.jit(minimal.update, static_argnums=3)(
            mine, batch, jax.random.key(number), improve
        )
    # Adam's first moments are the gradients; its steps make a whole one of a gradient of next to
    # nothing, whose sign is rounding, so of the weights all but a few agree.
    moments = actor(state.actor.opts[0][0].mu), critics(state.critic.opts[0][0].mu[0])
    assert_close((mine.actor_opt[0].mu, mine.critics_opt[0].mu), moments, misses=0.0)
    weights = (
        actor(state.actor.params), actor(state.actor.target),
        critics(state.critic.params[0]), critics(state.critic.target[0]),
    )  # fmt: skip
    found = (mine.actor, mine.actor_target, mine.critics, mine.critics_target)
    assert_close(found, weights, misses=1e-3)


def assert_close(found: Any, wanted: Any, misses: float) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        close = np.isclose(a, b, rtol=1e-3, atol=1e-6 * max(1.0, float(np.abs(b).max())))
        assert 1.0 - close.mean() <= misses


def test_its_settings_are_the_default_agents(minimal: Any) -> None:
    agent = adac.make_agent("adac-td3")
    explorer, base = agent.explorer, agent.base
    assert isinstance(explorer, adac.Analogous)
    assert isinstance(base, adac.Deterministic)
    assert (explorer.particles, explorer.behaviour_states) == (minimal.PARTICLES, minimal.STATES)
    assert explorer.beta_start == explorer.beta_end == minimal.BETA
    assert explorer.latent_correlation == minimal.CORRELATIONS
    assert (base.actor_lr, base.critic_lr) == (minimal.RATE, minimal.RATE)
    assert (base.discount, base.tau, base.policy_delay) == (
        minimal.DISCOUNT, minimal.TAU, minimal.DELAY,
    )  # fmt: skip
    assert (agent.batch_size, agent.warmup) == (minimal.BATCH, minimal.WARMUP)
