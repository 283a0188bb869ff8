"""same_bits: what it must notice in two run folders, and what it must let pass."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

from same_bits import Allowed, compare

STATE = {"['agent'].actor": np.array([0.0, 1.0], np.float32)}
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
EVALUATION = {"step": "10", "mean_return": "-5.25", "wall_seconds": "1.5"}
METRICS = {"step": "10", "q": "0.125", "steps_per_second": "200"}


def write(
    folder: Path,
    *,
    state: Mapping[str, NDArray[Any]] = STATE,
    rows: NDArray[Any] = ROWS,
    evaluation: Mapping[str, str] = EVALUATION,
    metrics: Mapping[str, str] = METRICS,
) -> Path:
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir(parents=True)
    safetensors.numpy.save_file(dict(state), checkpoint / "state.safetensors")
    safetensors.numpy.save_file({"rows": rows}, checkpoint / "replay.safetensors")
    body = {"state": ["state.safetensors", 0, 0], "replay": [["replay.safetensors", 0, 0]]}
    (checkpoint / "step-000000000010.json").write_text(json.dumps({"body": body}))
    for name, row in (("evaluations", evaluation), ("metrics", metrics)):
        (folder / f"{name}.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    return folder


NEW = {"['agent'].fresh": np.zeros(1, np.float32)}
WIDER = np.hstack([ROWS, ROWS[:, :1]])


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"state": {"['agent'].actor": np.float32([0, 1 + 1e-7])}}, "arrays"),
        ({"state": {"['agent'].actor": np.array([-0.0, 1.0], np.float32)}}, "arrays"),
        ({"state": NEW}, "arrays"),
        ({"state": STATE | NEW}, "arrays"),
        ({"rows": ROWS[:1]}, "replay"),
        ({"rows": ROWS + np.float32([0, 0, 1])}, "replay"),
        ({"rows": ROWS[:, :2]}, "replay"),
        ({"evaluation": EVALUATION | {"mean_return": "-5.26"}}, "evaluations"),
        ({"metrics": {"step": "10"}}, "metrics"),
        ({"metrics": METRICS | {"q": ""}}, "metrics"),
    ],
)
def test_a_difference_is_noticed_where_it_is(
    change: dict[str, Any], where: str, tmp_path: Path
) -> None:
    found = compare(write(tmp_path / "a"), write(tmp_path / "b", **change), Allowed())
    assert [what for what, lines in found.items() if lines] == [where]


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({}, Allowed()),
        ({"state": STATE | NEW}, Allowed(new_names=True)),
        ({"state": {"['agent'].policy": STATE["['agent'].actor"]}},
         Allowed(renamed=(("actor", "policy"),))),
        ({"rows": WIDER}, Allowed()),
        ({"evaluation": EVALUATION | {"wall_seconds": "9"}}, Allowed()),
        ({"metrics": METRICS | {"steps_per_second": "9", "late": "1"}}, Allowed()),
    ],
)  # fmt: skip
def test_what_may_differ_passes(change: dict[str, Any], allowed: Allowed, tmp_path: Path) -> None:
    found = compare(write(tmp_path / "a"), write(tmp_path / "b", **change), allowed)
    assert not any(found.values())


def test_what_the_older_has_alone_never_passes(tmp_path: Path) -> None:
    older, newer = write(tmp_path / "a", state=STATE | NEW), write(tmp_path / "b")
    assert compare(older, newer, Allowed(new_names=True))["arrays"] == [
        "only before: ['agent'].fresh"
    ]
