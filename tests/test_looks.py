"""What a person sees: progress, live tables and help at the widths that terminals have."""

import io
import time
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

from adac.core import presets
from adac.core.settings import override
from adac.experiments.sweeps.live_table import Row, Screen, running_table
from adac.experiments.sweeps.trials import Trial
from adac.runs.progress import (
    COMPILING,
    ENDED,
    EVALUATING,
    NOT_LEARNING,
    TRAINING,
    WARMUP,
    Pace,
    _Line,
)
from adac.training.phases import phase
from commands import adac


def printed(width: int, thing: Any) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(thing)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def bar(width: int, pace: Pace, last_return: float | None = -1_645.25) -> str:
    console = Console(file=io.StringIO(), width=width)
    line = _Line(pace, console)
    with Progress(line, console=console, disable=True) as progress:
        progress.add_task("", total=pace.total, last_return=last_return)
        return printed(width, line.render(progress.tasks[0]))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def paced(clock: list[float], name: str = TRAINING) -> Pace:
    """100,000 of 1,000,000 steps, at 200 a second."""
    pace = Pace(98_000, 1_000_000)
    clock[0] += 10.0
    pace.mark(100_000)
    pace.begin(name)
    return pace


@pytest.mark.parametrize("width", [50, 80, 120])
def test_the_bar_is_one_line_with_speed_time_and_whose_return(
    width: int, clock: list[float]
) -> None:
    text = bar(width, paced(clock))
    assert text.count("\n") == 1
    for wanted in ("training", "1:15:00 left", "exploring", "-1,645"):
        assert wanted in text
    assert ("100,000/1,000,000" in text) == (width >= 80)
    assert ("200 steps/s" in text) == (width >= 80)
    assert ("last exploring episode" in text) == (width >= 120)


def test_a_bar_is_worth_more_than_many_words(clock: list[float]) -> None:
    pace = Pace(0, 10_000)
    clock[0] += 10.0
    pace.mark(2_000)
    text = bar(80, pace, -1_590.0)
    assert "━" in text
    assert "200 steps/s" in text
    assert "exploring -1,590" in text


def test_the_last_line_says_how_long_it_took(clock: list[float]) -> None:
    pace = paced(clock)
    clock[0] += 3600.0
    pace.begin(ENDED)
    text = bar(80, pace)
    assert "100,000/1,000,000  in 1:00:10" in text
    assert "left" not in text


@pytest.mark.parametrize("name", [COMPILING, EVALUATING])
def test_where_nothing_moves_time_does(name: str, clock: list[float]) -> None:
    pace = paced(clock, name)
    clock[0] += 7.0
    text = bar(50, pace)
    assert f"{name} " in text
    assert "for 0:07" in text
    assert "left" not in text


@pytest.mark.parametrize("name", [COMPILING, NOT_LEARNING])
def test_fast_random_steps_and_slow_compilation_do_not_promise_a_time(
    name: str, clock: list[float]
) -> None:
    pace = paced(clock, name)
    assert pace.left() == "–"
    clock[0] += 100.0
    pace.begin(TRAINING)
    clock[0] += 10.0
    pace.mark(100_500)
    assert pace.rate == 50.0  # of the steps since, not of those before


def test_evaluations_count_towards_the_time_left(clock: list[float]) -> None:
    pace = paced(clock, EVALUATING)
    clock[0] += 10.0
    pace.begin(TRAINING)
    pace.mark(100_000)
    assert pace.rate == 100.0


def phases(steps: range, begun: int = 0, at_once: int = 1, **changes: Any) -> list[str]:
    agent = override(presets.make("td3"), changes)
    return [phase(agent, step, begun, at_once) for step in steps]


def test_phases_of_a_run() -> None:
    found = phases(range(1_300), warmup=1_000, learn_after=500)
    assert found[0] == COMPILING  # the first random action
    assert set(found[1:500]) == {NOT_LEARNING}
    assert set(found[500:504]) == {COMPILING}  # updates without and with the policy's
    assert set(found[504:1_000]) == {WARMUP}
    assert found[1_000] == COMPILING  # the explorer's first action
    assert set(found[1_001:]) == {TRAINING}


def test_phases_of_a_resumed_run_and_of_one_that_does_not_learn() -> None:
    resumed = phases(range(5_000, 5_100), begun=5_000, warmup=1_000)
    assert set(resumed[:4]) == {COMPILING}
    assert set(resumed[4:]) == {TRAINING}
    still = phases(range(1, 100), warmup=0, learn_after=0, updates_per_step=0.0)
    assert set(still) == {TRAINING}


def rows() -> list[Row]:
    names = [
        ("InvertedDoublePendulum-v5", "adac-td3-rnd"),
        ("adac/CartPoleSwingUpSparse-v0", "td3"),
    ]
    made = [Row(Trial(task, label, label, {}, 3, 1_000_000)) for task, label in names]
    for row in made:
        row.start(0)
        row.progress(123_456, -1_234.5)
    return made


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_table_keeps_names_and_returns(width: int) -> None:
    text = printed(width, running_table(rows(), width))
    for wanted in (
        "InvertedDoublePendulum-v5", "adac-td3-rnd", "CartPoleSwingUpSparse-v0", "task", "agent",
        "seed", "return", "-1,234.5",
    ):  # fmt: skip
        assert wanted in text
    assert ("123,456/1,000,000" if width == 120 else "12%") in text


def test_compilation_does_not_spoil_a_trials_speed(clock: list[float]) -> None:
    row = Row(Trial("Task-v0", "td3", "td3", {}, 0, 10_000))
    row.start(0)
    assert "starting" in printed(80, running_table([row], 80))
    for step, seconds in ((1, 5.0), (3, 60.0), (103, 0.5), (303, 1.0)):
        clock[0] += seconds
        row.progress(step, None)
        assert (row.rate is None) == (step <= 3)
    assert row.rate == 200.0
    row.start(300)  # anew, after a failure
    for step, seconds in ((301, 60.0), (302, 60.0), (402, 0.5)):
        clock[0] += seconds
        row.progress(step, None)
    assert row.rate == 200.0


def test_the_live_table_at_fifty_columns_keeps_returns() -> None:
    text = printed(50, running_table(rows(), 50))
    assert text.count("-1,234.5") == 2
    assert "InvertedD" in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_whole_sweep_is_one_line(width: int) -> None:
    class Fake:
        console = Console(file=io.StringIO(), width=width)

    screen = Screen("sparse", Fake())  # type: ignore[arg-type]
    assert printed(width, screen._whole(rows(), 2, width)).count("\n") == 1


def test_help_begins_with_train_and_has_no_types_behind_flags(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert adac("--help") == 0
    text = capsys.readouterr().out
    commands = text[text.index("Commands") :].splitlines()[1:]
    assert commands[0].split()[1] == "train"
    assert commands[1].split()[1] == "resume"
    for words in (["--help"], ["train", "--help"], ["sweep", "--help"], ["plot", "--help"]):
        adac(*words)
        text = capsys.readouterr().out
        assert "<bool>" not in text
        assert "list[Path]" not in text


def test_the_help_of_train_shows_what_most_runs_need_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    adac("train", "--help")
    text = capsys.readouterr().out
    first, task, data, late = (
        text.index(f"─ {panel} ─")
        for panel in ("Options", "The task", "Begin with weights or data", "While it runs")
    )
    assert first < text.index("--agent") < task < text.index("--num-envs") < data
    assert data < text.index("--offline") < late < text.index("--eval-every")
