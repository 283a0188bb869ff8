"""The compiled driver is the Python loop: the same steps, draws and updates."""

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac import jit
from adac.core.agent import Agent
from adac.core.presets import make
from adac.core.settings import override
from adac.errors import UserError
from adac.training.jit.plan import Plan
from adac.training.jit.worlds import Gymnax, Outcome, world_of
from adac.training.learner import Learner
from helpers import leaves

TINY = {"critic_hidden": "8", "actor_hidden": "8", "batch_size": 4, "warmup": 6, "learn_after": 4}
LATENT = TINY | {"latent_hidden": "8", "particles": 3}
LIMIT = 7


class Params(NamedTuple):
    max_steps_in_episode: int = LIMIT
    speed: float = 4.0


class State(NamedTuple):
    angle: Array
    velocity: Array
    time: Array


class Box(NamedTuple):
    low: Any
    high: Any
    shape: tuple[int, ...]


class Swing:
    """A pendulum in gymnax's form, from where it hangs; above `speed` the episode is lost."""

    name = "Swing"
    default_params = Params()

    def observation_space(self, params: Params) -> Box:
        return Box(-np.inf, np.inf, (3,))

    def action_space(self, params: Params) -> Box:
        return Box(-2.0, 1.0, (1,))

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        state = State(jnp.float32(3.0), jnp.float32(0.0), jnp.int32(0))
        return self.see(state), state

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[str, Any]]:
        push = action.reshape(())
        velocity = state.velocity + 0.05 * (15.0 * jnp.sin(state.angle) + 12.0 * push)
        state = State(state.angle + 0.05 * velocity, velocity, state.time + 1)
        reward = jnp.cos(state.angle) - 0.01 * push**2
        late = state.time >= params.max_steps_in_episode
        return self.see(state), state, reward, late | (jnp.abs(velocity) > params.speed), {}

    def see(self, state: State) -> Array:
        return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.velocity])


class Swung(gymnasium.Env[Any, Any]):
    """The same for Gymnasium, for the Python loop."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gymnasium.spaces.Box(-2.0, 1.0, (1,), np.float32)

    def __init__(self) -> None:
        self.world, self.key = Gymnax(Swing()), jax.random.key(0)
        self._step = jax.jit(self.world.step)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, obs = self.world.reset(self.key)
        return np.asarray(obs), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.state, out = self._step(self.state, action, self.key)
        return np.asarray(out.obs), float(out.reward), bool(out.terminated), bool(out.truncated), {}


def assert_close(one: Any, other: Any, atol: float) -> None:
    found = leaves(other)
    for name, leaf in leaves(one).items():
        np.testing.assert_allclose(found[name], leaf, atol=atol, rtol=1e-3, err_msg=name)


AGENTS: dict[str, dict[str, Any]] = {
    "td3": TINY,
    "adac-td3": LATENT,
    "td3-rnd": TINY | {"bonus_after": 5, "normalise_obs": "true", "updates_per_step": 0.5},
}


@pytest.mark.parametrize("name", AGENTS)
def test_a_run_is_the_python_loop_s(name: str) -> None:
    """Through the warm-up, across episodes that are lost and that run out of time."""
    loop, steps = Learner(Swung(), name, seed=3, overrides=AGENTS[name]), 30
    begun = leaves(loop.state.actor.params)
    loop.learn(steps)
    ours = jit.train(Swing(), name, steps, seeds=[3], overrides=AGENTS[name], log_every=12)
    assert loop.updates > 10
    assert_close(loop.state, ours.state_of(0), atol=2e-4)
    moved = leaves(loop.state.actor.params)
    assert max(np.abs(moved[n] - begun[n]).max() for n in moved) > 1e-3  # else nothing is compared
    obs = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    wanted, _ = loop.predict(obs, deterministic=True)
    np.testing.assert_allclose(ours.policy().predict(obs)[0], wanted, atol=2e-3)
    assert ours.steps.tolist() == [6, 18, 30]


def test_seeds_side_by_side_are_the_seeds_alone() -> None:
    both = jit.train(Swing(), "td3", 24, seeds=[5, 2], overrides=TINY)
    alone = jit.train(Swing(), "td3", 24, seeds=[2], overrides=TINY)
    assert_close(both.state_of(1), alone.state_of(0), atol=1e-5)
    np.testing.assert_allclose(both.returns[1], alone.returns[0], rtol=1e-4)
    with pytest.raises(AssertionError):
        assert_close(both.state_of(0), alone.state_of(0), atol=1e-3)


class Reach(NamedTuple):
    """One step: the reward is the better the nearer the action is to half of what is seen."""

    name: str = "Reach"
    obs_dim: int = 1
    bounds: tuple[Any, Any] = (np.full(1, -2.0, np.float32), np.full(1, 2.0, np.float32))

    def reset(self, key: Array) -> tuple[Any, Array]:
        obs = jax.random.uniform(key, (1,), minval=-1.0, maxval=1.0)
        return obs, obs

    def step(self, state: Any, action: Array, key: Array) -> tuple[Any, Outcome]:
        reward = -jnp.sum((action - state) ** 2)
        return state, Outcome(state, reward, jnp.asarray(True), jnp.asarray(False))


def test_it_learns_with_many_seeds_and_environments_at_once() -> None:
    settings = {"net_arch": "32", "lr": 3e-3, "batch_size": 32, "warmup": 200}
    found = jit.train(Reach(), "td3", 1_200, seeds=3, num_envs=4, overrides=settings, log_every=200)
    assert found.returns.shape == (3, 6)
    assert (found.returns[:, 0] < -1.0).all()  # at random: −(4/3 + 1/3)
    assert (found.returns[:, -1] > -0.15).all()
    obs = np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    for place in range(3):
        np.testing.assert_allclose(found.policy(place).predict(obs)[0], obs, atol=0.3)


def test_a_time_limit_is_no_termination() -> None:
    world = Gymnax(Swing())
    state, _ = world.reset(jax.random.key(0))
    for _ in range(LIMIT):
        state, out = world.step(state, jnp.zeros(1), jax.random.key(0))
    assert (bool(out.terminated), bool(out.truncated)) == (False, True)
    fast = state._replace(velocity=jnp.float32(9.0), time=jnp.int32(1))
    _, out = world.step(fast, jnp.zeros(1), jax.random.key(0))
    assert (bool(out.terminated), bool(out.truncated)) == (True, False)


def test_the_plan_is_the_loop_s_schedule() -> None:
    agent: Agent = override(make("td3"), TINY | {"updates_per_step": 0.5, "replay_size": 20})
    plan = Plan(agent, [0, 1], num_envs=3, steps=40)
    chunks = list(plan.chunks(4))
    steps = np.concatenate([chunk.steps for chunk in chunks])
    assert steps.tolist() == [3 * n for n in range(14)]
    assert [chunk.begins for chunk in chunks] == [True, True, False, False]
    numbers = np.concatenate([chunk.updates for chunk in chunks])
    due = numbers[numbers > 0]
    assert due.tolist() == list(range(1, len(due) + 1))
    for step, row in zip(steps, numbers, strict=True):
        assert row.max() in (0, int(max(step - 4, 0) * 0.5))
    assert plan.capacity == 20
    assert max(chunk.places.max() for chunk in chunks) == 19


def test_brax_s_form_is_understood() -> None:
    class Here(NamedTuple):
        obs: Array
        reward: Array
        done: Array
        info: dict[str, Array]

    class Line:
        observation_size, action_size = 1, 1

        def reset(self, rng: Array) -> Here:
            zero = jnp.zeros(())
            return Here(jnp.zeros(1), zero, zero, {"truncation": zero})

        def step(self, state: Here, action: Array) -> Here:
            obs = state.obs + action
            late = (jnp.abs(obs[0]) > 2.0).astype(jnp.float32)
            return Here(obs, -jnp.abs(obs[0]), late, {"truncation": late})

    world = world_of(Line())
    found = jit.train(Line(), "td3", 20, overrides=TINY)
    assert np.isfinite(found.q).all()
    assert world.name == "Line"
    state, _ = world.reset(jax.random.key(0))
    _, out = world.step(state, jnp.full(1, 3.0), jax.random.key(0))
    assert (bool(out.terminated), bool(out.truncated)) == (False, True)


def test_what_it_cannot_do_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"no functional interface.*adac\.Learner"):
        jit.train(Swung(), "td3", 10)
    with pytest.raises(UserError, match="set n_steps to 1"):
        jit.train(Swing(), "td3", 10, overrides={"n_steps": 3})
    with pytest.raises(UserError, match="must be at least 1"):
        jit.train(Swing(), "td3", 0)


def test_a_task_of_gymnax() -> None:
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make("Pendulum-v1")
    found = jit.train(jit.Gymnax(env, params), "td3", 456, seeds=2, overrides=TINY, log_every=225)
    assert found.steps.tolist() == [6, 231, 456]
    ended = found.returns[:, 1:]  # episodes of 200 steps, by a time limit
    assert (ended < 0).all()
    assert len(set(ended.ravel())) == 4  # another start for each seed and episode


@pytest.mark.filterwarnings("ignore::UserWarning:brax", "ignore::DeprecationWarning")
def test_a_task_of_brax() -> None:
    """The smallest that it has, which never ends by itself: every end is the wrapper's limit."""
    envs = pytest.importorskip("brax.envs")
    limited = pytest.importorskip("brax.envs.wrappers.training").EpisodeWrapper
    env = limited(envs.get_environment("fast"), episode_length=7, action_repeat=1)
    world, key = world_of(env), jax.random.key(0)
    state, obs = world.reset(key)
    assert obs.shape == (world.obs_dim,)
    step = jax.jit(world.step)
    ends = []
    for _ in range(7):
        state, out = step(state, jnp.zeros(1), key)
        ends.append((bool(out.terminated), bool(out.truncated)))
    assert ends == [(False, False)] * 6 + [(False, True)]
    found = jit.train(env, "td3", 34, seeds=2, overrides=TINY, log_every=14)
    assert found.steps.tolist() == [6, 20, 34]
    assert np.isfinite(found.returns[:, 1:]).all()
