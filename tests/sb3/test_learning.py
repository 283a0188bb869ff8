"""What learns is core's `update`, and what acts is core's explorer."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from models import adac, assert_same, td3, weights
from stable_baselines3.common.envs import IdentityEnvBox
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import LinearSchedule

from adac.core import agent as core
from adac.core.agent import Batch
from adac.core.explorers import GaussianNoise, OwnPolicy
from adac.sb3 import ADAC, SAC, TD3, Algorithm, agent_class
from adac.sb3.parameters import arrays_of
from adac.training.compiled import RunningAgent, compile_agent
from adac.training.loop import ACT, INIT, UPDATE, run_keys


def filled(model: Algorithm) -> Algorithm:
    """With transitions in its buffer, and no update made."""
    model.gradient_steps = 0
    model.learn(30)
    return model


def batch_of(sample: Any) -> Batch:
    column = {k: jnp.asarray(v.numpy()) for k, v in sample._asdict().items() if v is not None}
    return Batch(
        obs=column["observations"],
        action=column["actions"],
        reward=column["rewards"][:, 0],
        bonus=jnp.zeros(8),
        continues=1.0 - column["dones"][:, 0],
        next_obs=column["next_observations"],
    )


def test_an_update_is_cores_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = filled(td3())
    sample = model.replay_buffer.sample(8)
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *args, **kwargs: sample)
    state = jax.tree.map(jnp.array, model.policy.running.state)
    update = jax.jit(core.update, static_argnames=("agent", "improve"))
    key, batch = run_keys(0)[UPDATE], batch_of(sample)
    for number in (1, 2):
        model.train(gradient_steps=1, batch_size=8)
        progress = jnp.float32(1.0 - model._current_progress_remaining)
        key_now = jax.random.fold_in(key, number)
        state, metrics = update(
            model.agent, state, batch, key_now, progress, improve=number % 2 == 0
        )
    assert_same(arrays_of(model.policy.running.state), arrays_of(state))
    assert float(model.policy.running.metrics["critic_loss"]) == float(metrics["critic_loss"])


def test_adac_learns_as_a_learner_does_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA arranges ADAC's update anew in another program, so the reference is the learner's."""
    model = filled(adac())
    sample = model.replay_buffer.sample(8)
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *args, **kwargs: sample)
    keys, program = run_keys(0), compile_agent(model.agent, 3, 1)
    running, batch = RunningAgent(program, keys[INIT]), batch_of(sample)._asdict()
    rows = program.rows.pack({**batch, "ahead": np.zeros(8)})
    for number in (1, 2):
        model.train(gradient_steps=1, batch_size=8)
        progress = np.float32(1.0 - model._current_progress_remaining)
        count = np.int32(number)
        running.update(rows, keys[UPDATE], count, progress, improve=number % 2 == 0)
    assert_same(arrays_of(model.policy.running.state), arrays_of(running.state))


def test_what_acts_is_cores_explorer() -> None:
    model = filled(adac(learning_starts=None, warmup=10, learn_after=100))
    buffer, agent = model.replay_buffer, model.agent
    state, key = model.policy.running.state, run_keys(0)[ACT]
    memory = core.init_memory(agent, 1, 3, 1)
    for step in range(10, 20):
        obs, first = buffer.observations[step], np.array([step == 10])
        action, memory = core.act(agent, state, obs, memory, first, jax.random.fold_in(key, step))
        np.testing.assert_allclose(buffer.actions[step], action, atol=1e-6)


def test_pi_is_asked_with_the_weights_that_learn() -> None:
    model = td3()
    model.learn(60)
    obs = model.env.observation_space.sample()[None]
    state = model.policy.running.state
    online, target = (jnp.tanh(net(obs)) for net in (state.actor.params, state.actor.target))
    assert abs(float(online[0, 0] - target[0, 0])) > 1e-6
    action, memory = model.predict(obs, deterministic=True)
    np.testing.assert_allclose(action, 2.0 * online, rtol=1e-5)
    assert memory is None


def test_n_step_returns_keep_their_discount() -> None:
    """Without an end in between, what is left of the next value is γ³: γ² beside the update's γ."""
    model = filled(td3(n_steps=3, gamma=0.9))
    spec = model.policy.running.program.rows
    buffer = model.replay_buffer
    sample = buffer._get_samples(np.zeros(4, int))
    model.replay_buffer.sample = lambda *args, **kwargs: sample
    rows = model._draw(4)
    np.testing.assert_allclose(rows[:, spec.columns["continues"]], 0.81, rtol=1e-6)
    rewards = buffer.rewards[:3, 0] @ [1.0, 0.9, 0.81]
    np.testing.assert_allclose(rows[:, spec.columns["reward"]], rewards, rtol=1e-6)


def test_a_schedule_is_the_rate_of_each_update() -> None:
    """A function that is constant learns what the constant does; at 0 nothing moves."""
    steady = weights(td3(learning_rate=1e-3).learn(40))  # seeds NumPy, whom the buffer asks
    function = weights(td3(learning_rate=lambda left: 1e-3).learn(40))
    for name, value in steady.items():
        np.testing.assert_allclose(value, function[name], rtol=1e-5, atol=1e-7, err_msg=name)
    ended = td3(learning_rate=LinearSchedule(0.0, 1e-3, 1.0))
    before = weights(ended)
    filled(ended)
    ended._current_progress_remaining = 1.0
    ended.train(2, 8)
    same = {name for name, value in weights(ended).items() if np.array_equal(value, before[name])}
    assert {name for name in before if ".params" in name} <= same
    ended._current_progress_remaining = 0.0
    ended.train(2, 8)
    assert not np.array_equal(
        weights(ended)["actor.params.trunk[0].weight"], before["actor.params.trunk[0].weight"]
    )


def test_arguments_are_settings_by_the_names_of_both() -> None:
    model = SAC(
        "MlpPolicy", "Pendulum-v1", learning_rate=2e-3, gamma=0.9, tau=0.1, batch_size=7,
        buffer_size=50, learning_starts=30, ent_coef="auto_0.5", adam_b1=0.8,
        policy_kwargs={"net_arch": {"pi": [5], "qf": [6, 7]}, "n_critics": 3},
    )  # fmt: skip
    base, networks = model.agent.base, model.agent.networks
    assert (base.discount, base.tau, base.critics, base.adam_b1) == (0.9, 0.1, 3, 0.8)
    assert (base.actor_lr, base.critic_lr, base.temperature_lr) == (2e-3, 2e-3, 2e-3)
    assert base.initial_temperature == 0.5
    assert (networks.actor_hidden, networks.critic_hidden) == ((5,), (6, 7))
    agent = model.agent
    assert (agent.batch_size, agent.replay_size, agent.warmup, agent.learn_after) == (7, 50, 30, 30)
    assert (model.gamma, model.buffer_size, model.learning_starts) == (0.9, 50, 30)


def test_what_is_left_out_is_the_agents_own() -> None:
    model = ADAC("MlpPolicy", "Pendulum-v1", agent="paper-adac-td3")
    agent = model.agent
    assert (model.learning_rate, model.batch_size) == (agent.base.critic_lr, agent.batch_size)
    assert model.learning_starts == agent.learn_after
    latent = ADAC("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": [32, 16]}).agent.networks
    assert (latent.actor_hidden, latent.latent_hidden) == ((32,), (16,))


def test_noise_that_is_given_takes_the_place_of_an_agents_own() -> None:
    noise = NormalActionNoise(np.zeros(1), np.full(1, 0.5))
    assert isinstance(td3().agent.explorer, GaussianNoise)
    assert isinstance(td3(action_noise=noise).agent.explorer, OwnPolicy)
    assert adac(action_noise=noise).agent == adac().agent


def test_a_class_for_any_agent() -> None:
    kind = agent_class("td3-pink")
    assert kind.__name__ == "TD3_PINK"
    assert type(kind("MlpPolicy", "Pendulum-v1").agent.explorer).__name__ == "ColouredNoise"


def test_a_bonus_is_collected_and_learned_from() -> None:
    small = {"batch_size": 8, "learning_starts": 10, "buffer_size": 100, "seed": 0}
    env = gymnasium.wrappers.TimeLimit(gymnasium.make("Pendulum-v1"), 7)
    kwargs = {"agent": "td3-rnd", "bonus_after": 5, "policy_kwargs": {"net_arch": [8]}}
    model = TD3("MlpPolicy", env, **small, **kwargs)
    model.learn(20)
    assert float(model.policy.running.state.intrinsic.scale.seen) == 20
    assert float(model.policy.running.metrics["bonus"]) > 0


def test_it_learns() -> None:
    """The action that is asked for: 100 of 100; a random policy has 25 ± 4."""
    model = TD3(
        "MlpPolicy", IdentityEnvBox(eps=0.5), learning_rate=1e-3, gamma=0.5, seed=0,
        batch_size=64, policy_kwargs={"net_arch": [32, 32]}, learning_starts=50,
    ).learn(500)  # fmt: skip
    mean, _ = evaluate_policy(model, IdentityEnvBox(eps=0.5), n_eval_episodes=5, warn=False)
    assert mean > 90
