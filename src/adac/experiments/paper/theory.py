"""Theorem 1 of the paper (section 4.3, appendix A) on tabular MDPs: what is printed, what holds.

Notation, as in docs/theory.md. For a policy π, (P^π f)(s, a) = E[f(s', a')], s' ~ P(s, a),
a' ~ π(s'), and A_π = (I − γP^π)⁻¹. So (A_π f)(s, a) is the discounted sum of f along π from the
pair (s, a): the paper's E_{ρπ}[f] from that start, not normalised by 1 − γ. R_in is the bonus,
R' = R + R_in, Q any estimate of π's values, D = T^max Q − Q.

Every function takes leading batch axes: arrays are [..., S, A] unless a comment says otherwise.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class MDP(NamedTuple):
    """A tabular decision process."""

    transition: Array  # [..., S, A, S]
    reward: Array
    discount: Array  # [...]


class Case(NamedTuple):
    """What the theorem speaks of: π is greedy for `estimate`, μ for A_π (reward + bonus)."""

    mdp: MDP
    bonus: Array
    estimate: Array


class Terms(NamedTuple):
    """Every expectation that the statements are made of, one entry per start."""

    gain_pi: Array  # A_π D
    gain_mu: Array  # A_μ D
    return_pi: Array  # A_π R
    return_mu: Array  # A_μ R
    bonus_pi: Array  # A_π R_in
    bonus_mu: Array  # A_μ R_in
    regret_mu: Array  # γ A_μ (P^π − P^μ) Q, what μ gives up by Q's own account; never negative


class Sides(NamedTuple):
    """A statement `left ≥ right` (or `left = right` for the identity), start by start."""

    left: Array
    right: Array

    @property
    def slack(self) -> Array:
        """Left − right: negative where the inequality fails."""
        return self.left - self.right

    @property
    def violated(self) -> Mask:
        """Where left < right by more than rounding can explain."""
        scale = np.maximum(1.0, np.maximum(np.abs(self.left), np.abs(self.right)))
        return np.asarray(self.slack < -1e-9 * scale, dtype=np.bool_)


# Values and policies. A policy is an array of probabilities [..., S, A].


def greedy(values: Array) -> Array:
    """The policy that takes the best action, the first one among equals."""
    return np.asarray(np.eye(values.shape[-1])[values.argmax(-1)], dtype=np.float64)


def under(policy: Array, values: Array) -> Array:
    """E_{a ~ policy(s)} values(s, a), [..., S]."""
    return np.asarray((policy * values).sum(-1), dtype=np.float64)


def ahead(mdp: MDP, state_values: Array) -> Array:
    """γ E_{s' ~ P(s, a)} v(s'), from v of shape [..., S]."""
    expected = (mdp.transition @ state_values[..., None, :, None])[..., 0]
    return np.asarray(mdp.discount[..., None, None] * expected, dtype=np.float64)


def accumulate(mdp: MDP, policy: Array, values: Array) -> Array:
    """A_π f: solved over states, v = f_π + γ P_π v, then f + γ P v; S³ instead of (S·A)³."""
    chain = np.einsum("...sa,...sat->...st", policy, mdp.transition)
    matrix = np.eye(chain.shape[-1]) - mdp.discount[..., None, None] * chain
    state_values = np.linalg.solve(matrix, under(policy, values)[..., None])[..., 0]
    return values + ahead(mdp, state_values)


def backup(mdp: MDP, values: Array) -> Array:
    """T^max_R Q = R + γ E_s' max_a' Q(s', a').

    The paper prints max_a' E_s' (section 3.1), but its proof uses T^max Q = T^π Q for greedy π,
    which is true of this order only.
    """
    return mdp.reward + ahead(mdp, values.max(-1))


def optimal_values(mdp: MDP, sweeps: int = 100) -> Array:
    """Q* by policy iteration: the one Q that is exact for its own greedy policy."""
    policy = greedy(mdp.reward)
    for _ in range(sweeps):
        values = accumulate(mdp, policy, mdp.reward)
        # Only a real gain changes the policy: equal actions would swap for ever by rounding.
        better = values.max(-1) > under(policy, values) + 1e-12 * np.abs(values).max(-1)
        if not better.any():
            break
        policy = np.where(better[..., None], greedy(values), policy)
    return values


# The theorem's setting.


def target_policy(case: Case) -> Array:
    """π: greedy for the estimate of Q^π_R."""
    return greedy(case.estimate)


def behaviour_policy(case: Case) -> Array:
    """μ: greedy for Q^π_R' = A_π R', which the theorem assumes exact ("critic bounding")."""
    return greedy(accumulate(case.mdp, target_policy(case), case.mdp.reward + case.bonus))


def defect(case: Case) -> Array:
    """D = T^max_R Q − Q: what one step of value iteration would change."""
    return backup(case.mdp, case.estimate) - case.estimate


def terms(case: Case, mu: Array | None = None) -> Terms:
    """The expectations from every start pair (s, a), the same for π and μ: [..., S, A].

    `mu` replaces the theorem's μ; the identity and `first_reversed` hold for any policy.
    """
    mdp, pi = case.mdp, target_policy(case)
    mu = behaviour_policy(case) if mu is None else mu
    gain = defect(case)
    shortfall = case.estimate.max(-1) - under(mu, case.estimate)  # [..., S]
    return Terms(
        gain_pi=accumulate(mdp, pi, gain),
        gain_mu=accumulate(mdp, mu, gain),
        return_pi=accumulate(mdp, pi, mdp.reward),
        return_mu=accumulate(mdp, mu, mdp.reward),
        bonus_pi=accumulate(mdp, pi, case.bonus),
        bonus_mu=accumulate(mdp, mu, case.bonus),
        regret_mu=accumulate(mdp, mu, ahead(mdp, shortfall)),
    )


def terms_from_states(case: Case, mu: Array | None = None) -> Terms:
    """The same from every start state, each policy choosing its own first action: [..., S]."""
    pi = target_policy(case)
    mu = behaviour_policy(case) if mu is None else mu
    pairs = terms(case, mu)
    return Terms(
        gain_pi=under(pi, pairs.gain_pi),
        gain_mu=under(mu, pairs.gain_mu),
        return_pi=under(pi, pairs.return_pi),
        return_mu=under(mu, pairs.return_mu),
        bonus_pi=under(pi, pairs.bonus_pi),
        bonus_mu=under(mu, pairs.bonus_mu),
        # The first action is μ's own now, so its shortfall counts as well.
        regret_mu=under(mu, pairs.regret_mu) + case.estimate.max(-1) - under(mu, case.estimate),
    )


# The statements. Assumptions: π greedy for Q, and what each one adds.


def first_printed(t: Terms) -> Sides:
    """Theorem 1, stability, as printed: A_π D ≥ A_μ D + A_π R − A_μ R. FALSE: see the identity."""
    return Sides(t.gain_pi, t.gain_mu + t.return_pi - t.return_mu)


def second_printed(t: Terms) -> Sides:
    """Theorem 1, effectiveness, as printed: A_μ D ≥ A_π D − A_π R_in. FALSE in general."""
    return Sides(t.gain_mu, t.gain_pi - t.bonus_pi)


def identity(t: Terms) -> Sides:
    """A_π D = A_μ D + A_π R − A_μ R − γ A_μ (P^π − P^μ) Q. Any Q, any μ, any R_in."""
    return Sides(t.gain_pi, t.gain_mu + t.return_pi - t.return_mu - t.regret_mu)


def first_reversed(t: Terms) -> Sides:
    """A_μ D ≥ A_π D − (A_π R − A_μ R): the first statement the right way round. Any Q, any μ."""
    return Sides(t.gain_mu, t.gain_pi - (t.return_pi - t.return_mu))


def second_corrected(t: Terms) -> Sides:
    """A_μ D ≥ A_π D − (A_μ − A_π) R_in. Any Q, any R_in; of μ only A_μ R' ≥ A_π R'."""
    return Sides(t.gain_mu, t.gain_pi - bonus_gap(t))


def return_bound(t: Terms) -> Sides:
    """A_μ R ≥ A_π R − (A_μ − A_π) R_in: policy improvement on R'. Assumes A_μ R' ≥ A_π R'."""
    return Sides(t.return_mu, t.return_pi - bonus_gap(t))


def bonus_gap(t: Terms) -> Array:
    """(A_μ − A_π) R_in: the bonus that μ collects over π."""
    return t.bonus_mu - t.bonus_pi


# Hand-made cases, all with γ = 1/2 (docs/theory.md works them through).


def _case(transition: object, reward: object, bonus: object, estimate: object) -> Case:
    table = [np.asarray(x, dtype=np.float64) for x in (transition, reward, bonus, estimate)]
    return Case(MDP(table[0], table[1], np.asarray(0.5)), table[2], table[3])


def first_counterexample() -> Case:
    """One state, two actions, Q exact and π optimal: the first printed statement says 0 ≥ 1."""
    return _case([[[1], [1]]], [[1, 0]], [[0, 2]], [[2, 1]])


def second_counterexample() -> Case:
    """The same with Q at half its value: the second printed statement says 1/2 ≥ 1."""
    return _case([[[1], [1]]], [[1, 0]], [[0, 2]], [[1, 0.5]])


def two_state_example() -> Case:
    """Home pays, away is new; actions stay and move; Q at half its value. Both statements fail."""
    stay_or_move = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    return _case(stay_or_move, [[1, 0], [0, 0]], [[0, 2], [1, 0]], [[1, 0.25], [0.25, 0.5]])


def tight_example() -> Case:
    """μ ≠ π, and the corrected bound holds with equality (Q = 0, so π's choice is a tie).

    π takes the first action; `terms(case, mu=[[0, 1]])` gives the other, greedy for R' as well.
    """
    return _case([[[1], [1]]], [[1, 0]], [[0, 1]], [[0, 0]])


def random_mdp(
    rng: np.random.Generator, states: int, actions: int, batch: tuple[int, ...] = ()
) -> MDP:
    """Sparse Dirichlet transitions, standard normal rewards, γ uniform on [0.5, 0.99]."""
    return MDP(
        rng.dirichlet(np.full(states, 0.3), size=(*batch, states, actions)),
        rng.standard_normal((*batch, states, actions)),
        np.asarray(rng.uniform(0.5, 0.99, size=batch)),
    )
