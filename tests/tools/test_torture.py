"""The short form of `make torture`: some of each attack, and the page that counts them."""

import random
from pathlib import Path

import pytest

from torture import crashes, damage, kills, words
from torture.matrix import Case, cases
from torture.page import write_page
from torture.tally import Tally

CASES = {case.name: case for case in cases()}


def assert_kept(tally: Tally, least: int) -> None:
    assert tally.failures == []
    assert tally.tried >= least, str(tally)


def test_the_matrix_has_every_kind_of_part() -> None:
    parts = [set(kind) for kind in zip(*(name.split("-") for name in CASES), strict=True)]
    assert [len(kind) for kind in parts] == [3, 6, 3, 3, 2]


def test_death_at_each_call_of_a_save_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    tally = Tally("crashes")
    crashes.run_case(CASES["td3-analogous-rnd-scalar-3"], tmp_path, tally)
    assert_kept(tally, 10)
    assert min(tally.outcomes["old state"], tally.outcomes["new state"]) > 2


@pytest.fixture(name="case")
def tiny_case() -> Case:
    return CASES["ddpg-ou-none-scalar-1"]


def test_damage_is_detected_or_harmless(case: Case, tmp_path: Path) -> None:
    tally = Tally("damage")
    damage.run_case(case, tmp_path, tally, random.Random(0), 60)
    assert_kept(tally, 60)


def test_a_wrong_load_would_be_counted(case: Case, tmp_path: Path) -> None:
    tally = Tally("damage")
    damage.judge(tmp_path, "nothing there", [], {}, tally)
    assert tally.outcomes == {"refused in a sentence": 1}
    damage.run_case(case, tmp_path, tally, random.Random(0), 0)
    damage.judge(tmp_path / "good", "another run", [], {}, tally)
    assert tally.failures == ["another run: loaded as something else"]


def test_nonsense_is_one_sentence(tmp_path: Path) -> None:
    tally = Tally("words")
    words.run(tmp_path, tally, random.Random(1), 150)
    assert_kept(tally, 150)


@pytest.mark.slow
def test_a_killed_run_ends_as_an_untouched_one(case: Case, tmp_path: Path) -> None:
    tally = Tally("kills")
    kills.run_case(case, tmp_path, tally, random.Random(0), 2)
    assert_kept(tally, 2)
    assert tally.outcomes["runs finished, equal to the byte"] >= 1


def test_the_page_counts(tmp_path: Path) -> None:
    tally = Tally("damage")
    tally.note("harmless", 3)
    tally.fail("a flip\nwent unseen")
    write_page(tmp_path / "page.md", {"damage": tally}, {"damage": 1}, 324, 5.0)
    text = (tmp_path / "page.md").read_text()
    assert "| Damaged files | 4 | 1 of 324 | 1 |" in text
    assert "- a flip went unseen" in text
