"""Theorem 1: the identity, the bounds that hold, and counter-examples to those that do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adac.experiments.paper import theory
from adac.experiments.paper.theory import MDP, Case, accumulate, greedy

GRID = st.integers(-8, 8).map(lambda n: n / 2)  # small halves: ties are frequent, shrinking is kind
TOLERANCE = 1e-8
quick = settings(max_examples=50)
thorough = settings(max_examples=150)


@st.composite
def cases(draw: st.DrawFn, bonus: st.SearchStrategy[float] = GRID) -> Case:
    """MDPs of 2 to 8 states and 2 to 5 actions, with any estimate Q whatever."""
    states, actions = draw(st.integers(2, 8)), draw(st.integers(2, 5))
    weights = draw(arrays(np.float64, (states, actions, states), elements=st.integers(0, 4)))
    weights[..., 0] += weights.sum(-1) == 0
    table = (states, actions)
    mdp = MDP(
        weights / weights.sum(-1, keepdims=True),
        draw(arrays(np.float64, table, elements=GRID)),
        np.asarray(draw(st.sampled_from([0.0, 0.5, 0.9, 0.99]))),
    )
    estimate = draw(arrays(np.float64, table, elements=GRID))
    return Case(mdp, draw(arrays(np.float64, table, elements=bonus)), estimate)


@st.composite
def cases_and_policies(draw: st.DrawFn) -> tuple[Case, theory.Array]:
    """A case and a stochastic policy that has nothing to do with it."""
    case = draw(cases())
    weights = draw(arrays(np.float64, case.bonus.shape, elements=st.integers(0, 3)))
    weights[..., 0] += weights.sum(-1) == 0
    return case, weights / weights.sum(-1, keepdims=True)


def matrix(mdp: MDP, policy: theory.Array) -> theory.Array:
    """P^π over pairs, written out: an oracle that shares no code with `accumulate`."""
    joint = mdp.transition[..., None] * policy
    return joint.reshape(policy.size, policy.size)


def inverse(mdp: MDP, policy: theory.Array) -> theory.Array:
    return np.linalg.inv(np.eye(policy.size) - mdp.discount * matrix(mdp, policy))


# What always holds.


@quick
@given(cases_and_policies())
def test_accumulate_is_the_inverse_matrix(drawn: tuple[Case, theory.Array]) -> None:
    case, policy = drawn
    expected = inverse(case.mdp, policy) @ case.bonus.ravel()
    np.testing.assert_allclose(
        accumulate(case.mdp, policy, case.bonus).ravel(), expected, atol=TOLERANCE
    )


@quick
@given(cases_and_policies())
def test_regret_is_the_product_in_the_identity(drawn: tuple[Case, theory.Array]) -> None:
    case, mu = drawn
    pi = theory.target_policy(case)
    product = inverse(case.mdp, mu) @ (matrix(case.mdp, pi) - matrix(case.mdp, mu))
    expected = case.mdp.discount * product @ case.estimate.ravel()
    regret = theory.terms(case, mu).regret_mu
    np.testing.assert_allclose(regret.ravel(), expected, atol=TOLERANCE)
    assert regret.min() >= -TOLERANCE


@quick
@given(cases())
def test_gain_of_pi_is_its_return_minus_the_estimate(case: Case) -> None:
    """A_π D = A_π R − Q for any Q, as π is greedy for it."""
    t = theory.terms(case)
    np.testing.assert_allclose(t.gain_pi, t.return_pi - case.estimate, atol=TOLERANCE)


@thorough
@given(cases_and_policies())
def test_identity_and_reversed_first_bound_for_any_policy(
    drawn: tuple[Case, theory.Array],
) -> None:
    case, other = drawn
    for mu in (None, other):
        for t in (theory.terms(case, mu), theory.terms_from_states(case, mu)):
            assert np.abs(theory.identity(t).slack).max() <= TOLERANCE
            assert theory.first_reversed(t).slack.min() >= -TOLERANCE


@thorough
@given(cases())
def test_corrected_bounds_hold_for_any_estimate_and_any_bonus(case: Case) -> None:
    for t in (theory.terms(case), theory.terms_from_states(case)):
        assert theory.second_corrected(t).slack.min() >= -TOLERANCE
        assert theory.return_bound(t).slack.min() >= -TOLERANCE


@quick
@given(cases())
def test_corrected_bounds_need_only_that_mu_improves_on_the_summed_reward(case: Case) -> None:
    """The optimal policy for R', found without critic bounding, obeys them as well."""
    shaped = case.mdp._replace(reward=case.mdp.reward + case.bonus)
    t = theory.terms(case, greedy(theory.optimal_values(shaped)))
    assert theory.second_corrected(t).slack.min() >= -TOLERANCE
    assert theory.return_bound(t).slack.min() >= -TOLERANCE


@quick
@given(cases_and_policies())
def test_corrected_bounds_for_any_policy_loosen_by_its_shortfall(
    drawn: tuple[Case, theory.Array],
) -> None:
    """A μ that falls short of π by at most ε in Q^π_R' loses at most γ ε / (1 − γ) more."""
    case, mu = drawn
    pi, discount = theory.target_policy(case), case.mdp.discount
    shaped = accumulate(case.mdp, pi, case.mdp.reward + case.bonus)
    shortfall = max(0.0, (theory.under(pi, shaped) - theory.under(mu, shaped)).max())
    allowance = discount * shortfall / (1 - discount)
    t = theory.terms(case, mu)
    assert theory.second_corrected(t).slack.min() >= -allowance - TOLERANCE
    assert theory.return_bound(t).slack.min() >= -allowance - TOLERANCE


@quick
@given(cases(bonus=st.integers(0, 8).map(float)))
def test_printed_second_bound_where_mu_collects_at_most_twice_the_bonus_of_pi(case: Case) -> None:
    t = theory.terms(case)
    modest = t.bonus_mu <= 2 * t.bonus_pi
    assert (theory.second_printed(t).slack >= -TOLERANCE)[modest].all()


@quick
@given(cases())
def test_equality_where_mu_is_pi(case: Case) -> None:
    for mu in (None, theory.target_policy(case)):
        quiet = case._replace(bonus=np.zeros_like(case.bonus))
        # Without a bonus the theorem's own μ is π as soon as Q is exact.
        quiet = quiet._replace(estimate=theory.optimal_values(case.mdp)) if mu is None else quiet
        t = theory.terms(quiet, mu)
        for statement in (theory.first_printed, theory.first_reversed, theory.second_corrected):
            np.testing.assert_allclose(statement(t).slack, 0, atol=TOLERANCE)


@quick
@given(cases())
def test_exact_estimate_makes_both_gains_vanish(case: Case) -> None:
    exact = case._replace(estimate=theory.optimal_values(case.mdp))
    np.testing.assert_allclose(theory.defect(exact), 0, atol=TOLERANCE)


@quick
@given(cases())
def test_lemma_of_the_appendix_holds_with_the_right_inverse(case: Case) -> None:
    """A_μ R' − A_π R = (A_μ − A_π) D − A_μ (T^max_R Q − T^μ_R' Q)."""
    mdp, mu, t = case.mdp, theory.behaviour_policy(case), theory.terms(case)
    smoothed = mdp.reward + case.bonus + theory.ahead(mdp, theory.under(mu, case.estimate))
    change = theory.backup(mdp, case.estimate) - smoothed
    left = t.return_mu + t.bonus_mu - t.return_pi
    right = t.gain_mu - t.gain_pi - accumulate(mdp, mu, change)
    np.testing.assert_allclose(left, right, atol=TOLERANCE)


def test_a_batch_is_its_members() -> None:
    rng = np.random.default_rng(0)
    mdp = theory.random_mdp(rng, 3, 2, (4,))
    case = Case(mdp, rng.exponential(size=(4, 3, 2)), rng.standard_normal((4, 3, 2)))
    together = theory.terms_from_states(case)
    for i in range(4):
        member = Case(MDP(*(x[i] for x in mdp)), case.bonus[i], case.estimate[i])
        for a, b in zip(together, theory.terms_from_states(member), strict=True):
            np.testing.assert_allclose(a[i], b, atol=1e-12)


def test_optimal_values_are_the_fixed_point_of_the_backup() -> None:
    mdp = theory.random_mdp(np.random.default_rng(1), 8, 5, (50,))
    values = theory.optimal_values(mdp)
    np.testing.assert_allclose(theory.backup(mdp, values), values, atol=1e-9)


# What does not hold.


def test_first_printed_statement_fails_with_an_exact_critic() -> None:
    """One state, rewards (1, 0), bonuses (0, 2), γ = 1/2; π takes the first, μ the second action.

    Q = (1 + 1, 0 + 1) = (2, 1) is exact, so D = 0. μ earns nothing after its first step:
    A_μ R = (1, 0), and the statement reads 0 ≥ 0 + (2, 1) − (1, 0).
    """
    t = theory.terms(theory.first_counterexample())
    np.testing.assert_array_equal(t.gain_pi, [[0, 0]])
    np.testing.assert_array_equal(t.gain_mu, [[0, 0]])
    np.testing.assert_array_equal(t.return_pi, [[2, 1]])
    np.testing.assert_array_equal(t.return_mu, [[1, 0]])
    np.testing.assert_array_equal(theory.first_printed(t).slack, [[-1, -1]])
    assert theory.first_printed(t).violated.all()
    assert not theory.first_reversed(t).violated.any()
    from_state = theory.terms_from_states(theory.first_counterexample())
    assert theory.first_printed(from_state).slack == pytest.approx(-2)  # 0 ≥ 0 + 2 − 0


def test_second_printed_statement_fails_with_half_the_value() -> None:
    """Q = (1, 1/2): D = (1 + 1/2 − 1, 0 + 1/2 − 1/2) = (1/2, 0), so A_π D = (1, 1/2), A_μ D = D.

    π sees no bonus after its first step, A_π R_in = (0, 2); μ sees 2 at each, A_μ R_in = (2, 4).
    """
    case = theory.second_counterexample()
    t = theory.terms(case)
    np.testing.assert_array_equal(theory.defect(case), [[0.5, 0]])
    np.testing.assert_array_equal(t.gain_pi, [[1, 0.5]])
    np.testing.assert_array_equal(t.gain_mu, [[0.5, 0]])
    np.testing.assert_array_equal(t.bonus_pi, [[0, 2]])
    np.testing.assert_array_equal(t.bonus_mu, [[2, 4]])
    np.testing.assert_array_equal(theory.second_printed(t).slack, [[-0.5, 1.5]])
    np.testing.assert_array_equal(theory.second_printed(t).violated, [[True, False]])
    np.testing.assert_array_equal(theory.second_corrected(t).slack, [[1.5, 1.5]])
    assert theory.second_printed(theory.terms_from_states(case)).slack == pytest.approx(-1)


def test_two_states_worked_by_hand() -> None:
    """Home (stay pays 1) and away; bonus 2 for leaving, 1 for staying away; γ = 1/2.

    π: stay home, move back. Its values: home/stay 1/(1 − 1/2) = 2, away/move 2/2 = 1,
    home/move and away/stay 1/2. Q is half of that, so D = R/2 and A_π D = Q.
    R' through π: home/move 2 + 1/2 beats 2; away/stay 1 + 1/2 beats 1. So μ leaves and stays away.
    """
    case = theory.two_state_example()
    t = theory.terms(case)
    np.testing.assert_array_equal(theory.target_policy(case), [[1, 0], [0, 1]])
    np.testing.assert_array_equal(theory.behaviour_policy(case), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(t.return_pi, [[2, 0.5], [0.5, 1]])
    np.testing.assert_array_equal(t.return_mu, [[1, 0], [0, 0]])
    np.testing.assert_array_equal(theory.defect(case), [[0.5, 0], [0, 0]])
    np.testing.assert_array_equal(t.gain_pi, case.estimate)
    np.testing.assert_array_equal(t.gain_mu, [[0.5, 0], [0, 0]])
    np.testing.assert_array_equal(t.bonus_pi, [[0, 2], [1, 0]])
    np.testing.assert_array_equal(t.bonus_mu, [[1.5, 3], [2, 1.5]])
    # Away/stay: μ stays away for ever. Its regret by Q's account: 1/4 a step there, 3/4 at home.
    np.testing.assert_array_equal(t.regret_mu, [[0.5, 0.25], [0.25, 0.5]])
    np.testing.assert_array_equal(theory.identity(t).slack, np.zeros((2, 2)))
    np.testing.assert_array_equal(theory.first_printed(t).slack, [[-0.5, -0.25], [-0.25, -0.5]])
    np.testing.assert_array_equal(theory.second_printed(t).slack, [[-0.5, 1.75], [0.75, -0.5]])
    np.testing.assert_array_equal(theory.second_corrected(t).slack, [[1, 0.75], [0.75, 1]])
    np.testing.assert_array_equal(theory.return_bound(t).slack, [[0.5, 0.5], [0.5, 0.5]])


def test_corrected_bound_cannot_be_improved_by_a_factor() -> None:
    case = theory.tight_example()
    t = theory.terms(case, np.asarray([[0.0, 1.0]]))
    np.testing.assert_array_equal(theory.bonus_gap(t), [[1, 1]])
    np.testing.assert_array_equal(theory.second_corrected(t).slack, [[0, 0]])
    shaped = accumulate(case.mdp, theory.target_policy(case), case.mdp.reward + case.bonus)
    np.testing.assert_array_equal(shaped, [[2, 2]])  # the other action is greedy as well


def test_return_of_mu_may_exceed_that_of_pi() -> None:
    """The paper calls E_ρπ[R] − E_ρμ[R] "always non-negative": not while Q is still wrong."""
    case = theory.first_counterexample()._replace(estimate=np.asarray([[0.0, 1.0]]))
    t = theory.terms(case._replace(bonus=np.zeros((1, 2))))
    assert (t.return_pi < t.return_mu).all()


def test_halving_an_exact_estimate_breaks_the_second_statement_almost_everywhere() -> None:
    """With Q = Q*/2, D = R/2: it fails as soon as π meets no bonus and μ's detour costs."""
    rng = np.random.default_rng(2)
    mdp = theory.random_mdp(rng, 5, 3, (500,))
    estimate = theory.optimal_values(mdp) / 2
    bonus = rng.exponential(size=estimate.shape) * (1 - greedy(estimate))
    t = theory.terms(Case(mdp, bonus, estimate))
    np.testing.assert_allclose(t.gain_mu, t.return_mu / 2, atol=TOLERANCE)
    assert theory.second_printed(t).violated.any((-1, -2)).mean() > 0.9


def test_violated_ignores_rounding() -> None:
    sides = theory.Sides(np.asarray([0.0, 0.0, 1e6]), np.asarray([1e-12, 1e-6, 1e6 + 1e-5]))
    np.testing.assert_array_equal(sides.violated, [False, True, False])
