"""GEP-PG: it goes where random actions do not, by policies that it remembers."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from worlds import TINY

from adac.core import agent as core
from adac.core.agent import Agent
from adac.core.explorers import Explorer, GaussianNoise, GoalExploration, Sizes, Transition, Uniform
from adac.core.explorers.goal_exploration import nearest_to_a_goal, play
from adac.core.explorers.goals import SPACES, extend, no_trail

LENGTH, EPISODES = 999, 20


def mountain_car(state: Array, action: Array) -> Array:
    """MountainCarContinuous-v0 without its goal: position and velocity."""
    position, speed = state
    speed = speed + 0.0015 * action[0] - 0.0025 * jnp.cos(3.0 * position)
    speed = jnp.clip(speed, -0.07, 0.07)
    moved = jnp.clip(position + speed, -1.2, 0.6)
    return jnp.stack([moved, jnp.where((moved == -1.2) & (speed < 0), 0.0, speed)])


def visited(explorer: Explorer) -> Any:
    """Positions and velocities [T, 2] over all episodes."""
    agent = Agent(explorer=explorer, networks=TINY)
    policy = core.behaviour_policy(agent, core.init(agent, 2, 1, jax.random.key(0)))

    def step(carry: Any, at: Array) -> Any:
        state, memory = carry
        first = at % LENGTH == 0
        state = jnp.where(first, jnp.array([-0.5, 0.0]), state)
        key = jax.random.fold_in(jax.random.key(5), at)
        action, memory = core.act(agent, policy, state[None], memory, first[None], key)
        after = mountain_car(state, action[0])
        ended = (at + 1) % LENGTH == 0
        if explorer.observes:
            row = Transition(state[None], action, jnp.zeros(1), after[None], ended[None])
            memory = explorer.observe(memory, row)
        return (after, memory), (after, action[0])

    memory = explorer.init_memory(1, Sizes(2, 1, TINY.latent))
    start = jnp.array([-0.5, 0.0]), memory
    run = jax.jit(lambda s: jax.lax.scan(step, s, jnp.arange(LENGTH * EPISODES)))
    (_, memory), (states, actions) = run(start)
    return np.asarray(states), np.asarray(actions), memory


def cells(states: Any) -> int:
    """Of a grid of 20 × 20 over the whole space."""
    low, size = np.array([-1.2, -0.07]), np.array([1.8, 0.14])
    return len(np.unique(((states - low) / size * 19.999).astype(int), axis=0))


@pytest.mark.parametrize("goals", ["mountain-car", "final", "mean"])
def test_it_covers_more_of_mountain_car_than_random_actions(goals: Any) -> None:
    explorer = GoalExploration(goals=goals, episodes=EPISODES, random_episodes=5)
    states, _, (population, _) = visited(explorer)
    random = visited(Uniform())[0]
    assert int(population.played[0]) == EPISODES
    assert cells(states) > 1.5 * cells(random)
    assert states[:, 0].max() > 0.45 > random[:, 0].max()  # where the task's goal is


def test_after_its_episodes_the_other_explorer_acts() -> None:
    explorer = GoalExploration(episodes=8, random_episodes=2, then=GaussianNoise(0.0))
    _, actions, _ = visited(explorer)
    later = actions[LENGTH * 8 :]
    first = actions[: LENGTH * 8]
    agent = Agent(explorer=explorer, networks=TINY)
    policy = core.behaviour_policy(agent, core.init(agent, 2, 1, jax.random.key(0)))
    pi = core.view(agent, policy).action(jnp.array([[-0.5, 0.0]]))
    assert np.ptp(later) < 0.2 < np.ptp(first)
    assert np.abs(later[0] - np.asarray(pi)[0]).max() < 1e-5


def test_the_nearest_outcome_s_policy_is_chosen_and_disturbed() -> None:
    explorer = GoalExploration(goals="mountain-car", episodes=30, random_episodes=1, mutation=0.0)
    _, _, (population, _) = visited(explorer)
    one = jax.tree.map(lambda leaf: leaf[0], population)
    key, space = jax.random.key(9), SPACES["mountain-car"]
    chosen = explorer.draw(space, one, 1, key)
    goal_key = jax.random.split(jax.random.key(9), 3)[1]
    place = nearest_to_a_goal(space, one, goal_key)
    assert int(place) < int(one.played)
    np.testing.assert_array_equal(chosen, one.policies[place])


def test_the_authors_goals_are_what_they_say() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 17)).astype(np.float32)
    trail = no_trail(17)
    for before, after in pairwise(rows):
        trail = extend(trail, jnp.asarray(before), jnp.full(6, 0.5), jnp.asarray(after))
    cheetah = SPACES["half-cheetah"].outcome(trail)
    np.testing.assert_allclose(cheetah, [rows[1:, 8].mean(), rows[:, 0].min()], rtol=1e-5)
    car = SPACES["mountain-car"].outcome(trail)
    energy = 0.1 * 5 * 6 * 0.25
    np.testing.assert_allclose(car, [rows[:, 0].max(), np.ptp(rows[:, 0]), energy], rtol=1e-5)


def test_a_policy_is_linear_before_its_squash() -> None:
    explorer = GoalExploration(goals="mountain-car")
    one = jax.tree.map(lambda leaf: leaf[0], explorer.init_memory(1, Sizes(2, 1, 4))[0])
    one = one._replace(policy=jnp.array([[0.5], [-1.0]]))
    action = play(SPACES["mountain-car"], one, jnp.array([0.15, 0.035]))
    assert float(action[0]) == pytest.approx(np.tanh(0.5 * 0.5 - 0.5), rel=1e-5)
