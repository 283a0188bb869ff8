"""Random cases for Theorem 1, and the search for the smallest contradiction among them."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adac.experiments.paper import theory
from adac.experiments.paper.theory import MDP, Array, Case, Mask, Sides, Terms

ESTIMATES = ("arbitrary", "value iteration", "near optimal", "half optimal", "exact")
BONUSES = ("everywhere", "rare", "off target")
DENOMINATORS, DISCOUNTS = (1, 2, 4, 5, 10, 20, 100), (0.5, 0.9)  # tried in this order

Rule = Callable[[Terms], Sides]  # a statement of theory.py


class Counterexample(NamedTuple):
    """A case that contradicts a printed statement, its numbers multiples of 1/denominator."""

    case: Case
    start: tuple[int, int]
    left: float
    right: float
    denominator: int | None  # None: no rounding survived, the case is as it was drawn


def draw_estimates(rng: np.random.Generator, mdp: MDP, kind: np.ndarray) -> Array:
    """Q of the given kinds: noise, some sweeps of value iteration, Q* + noise, Q*/2, Q*."""
    swept = np.zeros_like(mdp.reward)
    sweeps = rng.integers(1, 11, size=len(kind))
    for sweep in range(10):
        swept = np.where((sweep < sweeps)[:, None, None], theory.backup(mdp, swept), swept)
    noise = rng.standard_normal(mdp.reward.shape)
    optimal = theory.optimal_values(mdp)
    candidates = np.stack([noise, swept, optimal + 0.3 * noise, optimal / 2, optimal])
    return np.asarray(candidates[kind, np.arange(len(kind))], dtype=np.float64)


def draw_bonuses(rng: np.random.Generator, pi: Array, kind: np.ndarray) -> Array:
    """R_in ≥ 0: at every pair, at one pair in five, or only where π does not act."""
    everywhere = rng.exponential(size=pi.shape)
    rare = 5 * everywhere * (rng.random(pi.shape) < 0.2)
    candidates = np.stack([everywhere, rare, everywhere * (1 - pi)])
    return np.asarray(candidates[kind, np.arange(len(kind))], dtype=np.float64)


def draw_cases(
    rng: np.random.Generator, states: int, actions: int, count: int
) -> tuple[Case, np.ndarray, np.ndarray]:
    """`count` cases of one shape, with the kinds of their estimates and bonuses."""
    mdp = theory.random_mdp(rng, states, actions, (count,))
    estimate_kind = rng.integers(len(ESTIMATES), size=count)
    bonus_kind = rng.integers(len(BONUSES), size=count)
    estimate = draw_estimates(rng, mdp, estimate_kind)
    bonus = draw_bonuses(rng, theory.greedy(estimate), bonus_kind)
    return Case(mdp, bonus, estimate), estimate_kind, bonus_kind


def pick(case: Case, index: Any) -> Case:
    """A member, or a selection, of a batch of cases."""
    return Case(MDP(*(x[index] for x in case.mdp)), case.bonus[index], case.estimate[index])


def round_rows(probabilities: Array, denominator: int) -> Array:
    """Multiples of 1/denominator that still sum to 1, by largest remainder."""
    scaled = probabilities * denominator
    floor = np.floor(scaled)
    missing = denominator - floor.sum(-1, keepdims=True)
    rank = np.argsort(np.argsort(-(scaled - floor), axis=-1, kind="stable"), axis=-1)
    return np.asarray((floor + (rank < missing)) / denominator, dtype=np.float64)


def round_case(case: Case, denominator: int, discount: float) -> Case:
    """The case with every table on the grid and one simple γ."""

    def grid(values: Array) -> Array:
        # + 0.0 turns −0 into 0.
        return np.asarray(np.round(values * denominator) / denominator + 0.0, dtype=np.float64)

    mdp = MDP(
        round_rows(case.mdp.transition, denominator),
        grid(case.mdp.reward),
        np.full_like(case.mdp.discount, discount),
    )
    return Case(mdp, grid(case.bonus), grid(case.estimate))


def clear_choice(case: Case) -> Mask:
    """Where neither π nor μ is picked among equals: no contradiction may rest on a tie."""
    pi = theory.target_policy(case)
    shaped = theory.accumulate(case.mdp, pi, case.mdp.reward + case.bonus)
    best_two = np.sort(np.stack([case.estimate, shaped]), -1)[..., -2:]
    return np.asarray(np.diff(best_two).min((0, -1, -2)) > 1e-6, dtype=np.bool_)


def fails(case: Case, rule: Rule) -> Mask:
    """Whether a batch's members contradict the rule from some start pair."""
    return np.asarray(rule(theory.terms(case)).violated.any((-1, -2)), dtype=np.bool_)


def smallest(cases: Case, rule: Rule) -> Counterexample | None:
    """Of one shape: the contradiction that survives the coarsest grid, then the least numbers."""
    failing = pick(cases, fails(cases, rule))
    if len(failing.bonus) == 0:
        return None
    for denominator, discount in itertools.product(DENOMINATORS, DISCOUNTS):
        rounded = round_case(failing, denominator, discount)
        # A bonus must be left: without one the theorem has nothing to say about exploring.
        kept = fails(rounded, rule) & clear_choice(rounded) & rounded.bonus.any((-1, -2))
        if kept.any():
            tables = np.stack([rounded.mdp.reward, rounded.bonus, rounded.estimate])
            size = np.abs(tables).sum((0, -1, -2))
            best = int(np.where(kept, size, np.inf).argmin())
            return describe(pick(rounded, best), rule, denominator)
    return describe(pick(failing, 0), rule, None)


def describe(case: Case, rule: Rule, denominator: int | None) -> Counterexample:
    """One case with its worst start."""
    sides = rule(theory.terms(case))
    state, action = np.unravel_index(sides.slack.argmin(), sides.slack.shape)
    left, right = float(sides.left[state, action]), float(sides.right[state, action])
    return Counterexample(case, (int(state), int(action)), left, right, denominator)
