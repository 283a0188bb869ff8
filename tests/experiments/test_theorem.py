"""`adac reproduce theorem`: what is drawn, counted, found and written."""

import csv
import pathlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adac.errors import UserError
from adac.experiments.paper import theorem, theorem_cases, theory
from adac.experiments.paper.theorem import STARTS, STATEMENTS, Study, study
from adac.experiments.paper.theory import Case

HOLDING = [s.key for s in STATEMENTS if not s.printed]


@pytest.fixture(scope="module")
def result() -> Study:
    return study(2800, 0)


def test_shapes_share_the_mdps_evenly(result: Study) -> None:
    sizes, counts = np.unique([result.states, result.actions], axis=1, return_counts=True)
    assert sizes.shape == (2, 7 * 4)
    assert set(counts) == {100}
    assert sizes.min(1).tolist() == [2, 2]
    assert sizes.max(1).tolist() == [8, 5]


def test_what_holds_is_never_violated_from_any_start(result: Study) -> None:
    for key in HOLDING:
        for start in STARTS:
            assert not result.violated[key, start].any()
            assert result.slack[key, start].min() > -1e-9
    assert result.identity_error.max() < 1e-8


def test_first_printed_statement_never_holds_but_with_equality(result: Study) -> None:
    slack, violated = (x["first_printed", "pair"] for x in (result.slack, result.violated))
    assert violated.mean() > 0.8
    assert slack.max() < 1e-9
    np.testing.assert_allclose(slack[~violated], 0, atol=1e-9)


def test_second_printed_statement_depends_on_the_estimate(result: Study) -> None:
    failed = result.violated["second_printed", "pair"]
    off_target = result.bonus == theorem_cases.BONUSES.index("off target")
    share = {
        name: failed[off_target & (result.estimate == i)].mean()
        for i, name in enumerate(theorem_cases.ESTIMATES)
    }
    assert share["exact"] == 0
    assert 0 < share["arbitrary"] < 0.1
    assert share["half optimal"] > 0.8


def total(case: Case, policy: theory.Array, values: theory.Array) -> theory.Array:
    """A_π f over pairs by an explicit matrix: an oracle."""
    chain = (case.mdp.transition[..., None] * policy).reshape(values.size, values.size)
    return np.linalg.solve(np.eye(values.size) - case.mdp.discount * chain, values.ravel())


def test_counts_agree_with_one_mdp_at_a_time() -> None:
    batch, _, _ = theorem_cases.draw_cases(np.random.default_rng(3), 3, 3, 40)
    slack, violated = theorem.measure(batch)
    assert 0 < violated["second_printed", "pair"].sum() < 40
    for i in range(40):
        case = theorem_cases.pick(batch, i)
        pi, mu, gain = (
            theory.target_policy(case),
            theory.behaviour_policy(case),
            theory.defect(case),
        )
        difference = total(case, mu, gain) - total(case, pi, gain) + total(case, pi, case.bonus)
        worst = (1 - case.mdp.discount) * difference.min()
        assert slack["second_printed", "pair"][i] == pytest.approx(worst, abs=1e-9)
        assert violated["second_printed", "pair"][i] == (worst < -1e-9)


def test_smallest_counterexamples_are_small_round_and_true(result: Study) -> None:
    for statement in (s for s in STATEMENTS if s.printed):
        found = result.smallest[statement.key]
        assert found is not None
        assert found.denominator is not None
        case = found.case
        assert case.bonus.shape == (2, 2)
        assert case.bonus.min() >= 0
        assert case.bonus.max() > 0
        np.testing.assert_allclose(case.mdp.transition.sum(-1), 1)
        for table in (case.mdp.transition, case.mdp.reward, case.bonus, case.estimate):
            scaled = table * found.denominator
            np.testing.assert_allclose(scaled, np.round(scaled), atol=1e-9)
        sides = statement.sides(theory.terms(case))
        assert sides.violated[found.start]
        assert (found.left, found.right) == (sides.left[found.start], sides.right[found.start])
        assert sides.slack.min() == found.left - found.right


def test_a_tie_is_not_a_clear_choice() -> None:
    batch = [theory.second_counterexample(), theory.tight_example()]
    clear = [theorem_cases.clear_choice(Case(c.mdp, c.bonus, c.estimate)) for c in batch]
    assert clear == [True, False]


def test_smallest_wants_a_bonus_and_no_tie() -> None:
    """Three cases of one state fail; the two with smaller numbers convince nobody."""
    plain = theory.first_counterexample()
    tables = {  # reward, bonus, Q
        "no bonus": ([[0.0, 1.0]], [[0.0, 0.0]], [[1.0, 0.0]]),
        "a tie for μ": ([[0.0, 1.0]], [[1.0, 0.0]], [[0.0, 1.0]]),
        "good": (plain.mdp.reward, plain.bonus, plain.estimate),
    }
    reward, bonus, estimate = (np.stack(x) for x in zip(*tables.values(), strict=True))
    mdp = theory.MDP(np.ones((3, 1, 2, 1)), reward, np.full(3, 0.5))
    batch = Case(mdp, bonus, estimate)
    assert theorem_cases.fails(batch, theory.first_printed).all()
    found = theorem_cases.smallest(batch, theory.first_printed)
    assert found is not None
    np.testing.assert_array_equal(found.case.bonus, plain.bonus)
    assert (found.left, found.right, found.denominator) == (0, 1, 1)


def test_no_counterexample_where_the_statement_holds() -> None:
    batch, _, _ = theorem_cases.draw_cases(np.random.default_rng(4), 2, 2, 50)
    assert theorem_cases.smallest(batch, theory.second_corrected) is None


def test_bonuses_are_never_negative_and_spare_the_target_policy() -> None:
    batch, _, kind = theorem_cases.draw_cases(np.random.default_rng(5), 4, 3, 200)
    assert batch.bonus.min() >= 0
    on_target = theory.under(theory.target_policy(batch), batch.bonus)
    assert (on_target[kind == theorem_cases.BONUSES.index("off target")] == 0).all()
    assert (on_target[kind == theorem_cases.BONUSES.index("everywhere")] > 0).all()


@given(st.lists(st.integers(1, 50), min_size=2, max_size=8), st.sampled_from([1, 2, 4, 5, 100]))
def test_rounded_rows_are_distributions_on_the_grid(weights: list[int], denominator: int) -> None:
    row = np.asarray(weights) / sum(weights)
    rounded = theorem_cases.round_rows(row, denominator)
    assert rounded.sum() == pytest.approx(1)
    assert rounded.min() >= 0
    assert np.abs(rounded - row).max() < 1 / denominator
    np.testing.assert_allclose(rounded * denominator, np.round(rounded * denominator))


def test_the_seed_decides_everything() -> None:
    first, again, other = study(56, 7), study(56, 7), study(56, 8)
    key = ("second_printed", "pair")
    np.testing.assert_array_equal(first.slack[key], again.slack[key])
    assert not np.array_equal(first.slack[key], other.slack[key])


def test_run_writes_and_prints(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "new" / "folder"
    theorem.run(280, 0, out)
    printed = capsys.readouterr().out
    assert "280 random MDPs" in printed
    assert printed.count("smallest counter-example found") == 2
    assert (out / "theorem.png").read_bytes().startswith(b"\x89PNG")
    with (out / "theorem.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    result = study(280, 0)
    assert len(rows) == 280
    written = [float(row["first_printed_pair"]) for row in rows]
    np.testing.assert_allclose(written, result.slack["first_printed", "pair"], rtol=1e-5)
    assert rows[-1]["states"] == "8"
    assert {row["bonus"] for row in rows} == set(theorem_cases.BONUSES)


def test_a_single_mdp_is_enough(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    theorem.run(1, 0, tmp_path)
    assert (tmp_path / "theorem.png").exists()


def test_without_matplotlib_one_sentence_names_the_extra(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"adac\[plot\]"):
        theorem.run(28, 0, tmp_path)
    assert list(tmp_path.iterdir()) == []  # said before anything is computed


@pytest.mark.parametrize(("mdps", "seed", "words"), [(0, 0, "at least 1"), (1, -1, "negative")])
def test_bad_settings_are_user_errors(mdps: int, seed: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        study(mdps, seed)
