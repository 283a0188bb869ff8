"""Explorers that are told what a step brought, that look at values and bonus, and that learn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core.critics import Value
from adac.core.explorers import Explorer, Mixture, OrnsteinUhlenbeck, Sizes, Then, Transition, View
from adac.core.explorers import Uniform as UniformActions
from adac.training.learner import Learner
from helpers import TD3, MadeUp, assert_same_bits, stored, tiny


@final
@dataclass(frozen=True)
class Diary(Explorer):
    """Writes down all that it is told of the episode, and acts on the last reward."""

    observes: ClassVar[bool] = True

    def init_memory(self, num_envs: int, sizes: Sizes) -> dict[str, Array]:
        return {
            "total": jnp.zeros(num_envs),
            "steps": jnp.zeros(num_envs, jnp.int32),
            "ended": jnp.zeros(num_envs, bool),
            "moved": jnp.zeros((num_envs, sizes.obs)),
        }

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        memory = jax.tree.map(
            lambda x: jnp.where(first.reshape(-1, *[1] * (x.ndim - 1)), jnp.zeros_like(x), x),
            memory,
        )
        noise = jax.random.normal(key, (obs.shape[0], view.action_dim))
        return jnp.tanh(memory["total"][:, None] + noise), memory

    def observe(self, memory: Any, transition: Transition) -> Any:
        return {
            "total": memory["total"] + transition.reward,
            "steps": memory["steps"] + 1,
            "ended": transition.ended,
            "moved": memory["moved"] + transition.next_obs - transition.obs,
        }


SHORT = {"max_episode_steps": 7}


@pytest.mark.parametrize("num_envs", [1, 3])
def test_an_explorer_that_observes_is_told_rewards_and_ends(num_envs: int) -> None:
    agent = tiny(TD3, Diary(), warmup=6)
    learner = Learner("Pendulum-v1", agent, num_envs=num_envs, env_kwargs=SHORT)
    while learner.step < 40 * num_envs:
        begun = learner.step >= 6
        learner.loop.advance()
        if not begun:
            assert learner.loop.memory == ()  # the warm-up is not told anything
            continue
        rows = stored(learner)
        memory = {name: np.asarray(value) for name, value in learner.loop.memory.items()}
        np.testing.assert_array_equal(memory["ended"], learner.loop.environments.first)
        # Episodes are 7 long; the explorer's first one began where the warm-up ended.
        time = learner.step // num_envs
        steps = min((time - 1) % 7 + 1, time - -(-6 // num_envs))
        np.testing.assert_array_equal(memory["steps"], steps)
        recent = np.asarray(rows.reward).reshape(-1, num_envs)[-steps:]
        np.testing.assert_allclose(memory["total"], recent.sum(0), rtol=1e-4, atol=1e-5)
        obs = np.asarray(rows.obs).reshape(-1, num_envs, 3)[-steps]
        moved = np.asarray(rows.next_obs).reshape(-1, num_envs, 3)[-1] - obs
        np.testing.assert_allclose(memory["moved"], moved, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "explorer",
    [Diary(), Mixture((OrnsteinUhlenbeck(), Diary())), Then(OrnsteinUhlenbeck(), Diary(), 30)],
    ids=["alone", "in a mixture", "after another"],
)
@pytest.mark.parametrize("stop", [20, 41])
def test_what_it_was_told_is_not_forgotten_by_a_checkpoint(
    explorer: Explorer, stop: int, tmp_path: Path
) -> None:
    def begin() -> Learner:
        return Learner("Pendulum-v1", tiny(TD3, explorer, warmup=10), env_kwargs=SHORT)

    whole = begin().learn(60)
    begin().learn(60, callback=lambda learner: learner.step < stop).save(tmp_path)
    resumed = Learner.load(tmp_path)
    resumed.learn(60 - resumed.step)
    assert_same_bits(
        (whole.state, whole.loop.memory, stored(whole)),
        (resumed.state, resumed.loop.memory, stored(resumed)),
    )


@pytest.mark.parametrize(
    "explorer",
    [
        Then(OrnsteinUhlenbeck(), UniformActions(), 5),
        Then(UniformActions(), OrnsteinUhlenbeck(), 5),
        Then(Diary(), OrnsteinUhlenbeck(), 5),
    ],
    ids=["memory to none", "none to memory", "one to another"],
)
def test_a_run_without_its_rows_does_not_need_its_explorer_s_memory(
    explorer: Explorer, tmp_path: Path
) -> None:
    """`adac eval` reads weights alone, whoever acted at first and at last."""
    Learner("Pendulum-v1", tiny(TD3, explorer, warmup=0)).learn(12).save(tmp_path)
    loaded = Learner.load(tmp_path, with_replay=False)
    assert loaded.step == 12
    loaded.evaluate(1)
    loaded.learn(3)


# -- looking, and learning -----------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Greedy(Explorer):
    """Of a few random actions the one that the critics and the bonus like most."""

    sees_values: ClassVar[bool] = True
    sees_bonus: ClassVar[bool] = True

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        shape = (8, obs.shape[0], view.action_dim)
        options = jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)
        value = jnp.stack([self.liking(view, obs, option) for option in options])
        best = jnp.argmax(value, axis=0)
        return options[best, jnp.arange(obs.shape[0])], memory

    def liking(self, view: View, obs: Array, action: Array) -> Array:
        first, second = view.values(obs)
        return jnp.minimum(first(action), second(action)) + view.bonus(obs, action, obs)


def test_an_explorer_that_asks_for_values_and_bonus_sees_them() -> None:
    agent = tiny(TD3, Greedy(), MadeUp(), warmup=5)
    learner = Learner("Pendulum-v1", agent).learn(30)
    state, obs = learner.state, np.ones((4, 3), np.float32)
    action, _ = learner.loop.running.act(
        obs, (), np.ones(4, bool), jax.random.key(0), np.int32(1), explorer=Greedy()
    )
    key = jax.random.fold_in(jax.random.key(0), 1)
    options = jax.random.uniform(key, (8, 4, 1), minval=-1.0, maxval=1.0)
    q = np.min(
        [[agent.critic.at(net, obs)(o) for o in options] for net in state.critic.params[0]], axis=0
    )
    bonus = np.array([(obs**2).sum(1) + (np.asarray(o) ** 2).sum(1) for o in options])
    wanted = np.asarray(options)[np.argmax(q + bonus, axis=0), np.arange(4)]
    np.testing.assert_allclose(action, wanted, rtol=1e-6)


@final
@dataclass(frozen=True)
class Learning(Explorer):
    """Its own number follows what its loss reports, and is in its actions."""

    trained: ClassVar[bool] = True

    @property
    def learning_rate(self) -> float:
        return 1e-3

    def init_learned(self, sizes: Sizes, key: Array) -> Array:
        return jnp.float32(sizes.action)

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        noise = jax.random.normal(key, (obs.shape[0], view.action_dim))
        return jnp.tanh(view.location(obs) + view.learned * noise), memory

    def loss(
        self, view: View, q: Value, obs: Array, progress: Array, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        return jnp.mean(view.location(obs) ** 2), {"told": view.learned}

    def improve_learned(self, learned: Any, metrics: dict[str, Array]) -> Any:
        return 0.5 * metrics["told"]


def test_an_explorer_s_own_numbers_are_learned_and_kept(tmp_path: Path) -> None:
    learner = Learner("Pendulum-v1", tiny(TD3, Learning(), warmup=5)).learn(12)
    improvements = learner.updates // learner.agent.base.policy_delay
    assert improvements == 3
    assert float(learner.state.explorer) == 0.5**improvements
    learner.save(tmp_path)
    assert_same_bits(Learner.load(tmp_path).state, learner.state)
