"""What cannot end well is refused before anything is computed."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from adac.experiments.paper import svgd_figure, theorem
from commands import fails


def computed(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("it was computed first")


@pytest.mark.parametrize("what", ["svgd", "theorem"])
def test_a_figure_that_cannot_be_drawn_is_not_computed(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(svgd_figure, "train", computed)
    monkeypatch.setattr(theorem, "study", computed)
    said = fails(capsys, "reproduce", what, "--out", tmp_path / "out")
    assert "pip install 'adac[plot]'" in said
    assert not (tmp_path / "out").exists()


def test_a_sweep_of_no_jobs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "one.toml"
    file.write_text('tasks = ["Pendulum-v1"]\nagents = ["td3"]\nseeds = 1\nsteps = 100\n')
    said = fails(capsys, "sweep", file, "--jobs", "0", "--out", tmp_path / "sweeps")
    assert "jobs must be at least 1, not 0" in said
