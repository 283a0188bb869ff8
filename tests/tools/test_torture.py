"""The short form of `make torture`: some of each attack, and the page that counts them."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from adac.core import bases, critics, explorers, intrinsic
from torture import attacks, crashes, damage, faults, kills, matrix, page, words
from torture.tally import Batch, State, Tally

# A process that dies leaves its files open.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NAME = "ddpg-ou-none-scalar-1"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished run, and what became of it when it was killed."""
    folder = tmp_path_factory.mktemp("torture")
    tally = kills.run_case(NAME, folder, "a", 6)
    State(folder / "kills.json", [Batch("a", {"kills": tally})]).save()
    return folder


def assert_kept(tally: Tally, least: int) -> None:
    assert tally.failures == []
    assert tally.tried >= least, str(tally)


# -- what is attacked ------------------------------------------------------------------------------


def test_every_kind_of_part_is_attacked() -> None:
    def kinds(module: object, kind: type) -> set[type]:
        found = {value for value in vars(module).values() if isinstance(value, type)}
        return {one for one in found if issubclass(one, kind) and not one.__abstractmethods__}  # type: ignore[attr-defined]

    assert {type(one) for one in matrix.BASES.values()} == kinds(bases, bases.Base)
    assert {type(one) for one in matrix.EXPLORERS.values()} == kinds(explorers, explorers.Explorer)
    assert {type(one) for one in matrix.INTRINSIC.values() if one} == kinds(
        intrinsic, intrinsic.Intrinsic
    )
    assert {type(one) for one in matrix.CRITICS.values()} >= kinds(critics, critics.Critic)


def test_the_design_has_every_pair_in_few_agents() -> None:
    wanted = set().union(*(matrix.pairs(case.kinds) for case in matrix.cases()))
    found = set().union(*(matrix.pairs(case.kinds) for case in matrix.design()))
    assert found == wanted
    assert len(matrix.design()) < len(matrix.cases()) / 20
    first = [set(kind) for kind in zip(*(c.kinds for c in matrix.first()), strict=True)]
    assert [len(kind) for kind in first] == [len(factor) for factor in matrix.FACTORS]


# -- runs that end ---------------------------------------------------------------------------------


def test_a_killed_run_ends_as_an_untouched_one(place: Path) -> None:
    tally = State.open(place / "kills.json", "a").now.tally("kills")
    assert_kept(tally, 6)
    assert tally.results["runs finished, equal to the byte"] >= 1


@pytest.mark.parametrize("name", ["metrics.csv", "best/policy.safetensors", "checkpoint"])
def test_a_run_that_ended_otherwise_would_be_counted(
    place: Path, tmp_path: Path, name: str
) -> None:
    other = Path(shutil.copytree(place / "whole", tmp_path / "other"))
    if name == "checkpoint":
        sorted((other / name).glob("step-*.json"))[-1].unlink()
    else:
        data = bytearray((other / name).read_bytes())
        data[-20] ^= 1
        (other / name).write_bytes(data)
    assert kills.differences(place / "whole", place / "whole") == []
    assert kills.differences(place / "whole", other) == [name]


def test_after_a_death_nothing_is_written(tmp_path: Path) -> None:
    from adac.runs.files import write_whole

    with faults.dying_at(2), pytest.raises(faults.DeathError):
        write_whole(tmp_path / "file", b"abcdef")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"abc"]
    with faults.dying_at(0) as counter:
        write_whole(tmp_path / "file", b"abcdef")
    assert counter.calls == 4  # open, write, fsync, replace
    assert (tmp_path / "file").read_bytes() == b"abcdef"


def test_death_at_each_call_of_a_save_leaves_the_old_or_the_new_state(place: Path) -> None:
    tally = crashes.run_case(NAME, place)
    assert_kept(tally, 10)
    assert min(tally.outcomes["old state"], tally.outcomes["new state"]) > 2
    assert tally.outcomes["neither"] == 0


# -- files that are damaged ------------------------------------------------------------------------


def test_damage_is_detected_or_harmless(place: Path) -> None:
    tally = damage.run_case(NAME, place, "b", 60)
    assert_kept(tally, 60)
    assert tally.outcomes["refused in a sentence"] > 5
    assert tally.outcomes["said, and the good part used"] > 5


def test_what_is_not_detected_would_be_counted(place: Path, tmp_path: Path) -> None:
    older = damage.without_newest(place / "whole", tmp_path / "older")
    judge = damage.Judge(place / "whole", older)
    copy = Path(shutil.copytree(place / "whole", tmp_path / "copy"))
    damage.digit(copy, random.Random(0), copy)
    assert judge.outcome(copy) == "said, and the good part used"
    judge.states = []
    tally = Tally()
    damage.tried("another run", judge.outcome, older, tally)
    assert tally.failures == ["another run: AssertionError: loaded as something else"]
    damage.tried("nothing there", judge.outcome, tmp_path, tally)
    assert tally.outcomes == {"broken": 1, "refused in a sentence": 1}


def test_nonsense_is_one_sentence() -> None:
    assert_kept(words.run("1", 100), 100)


# -- counting --------------------------------------------------------------------------------------


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(state: State) -> None:
        state.now.tally("words").note("refused", 400)

    monkeypatch.setitem(attacks.ATTACKS, "words", one)
    monkeypatch.setattr(attacks, "TARGETS", {"words": 1_000})
    state = tmp_path / "state.json"
    attacks.go(State.open(state, "a"), 0.0, tmp_path / "page.md", ["words"])
    assert not state.exists()
    for expected in (1_200, 1_200):  # the second has nothing to do
        attacks.go(State.open(state, "a"), 1.0, tmp_path / "page.md", ["words"])
        assert State.open(state, "a").total("words").tried == expected


def test_counts_of_several_states_of_the_program_add_up(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for program in ("a", "b", "a"):
        state = State.open(path, program)
        state.now.tally("words").note("refused", 2)
        state.now.cases["agent"] += 1
        state.save()
    state = State.open(path, "b")
    assert [(batch.program, batch.tally("words").tried) for batch in state.batches] == [
        ("a", 4),
        ("b", 2),
    ]
    assert state.total("words").tried == 6
    assert state.cases == {"agent": 3}


def test_the_page_counts(tmp_path: Path) -> None:
    done = Counter(case.name for case in matrix.design()[:2])
    state = State(tmp_path / "state.json", [Batch("old"), Batch("new", cases=done, seconds=60.0)])
    state.now.tally("damage").note("harmless", 3)
    state.now.tally("damage").fail("/home/of/ours/a flip\nwent unseen")
    page.write(tmp_path / "page.md", state, {"damage": 4, "words": 5})
    text = (tmp_path / "page.md").read_text()
    assert "| Damaged and forged files | 3 | 4 | 1 |" in text
    assert "- `a flip went unseen`" in text
    assert "Targets not reached: damaged and forged files (3 of 4); generated commands" in text
    assert "2 agents, with 2 of 3 bases, 2 of 17 explorers" in text
    assert "| `new` | 0 | 0 | 3 | 0 | 0 |" in text
    assert "`old`" not in text  # nothing was counted of it
    state.mend()
    state.save()
    page.write(tmp_path / "page.md", State.open(state.path, "new"), {"damage": 3})
    text = (tmp_path / "page.md").read_text()
    assert "| Damaged and forged files | 3 | 3 | 0 |" in text
    assert "mended since:\n\n- `a flip went unseen`" in text
    assert "Every target is reached." in text
