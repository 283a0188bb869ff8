"""The bonus gap: how much more bonus the behaviour policy μ collects than the target policy π.

By Theorem 1 as it holds (docs/theory.md), exploring costs π at most this much:
E_ρμ[D] ≥ E_ρπ[D] − (E_ρμ[R_in] − E_ρπ[R_in]). Two measures of the bracket:

`action_gap`, at the states that μ has just visited: μ's actions against π's. π's were never
taken, so both are judged alike, by where the intrinsic reward's own model expects them to lead.
`episode_gap`, over whole episodes: each policy really acts, and the bonuses are discounted.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, SupportsFloat

import gymnasium
import jax
import numpy as np
from numpy.typing import NDArray

from adac.envs import flattened
from adac.training.environments import check_spaces
from adac.training.evaluation import PolicyFunction, evaluate
from adac.training.loop import GAP, Loop

Floats = NDArray[np.float32]
Bonus = Callable[[Floats, Floats, Floats], Any]  # (obs, action, next_obs) [B, ...] → [B]
BLOCK = 256  # transitions whose bonus is computed at once; one shape, so one compilation


class Transitions(NamedTuple):
    """One episode."""

    obs: Floats  # [T, o]
    action: Floats  # [T, d], in [-1, 1]
    next_obs: Floats  # [T, o]


class Trace(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that remembers its episodes: wrap those that `evaluate` is given."""

    def __init__(self, env: gymnasium.Env[Any, Any]):
        self._scaling = check_spaces(env, "the task")
        super().__init__(flattened(env))
        self.first = True  # whether the next step is the first of an episode
        self._episodes: list[list[tuple[Floats, Floats, Floats]]] = []
        self._obs = np.zeros(0, np.float32)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        self.first, self._obs = True, np.array(obs, np.float32)
        self._episodes.append([])
        return obs, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        centred = self._scaling.from_task(action).astype(np.float32)
        result = self.env.step(action)
        next_obs = np.array(result[0], np.float32)  # a copy: some tasks change theirs in place
        self._episodes[-1].append((self._obs, centred, next_obs))
        self.first, self._obs = False, next_obs
        return result

    def take(self) -> list[Transitions]:
        """The episodes since the last call; an empty one is passed over."""
        taken, self._episodes = self._episodes, []
        return [Transitions(*map(np.stack, zip(*e, strict=True))) for e in taken if e]


def follow(
    act: Callable[[Floats, Any, NDArray[np.bool_], np.int32], tuple[Any, Any]],
    memory: Any,
    traces: Sequence[Trace],
) -> Callable[[Floats], Floats]:
    """μ, which has a memory, as the function of observations that `evaluate` wants.

    `act(obs, memory, first, number)` returns actions and the next memory; `number` counts its
    calls, for the random key.
    """
    calls = 0

    def policy(obs: Floats) -> Floats:
        nonlocal memory, calls
        first = np.array([trace.first for trace in traces])
        action, memory = act(obs, memory, first, np.int32(calls))
        calls += 1
        return np.asarray(action)

    return policy


def behaviour(loop: Loop, traces: Sequence[Trace], salt: int) -> Callable[[Floats], Floats]:
    """μ as it is now, on these environments; `salt` tells its random actions from others'."""
    explorer = loop.agent.explorer
    key = jax.random.fold_in(loop.keys[GAP], salt)

    def act(obs: Floats, memory: Any, first: NDArray[Any], number: Any) -> tuple[Any, Any]:
        action, memory = loop.running.act(obs, memory, first, key, number, explorer=explorer)
        return action, memory

    return follow(act, loop.init_memory(explorer, len(traces)), traces)


def play_gap(
    loop: Loop,
    target: PolicyFunction,
    lanes: Sequence[gymnasium.Env[Any, Any]],
    episodes: int,
    *,
    salt: int,
    stop: Callable[[], bool] | None,
) -> dict[str, float]:
    """`episode_gap` of episodes that both policies play now, from the same starts."""
    traces, name = [Trace(env) for env in lanes], loop.environments.name

    def run(policy: PolicyFunction) -> list[Transitions]:
        evaluate(policy, traces, episodes, loop.seed, salt=salt, name=name, stop=stop)
        return [episode for trace in traces for episode in trace.take()]

    mu = run(behaviour(loop, traces, salt))
    return episode_gap(loop.running.bonus, mu, run(target), loop.agent.base.discount)


def episode_gap(
    bonus: Bonus, mu: Sequence[Transitions], pi: Sequence[Transitions], discount: float
) -> dict[str, float]:
    """Σ_t γ^t r_in of μ's episodes minus that of π's, each the mean over its episodes."""
    mean_mu, mean_pi = (
        float(np.mean([discounted(bonuses(bonus, episode), discount) for episode in episodes]))
        for episodes in (mu, pi)
    )
    return {
        "episode_bonus_gap": mean_mu - mean_pi,
        "episode_bonus_mu": mean_mu,
        "episode_bonus_pi": mean_pi,
    }


def bonuses(bonus: Bonus, episode: Transitions) -> Floats:
    """The bonus of every step of an episode, [T], computed in blocks of one size."""
    found = []
    for begin in range(0, len(episode.obs), BLOCK):
        block = [column[begin : begin + BLOCK] for column in episode]
        count = len(block[0])
        padded = [np.pad(column, ((0, BLOCK - count), (0, 0))) for column in block]
        found.append(np.asarray(bonus(padded[0], padded[1], padded[2]))[:count])
    return np.concatenate(found)


def discounted(values: NDArray[Any], discount: float) -> float:
    """Σ_t γ^t values_t."""
    return float(np.sum(discount ** np.arange(len(values)) * values))
