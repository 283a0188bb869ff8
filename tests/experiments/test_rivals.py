"""What others have published, in the same picture as our curves."""

from pathlib import Path

import numpy as np
import pytest
from folders import write_rows, write_run
from hypothesis import given
from hypothesis import strategies as st

from adac.experiments.analysis import published
from adac.experiments.analysis.drawing import apart, styles
from adac.experiments.analysis.figures import curves, draw
from adac.experiments.analysis.results import read_results
from adac.experiments.analysis.sheet import Look, Sheet
from adac.runs.csv_table import EVALUATION_COLUMNS
from commands import read_rows

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

TASK = "dm_control/pendulum-swingup-v0"


def trial(folder: Path, steps: tuple[int, ...]) -> Path:
    write_run(folder, [], env=TASK, agent="adac-explore", steps=steps[-1])
    rows = [{"step": step, "mean_return": 700.0} for step in steps]
    write_rows(folder / "evaluations.csv", EVALUATION_COLUMNS, rows)
    return folder


def names(folder: Path, look: Look) -> list[str]:
    results = read_results(folder)
    figure = curves(Sheet(results, styles(results.labels), look))
    return [text.get_text() for text in figure.axes[0].texts]


def test_rivals_are_named_as_far_as_our_lines_go(tmp_path: Path) -> None:
    short, half, whole = (
        trial(tmp_path / str(last), (50_000, last)) for last in (99_000, 100_000, 200_000)
    )
    assert names(short, Look()) == []
    assert len(names(half, Look())) == len(published.FIGURES[TASK])
    assert names(whole, Look(published=False)) == []
    assert names(whole, Look(hours=False, smooth=1))[-1] == "BRO (UTD 2)"  # the highest at the end
    steps = [[step for step, _ in points] for points in published.tracks(TASK, 2e5).values()]
    assert all(one == [100_000, 200_000] for one in steps)


def test_two_lines_of_one_name_are_told_apart() -> None:
    found = published.tracks(TASK, 100_000)
    assert len(found) == len(published.FIGURES[TASK])
    assert {"SAC (10 seeds)", "SAC (3 seeds)", "BRO (UTD 2)", "BRO (UTD 10)", "TD7"} < set(found)


def test_the_csv_holds_them_too(tmp_path: Path) -> None:
    trial(tmp_path / "one", (50_000, 100_000))
    draw("curves", [tmp_path / "one"], tmp_path / "figures")
    rows = read_rows(tmp_path / "figures" / "one.csv")
    (row,) = [row for row in rows if row["label"] == "TD7"]
    assert row["panel"] == "published"
    assert [row[name] for name in ("seeds", "x", "mean", "std")] == [
        "5",
        "100000",
        "222.6",
        "198.3",
    ]


def test_a_method_without_a_number_has_no_row(tmp_path: Path) -> None:
    ours = published.beside(read_results(trial(tmp_path / "short", (1000, 2000))))[TASK]
    assert [line.source for line in ours if not line.source] == []


@given(st.lists(st.floats(-1e3, 1e3), max_size=20), st.floats(0.1, 100))
def test_names_keep_their_room(wanted: list[float], room: float) -> None:
    found = apart(sorted(wanted), room)
    assert all(np.diff(found) >= room - 1e-6)
    if len(wanted) == 1 or all(np.diff(sorted(wanted)) >= room):
        np.testing.assert_allclose(found, sorted(wanted), atol=1e-6)
