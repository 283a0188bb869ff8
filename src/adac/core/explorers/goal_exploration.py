"""GEP-PG: a goal exploration process fills the memory, and then the base explores and learns.

Colas, Sigaud and Oudeyer 2018, "GEP-PG: Decoupling Exploration and Exploitation in Deep
Reinforcement Learning Algorithms". A population of linear policies a = tanh(c W x(s)), W in
[−1, 1], each with the outcome of its episode. The first 50 are drawn uniformly. After that, each
episode draws a goal in the outcome space, takes the policy whose outcome is nearest, and plays it
with N(0, 0.1²) on its weights. After 500 episodes (50 on MountainCarContinuous, of them 10 random)
the base's own explorer acts. Theirs learns nothing until then: `learn_after` says when we begin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final, get_args

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers import goals as spaces
from adac.core.explorers.compose import Composed
from adac.core.explorers.goals import Goals, Trail
from adac.core.explorers.interface import Explorer, Sizes, Transition, View
from adac.core.explorers.noise import GaussianNoise
from adac.core.fields import part, setting
from adac.core.normalise import Statistics, empty, normalise, observe
from adac.core.validation import at_least, counts, one_of

Space = Literal["final", "mean", "half-cheetah", "mountain-car"]
WIDER = 0.25  # of the range of outcomes so far: how far beyond it goals are drawn


class Population(NamedTuple):
    """Of one environment; the memory has a leading axis over environments."""

    policy: Array  # [o, d], the one that plays
    policies: Array  # [E, o, d]
    outcomes: Array  # [E, g]
    played: Array  # episodes so far
    trail: Trail
    seen: Statistics  # of the observations


@final
@dataclass(frozen=True)
class GoalExploration(Composed):
    """GEP-PG: linear policies towards random goals for `episodes` episodes, then `then`."""

    goals: Space = setting(
        "final", "Outcomes: the last or mean observation, or the authors' own for two tasks."
    )
    episodes: int = setting(500, "Episodes, over all environments, that goals are pursued for.")
    random_episodes: int = setting(50, "Of them, the first ones with random policies.")
    mutation: float = setting(0.1, "σ of the noise on the nearest policy's weights.")
    then: Explorer = part(lambda: GaussianNoise(0.1), "Who acts after that.")

    aliases: ClassVar[tuple[str, ...]] = ("gep", "gep-pg")

    def __post_init__(self) -> None:
        one_of(self, "goals", get_args(Space))
        counts(self, 1, "episodes", "random_episodes")
        at_least(self, 0.0, "mutation")
        super().__post_init__()
        object.__setattr__(self, "observes", True)

    def _parts(self) -> Sequence[Explorer]:
        return (self.then,)

    def _each(self, episodes: int, num_envs: int) -> int:
        """Every environment has a population of its own."""
        return -(-episodes // num_envs)

    def init_memory(self, num_envs: int, sizes: Sizes) -> Any:
        space, length = spaces.require(self.goals, sizes.obs), self._each(self.episodes, num_envs)
        trail, policy = spaces.no_trail(sizes.obs), jnp.zeros((sizes.obs, sizes.action))
        outcome = jax.eval_shape(space.outcome, trail)
        one = Population(
            policy=policy,
            policies=jnp.zeros((length, *policy.shape)),
            outcomes=jnp.zeros((length, *outcome.shape)),
            played=jnp.zeros((), jnp.int32),
            trail=trail,
            seen=empty(sizes.obs),
        )
        each = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_envs, *leaf.shape)), one)
        return each, self.then.init_memory(num_envs, sizes)

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        population, own = memory
        policy_key, own_key = jax.random.split(key)
        num_envs, space = first.shape[0], spaces.SPACES[self.goals]
        random = self._each(self.random_episodes, num_envs)
        keys = jax.random.split(policy_key, num_envs)
        drawn = jax.vmap(lambda one, k: self.draw(space, one, random, k))(population, keys)
        policy = jnp.where(first[:, None, None], drawn, population.policy)
        population = population._replace(policy=policy)
        pursued = jax.vmap(lambda one, s: play(space, one, s))(population, view.as_seen(obs))
        later, own = self.then.act(view, obs, own, first, own_key)
        over = population.played >= self._each(self.episodes, num_envs)
        return jnp.where(over[:, None], later, pursued), (population, own)

    def draw(self, space: Goals, one: Population, random: int, key: Array) -> Array:
        """The next episode's policy: a random one, or the nearest to a goal with noise on it."""
        keys = jax.random.split(key, 3)
        uniform = jax.random.uniform(keys[0], one.policy.shape, minval=-1.0, maxval=1.0)
        nearest = one.policies[nearest_to_a_goal(space, one, keys[1])]
        noise = self.mutation * jax.random.normal(keys[2], one.policy.shape)
        return jnp.where(one.played < random, uniform, jnp.clip(nearest + noise, -1.0, 1.0))

    def observe(self, memory: Any, transition: Transition) -> Any:
        population, own = memory
        space = spaces.SPACES[self.goals]
        each = jax.vmap(lambda one, step: remember(space, one, step))(population, transition)
        return each, self.then.observe(own, transition)


def play(space: Goals, one: Population, obs: Array) -> Array:
    """tanh(c W x), with x the observation in the space's unit."""
    if space.centre is None:
        x = normalise(one.seen, obs)
    else:
        x = (obs - jnp.asarray(space.centre)) / jnp.asarray(space.spread)
    gain = obs.shape[-1] ** -0.5 if space.gain is None else space.gain
    return jnp.tanh(gain * x @ one.policy)


def nearest_to_a_goal(space: Goals, one: Population, key: Array) -> Array:
    """Of the episodes so far, the one whose outcome is nearest to a goal drawn uniformly."""
    known = jnp.arange(one.outcomes.shape[0]) < one.played
    if space.space is None:
        low = jnp.min(jnp.where(known[:, None], one.outcomes, jnp.inf), axis=0)
        high = jnp.max(jnp.where(known[:, None], one.outcomes, -jnp.inf), axis=0)
        unit = jnp.stack([low, high], axis=-1)
        wanted = unit + WIDER * (high - low)[:, None] * jnp.array([-1.0, 1.0])
    else:
        unit = jnp.asarray(space.space)
        wanted = unit if space.wanted is None else jnp.asarray(space.wanted)
    goal = jax.random.uniform(key, unit.shape[:1], minval=wanted[:, 0], maxval=wanted[:, 1])
    size = jnp.maximum(unit[:, 1] - unit[:, 0], 1e-6)
    squared = jnp.sum(((one.outcomes - goal) / size) ** 2, axis=-1)
    return jnp.argmin(jnp.where(known, squared, jnp.inf))


def remember(space: Goals, one: Population, step: Transition) -> Population:
    """The step; and where the episode is over, its outcome beside its policy."""
    trail = spaces.extend(one.trail, step.obs, step.action, step.next_obs)
    begun = spaces.no_trail(step.obs.shape[-1])
    place = jnp.minimum(one.played, one.outcomes.shape[0] - 1)
    new = step.ended & (one.played < one.outcomes.shape[0])
    policy = jnp.where(new, one.policy, one.policies[place])
    outcome = jnp.where(new, space.outcome(trail), one.outcomes[place])
    return Population(
        policy=one.policy,
        policies=one.policies.at[place].set(policy),
        outcomes=one.outcomes.at[place].set(outcome),
        played=one.played + new,
        trail=jax.tree.map(lambda a, b: jnp.where(step.ended, b, a), trail, begun),
        seen=observe(one.seen, step.next_obs[None]),
    )
