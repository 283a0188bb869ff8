"""The loop reads a bonus late; nothing that is learned or stored may show it."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from adac import Learner
from adac.core.explorers import Analogous
from adac.training.replay import Replay
from helpers import TD3, MadeUp, assert_same_bits, row_spec, stored, tiny

# A ring so small that every minibatch has the latest transitions in it, and that it turns over.
CURIOUS = tiny(TD3, Analogous(particles=4), MadeUp(), replay_size=7, warmup=5)


def run(num_envs: int, steps: int = 120, *, settle: bool) -> Learner:
    learner = Learner("Pendulum-v1", CURIOUS, num_envs=num_envs)
    while learner.step < steps:
        learner.loop.advance()
        if settle:
            learner.loop.settle()
    return learner


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_late_bonus_teaches_what_a_stored_one_does(num_envs: int) -> None:
    late, stored = run(num_envs, settle=False), run(num_envs, settle=True)
    assert late.updates == stored.updates > 50
    assert_same_bits(late.state, stored.state)
    np.testing.assert_array_equal(late.replay.rows, stored.replay.rows)


@pytest.mark.parametrize("num_envs", [1, 3])
def test_every_stored_row_gets_its_own_bonus(num_envs: int) -> None:
    learner = run(num_envs, settle=False)
    batch = stored(learner)
    expected = MadeUp().bonus(jax.numpy.zeros(()), batch.obs, batch.action, batch.next_obs)
    np.testing.assert_allclose(batch.bonus, expected, rtol=1e-6)


def test_an_episode_collects_the_bonus_of_its_last_step_too() -> None:
    whole = dataclasses.replace(CURIOUS, replay_size=1_000)
    learner = Learner("Pendulum-v1", whole).learn(401)  # two episodes of 200, and the next's first
    bonus = stored(learner).bonus[:400]
    totals = [episode.bonus for episode in learner.loop.recent]
    np.testing.assert_allclose(totals, np.asarray(bonus).reshape(2, 200).sum(1), rtol=1e-5)


def test_an_update_never_waits_for_the_bonus_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of dispatch is what the loop's speed is made of."""
    learner = run(1, settle=False)
    loop = learner.loop
    order: list[str] = []

    def note(owner: Any, name: str) -> None:
        method = getattr(owner, name)

        def noted(*args: Any, **options: Any) -> Any:
            order.append(name)
            return method(*args, **options)

        monkeypatch.setattr(owner, name, noted)

    for owner, name in (
        (loop.running, "act"), (loop.running, "update"), (loop, "settle"),
        (loop.environments, "step"), (loop.running, "collect"),
    ):  # fmt: skip
        note(owner, name)
    learner.loop.advance()
    assert order == ["act", "update", "settle", "step", "collect"]


def test_ages_count_from_the_latest() -> None:
    spec = row_spec(1, 1)
    replay = Replay(4, spec, np.random.SeedSequence(0))
    for number in range(6):  # rows 2, 3, 4, 5 remain, at places 2, 3, 0, 1
        replay.add(**{name: np.full((1, *shape), number) for name, shape in spec.fields.items()})
    np.testing.assert_array_equal(replay.ages(np.arange(4)), [1, 0, 3, 2])
    replay.put("bonus", np.array([40.0, 50.0]))
    for name, column in spec.columns.items():
        wanted = [40.0, 50.0, 2.0, 3.0] if name == "bonus" else [4.0, 5.0, 2.0, 3.0]
        np.testing.assert_array_equal(replay.rows[:, column][:, 0], wanted)


def memories(learner: Learner, steps: int) -> NDArray[Any]:
    """What the explorer remembers after each step; the warm-up's remembers nothing."""
    found = []
    while learner.step < steps:
        learner.loop.advance()
        if learner.step <= learner.agent.warmup:
            assert learner.loop.memory == ()
        else:
            found.append(np.asarray(learner.loop.memory)[0])
    return np.array(found)


def test_a_slow_latent_is_slow_from_the_first_step_of_the_behaviour_policy() -> None:
    """The warm-up ends within an episode, of which the first step was a random one."""
    slow = tiny(TD3, Analogous(particles=4, latent_correlation=0.99), warmup=5)
    seen = memories(Learner("Pendulum-v1", slow), 60)
    xi, rho = seen[:, :-1], seen[:, -1]
    assert rho == pytest.approx(0.99)
    assert np.linalg.norm(np.diff(xi, axis=0), axis=1).mean() < 0.2 * np.linalg.norm(xi[0])


def test_every_episode_draws_its_own_correlation() -> None:
    mixed = tiny(TD3, Analogous(particles=4, latent_correlation=(0.0, 0.95)), warmup=5)
    learner = Learner("Pendulum-v1", mixed, env_kwargs={"max_episode_steps": 5})
    drawn = memories(learner, 200)[:, -1]
    assert set(drawn) == {0.0, float(np.float32(0.95))}
    assert ((np.flatnonzero(np.diff(drawn)) + 1) % 5 == 0).all()


def test_the_warm_up_tries_the_whole_range_of_actions() -> None:
    learner = Learner("Pendulum-v1", tiny(warmup=200)).learn(200)
    action = stored(learner).action
    assert np.histogram(action, bins=4, range=(-1, 1))[0].min() > 25


@pytest.mark.parametrize(("ratio", "updates"), [(0.5, 10), (1.0, 20), (2.0, 40)])
def test_updates_per_step(ratio: float, updates: int) -> None:
    learner = Learner("Pendulum-v1", tiny(warmup=5, updates_per_step=ratio))
    while learner.step < 26:
        learner.loop.advance()
    assert learner.updates == updates
