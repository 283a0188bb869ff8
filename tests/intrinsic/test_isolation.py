"""In ADAC a bonus moves the behaviour side alone; in a plain base, the only critic there is."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from jax import Array

from adac.core import presets, settings
from adac.core.agent import Agent, AgentState
from adac.core.explorers import Analogous, GaussianNoise
from adac.core.intrinsic import Intrinsic, Rnd, Vime
from adac.core.networks import Networks
from adac.errors import RunError
from adac.training.learner import Learner
from helpers import (
    DDPG,
    assert_same_bits,
    first_moment,
    random_batch,
    start,
    step,
    stored,
    tiny,
    unmoved,
)

SMALL_VIME = Vime(model_hidden=(4,), model_samples=2)
SMALL_RND = Rnd(model_hidden=(4,), model_features=4)
PLAIN = Networks(actor_hidden=(8,), critic_hidden=(8,))
BOTH = pytest.mark.parametrize("intrinsic", [SMALL_VIME, SMALL_RND], ids=["vime", "rnd"])


def learn(agent: Agent, state: AgentState, factor: float, updates: range) -> AgentState:
    """Updates on fixed data whose stored bonus is multiplied by `factor`."""
    for number in updates:
        batch = random_batch(number)
        state, _ = step(agent, state, batch._replace(bonus=factor * batch.bonus), number)
    return state


@BOTH
def test_a_bonus_a_million_times_larger_leaves_the_task_alone(intrinsic: Intrinsic) -> None:
    agent = tiny(DDPG, Analogous(particles=4, optimisers="two"), intrinsic)
    # Adam's very first step is a sign, whatever the size of the gradient: so not the first.
    begun = learn(agent, start(agent), 1.0, range(3))
    one, other = (learn(agent, begun, factor, range(3, 4)) for factor in (1.0, 1e6))
    task, behaviour = 0, 1
    assert_same_bits(one.critic.params[task], other.critic.params[task])
    assert_same_bits(one.critic.target[task], other.critic.target[task])
    # Adam's moments tell the gradients apart: π's own, and μ's.
    assert_same_bits(one.actor.opts[0], other.actor.opts[0])
    assert unmoved(first_moment(one.actor.opts[1]), first_moment(other.actor.opts[1])) == []
    assert unmoved(one.critic.params[behaviour], other.critic.params[behaviour]) == []
    assert_same_bits(one.intrinsic, other.intrinsic)


def test_under_one_optimiser_the_task_critic_is_as_isolated() -> None:
    """Of π only the network and Adam's moments are shared with μ: the critics never are."""
    agent = tiny(DDPG, Analogous(particles=4, optimisers="one"), SMALL_VIME)
    begun = learn(agent, start(agent), 1.0, range(3))
    one, other = (learn(agent, begun, factor, range(3, 4)) for factor in (1.0, 1e6))
    assert_same_bits(one.critic.params[0], other.critic.params[0])
    assert unmoved(one.critic.params[1], other.critic.params[1]) == []


def test_without_co_training_the_target_policy_never_hears_of_it() -> None:
    agent = tiny(DDPG, Analogous(particles=4, co_training=False), SMALL_VIME)
    one, other = (learn(agent, start(agent), factor, range(40)) for factor in (0.0, 1e3))
    assert_same_bits(one.actor, other.actor)
    assert_same_bits(one.critic.params[0], other.critic.params[0])
    assert unmoved(behaviour(one), behaviour(other)) == []


def behaviour(state: AgentState) -> Any:
    return state.behaviour.params  # type: ignore[union-attr]


def test_a_plain_base_is_contaminated() -> None:
    agent = tiny(DDPG, GaussianNoise(), SMALL_RND, networks=PLAIN)
    one, other = (learn(agent, start(agent), factor, range(2)) for factor in (0.0, 1.0))
    assert len(one.critic.params) == 1
    assert unmoved(first_moment(one.actor.opts[0]), first_moment(other.actor.opts[0])) == []


def test_presets_put_each_reward_where_it_belongs() -> None:
    for base in ("td3", "ddpg"):
        for label, kind in (("vime", Vime), ("rnd", Rnd)):
            plain, adac = presets.make(f"{base}-{label}"), presets.make(f"adac-{base}-{label}")
            assert isinstance(plain.intrinsic, kind)
            assert isinstance(adac.intrinsic, kind)
            assert (plain.streams, adac.streams) == (1, 2)
            assert settings.from_json(settings.to_json(adac)) == adac
            changed = settings.override(adac, {"eta": "0.7", "model_hidden": "8,8"})
            assert changed.intrinsic == kind(eta=0.7, model_hidden=(8, 8))


def test_settings_of_a_reward_hide_no_other() -> None:
    """`--set name=…` finds the first part with that name: no two parts may share one."""
    for agent in (presets.make("adac-td3-vime"), presets.make("td3-rnd")):
        parts = [agent.base, agent.explorer, agent.networks, agent]
        others = {name for part in parts for name in vars(part)}
        assert not others & set(vars(agent.intrinsic))


PAIRED = {
    "base, stored": (GaussianNoise(), False, PLAIN),
    "adac, stored": (Analogous(particles=4), False, None),
    "adac, fresh": (Analogous(particles=4, latent_correlation=0.9), True, None),
}


def learner(intrinsic: Intrinsic, pair: str = "base, stored") -> Learner:
    explorer, _, networks = PAIRED[pair]
    sizes = {} if networks is None else {"networks": networks}
    return Learner("Pendulum-v1", tiny(DDPG, explorer, intrinsic, warmup=20, **sizes), seed=1)


@pytest.mark.parametrize(
    ("intrinsic", "pair"),
    [
        *((SMALL_VIME, pair) for pair in PAIRED),
        (SMALL_RND, "base, stored"),
        (SMALL_RND, "adac, fresh"),
    ],
)
def test_resume_is_exact(intrinsic: Vime | Rnd, pair: str, tmp_path: Path) -> None:
    intrinsic = replace(intrinsic, fresh_bonus=PAIRED[pair][1], bonus_after=20)
    whole = learner(intrinsic, pair).learn(130)
    stopped = learner(intrinsic, pair).learn(130, callback=lambda run: run.step < 100)
    stopped.save(tmp_path)
    resumed = Learner.load(tmp_path)
    resumed.learn(130 - resumed.step)
    assert_same_bits(whole.state, resumed.state)
    assert_same_bits(stored(whole), stored(resumed))
    bonus = stored(whole).bonus[90:]
    assert (bonus > 0.0).all()  # its size at collection is what the scale is made of
    assert float(whole.loop.running.metrics["bonus"]) > 0.0


@dataclass(frozen=True)
class Broken(Intrinsic):
    def init(self, obs_dim: int, action_dim: int, key: Array) -> Any:
        return jnp.zeros(())

    def bonus(self, state: Any, obs: Array, action: Array, next_obs: Array) -> Array:
        return jnp.full(obs.shape[0], jnp.nan)

    def update(
        self, state: Any, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[Any, dict[str, Array]]:
        return state, {}


@pytest.mark.parametrize("fresh", [False, True])
def test_a_bonus_that_is_not_finite_names_its_module(fresh: bool) -> None:
    run = learner(Broken(fresh_bonus=fresh))
    with pytest.raises(RunError, match="Broken is not finite at step"):
        run.learn(30, log_every=25)
