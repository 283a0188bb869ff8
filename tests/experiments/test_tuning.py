"""`adac tune` with the real Optuna: what is tried, what is pruned, what is left after a kill."""

import csv
import dataclasses
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from adac.cli.main import main
from adac.cli.tuning import _show
from adac.core import presets, settings
from adac.core.fields import Choice, Span
from adac.errors import RunError, UserError
from adac.experiments.sweeps.live_table import Row
from adac.experiments.sweeps.workers import Progress
from adac.experiments.tuning import outcome
from adac.experiments.tuning.space import distributions, space
from adac.experiments.tuning.study import EVALUATIONS, FIRST_RUNG, JOURNAL, Plan, open_study
from adac.experiments.tuning.tune import Options, Tuner, tune
from adac.runs.folder import read_config
from adac.runs.preset import Preset, read_preset, write_preset

optuna = pytest.importorskip("optuna")
TINY = {"net_arch": "8", "batch_size": "8", "warmup": "10"}
PLAN = Plan("Pendulum-v1", "td3", 200, fixed=TINY, only=("actor_lr", "noise"))


@pytest.mark.parametrize("name", presets.AGENTS)
def test_every_agent_can_be_tuned_from_where_it_is(name: str) -> None:
    agent = presets.make(name)
    found = space(agent, (), ())
    assert {"actor_lr", "critic_lr", "tau", "batch_size"} <= found.keys()
    for one, distribution in zip(found.values(), distributions(found).values(), strict=True):
        assert distribution._contains(distribution.to_internal_repr(one.value)), one.name
    same = settings.override(agent, {one.name: one.value for one in found.values()})
    assert same == agent


def test_every_value_of_a_range_is_one_that_its_setting_takes() -> None:
    for name in presets.AGENTS:
        agent = presets.make(name)
        for one in space(agent, (), ()).values():
            given = one.range
            ends = given.options if isinstance(given, Choice) else (given.low, given.high)
            for value in ends:
                settings.override(agent, {one.name: value})
            assert isinstance(given, Choice) or given.low < given.high


def test_a_range_reaches_as_far_as_the_agent_s_own_value() -> None:
    agent = settings.override(presets.make("td3"), {"noise": 2.0, "batch_size": 100, "tau": 0.0})
    found = space(agent, (), ())
    assert found["noise"].range == Span(0.03, 2.0, log=True)
    assert found["batch_size"].range == Choice((100, 64, 128, 256, 512))
    assert "tau" not in found  # it is switched off, and 0 has no magnitude


def test_what_is_fixed_is_not_tuned_under_any_name() -> None:
    found = dataclasses.replace(PLAN, fixed={"lr": "1e-3", "gamma": "0.9"}, only=()).space()
    assert not {"actor_lr", "critic_lr", "discount"} & found.keys()
    assert "tau" in found
    with pytest.raises(UserError, match="'replay_size' cannot be tuned: choose among actor_hidden"):
        dataclasses.replace(PLAN, only=("replay_size",)).space()


# -- the study ------------------------------------------------------------------------------------


def tuner(folder: Path, trials: int = 9, plan: Plan = PLAN) -> Tuner:
    folder.mkdir(exist_ok=True)
    return Tuner(open_study(folder, plan), plan, Options(folder, trials))


def play(tuner: Tuner, level: float) -> str:
    """A trial whose every evaluation returns `level`, as Ray's driver would hear of it."""
    trial = tuner.next()
    assert trial is not None
    folder, row = tuner.options.folder / trial.id, Row(trial)
    folder.mkdir()
    lines = ["step,mean_return"]
    for number in range(1, EVALUATIONS + 1):
        step = number * tuner.plan.eval_every
        lines.append(f"{step},{level}")
        if not tuner.heard(trial, Progress(step + 3, level, step)):
            row.status = "pruned"
            break
    else:
        (folder / "evaluations.csv").write_text("\n".join(lines) + "\n")
        row.status = "done"
    tuner.ended(row)
    return row.status


def test_the_poor_are_pruned_and_the_agent_s_own_settings_come_first(tmp_path: Path) -> None:
    playing = tuner(tmp_path)
    assert play(playing, 5.0) == "done"
    first = playing.study.trials[0]
    assert first.params == {"actor_lr": 3e-4, "noise": 0.1}
    assert [play(playing, level) for level in (1.0, 2.0, 9.0, 4.0)] == [
        "pruned", "pruned", "done", "pruned",
    ]  # fmt: skip
    pruned = playing.study.trials[1]
    assert max(pruned.intermediate_values) == FIRST_RUNG
    assert playing.study.best_trial.number == 3
    assert playing.study.best_value == 9.0
    assert len({json.dumps(one.params) for one in playing.study.trials}) == 5


def test_a_tuning_goes_on_after_a_kill(tmp_path: Path) -> None:
    """With what it knew, with the trial that was running, and with draws that are new."""
    before = tuner(tmp_path)
    play(before, 5.0)
    running = before.next()
    assert running is not None
    assert before.heard(running, Progress(10, 3.0, 10))
    with open(tmp_path / JOURNAL, "ab") as journal:
        journal.write(b'{"op_code": 6, "torn')  # a kill inside of a write
    after = tuner(tmp_path)
    (left,) = after.unfinished()
    assert left == running
    assert after.heard(left, Progress(11, 3.0, 10))  # told again, by a worker that goes on
    assert after.study.trials[1].intermediate_values == {1: 3.0}
    third = after.next()
    assert third is not None
    assert third not in (left, running)
    again = tuner(tmp_path)
    assert [trial.id for trial in again.unfinished()] == [left.id, third.id]
    assert tuner(tmp_path, trials=3).next() is None


def test_a_trial_that_ended_before_it_was_told_is_not_run_again(tmp_path: Path) -> None:
    before = tuner(tmp_path)
    trial = before.next()
    assert trial is not None
    folder = tmp_path / trial.id
    folder.mkdir()
    (folder / "evaluations.csv").write_text("step,mean_return\n100,1\n190,3\n200,5\n")
    (folder / "done.json").write_text("{}")
    after = tuner(tmp_path)
    assert after.unfinished() == []
    assert after.study.best_value == 4.0  # of the last tenth


def test_another_plan_is_refused(tmp_path: Path) -> None:
    tuner(tmp_path)
    other = dataclasses.replace(PLAN, steps=400)
    with pytest.raises(UserError, match=r"holds a tuning with steps = 200, not 400"):
        tuner(tmp_path, plan=other)
    (tmp_path / JOURNAL).write_text("what?\n")
    with pytest.raises(UserError, match="is damaged"):
        tuner(tmp_path)


def test_a_journal_of_anything_is_one_sentence(tmp_path: Path) -> None:
    """It is JSON, and nothing in it runs; but Optuna trips over what it did not write."""
    open_study(tmp_path, PLAN)
    path = tmp_path / JOURNAL
    first, *lines = path.read_text().splitlines(keepends=True)
    for line in ('{"op_code": 99}\n', '{"op_code": 4}\n', "5\n", "{}\n", "\xff\n"):
        path.write_text("".join([first, line, *lines]))
        with pytest.raises(UserError, match="is damaged"):
            open_study(tmp_path, PLAN)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match="not a regular file"):
        open_study(tmp_path, PLAN)
    path.unlink()
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(UserError, match="it has more than"):
        open_study(tmp_path, PLAN)


def test_what_is_found_is_written_down(tmp_path: Path) -> None:
    playing = tuner(tmp_path, 40)
    for _ in range(12):  # the return is the better the larger actor_lr, whatever the noise
        asked = playing.next()
        assert asked is not None
        rate = playing.study.trials[playing.numbers[asked.id]].params["actor_lr"]
        folder = tmp_path / asked.id
        folder.mkdir()
        (folder / "evaluations.csv").write_text(f"step,mean_return\n200,{1e4 * rate}\n")
        playing.ended(Row(asked, "done"))
    found = outcome.gather(playing.study, PLAN, tmp_path)
    assert found.best is not None
    assert found.own is not None
    rates = [row.settings["actor_lr"] for row in found.rows]
    assert rates == sorted(rates, reverse=True)
    assert found.importances["actor_lr"] > found.importances["noise"]
    assert {path.name for path in found.files} == {"trials.csv", "importances.png", "best.toml"}
    with open(tmp_path / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["actor_lr"]) == max(rates)
    preset = read_preset(tmp_path / "best.toml")
    assert preset == Preset("td3", {**TINY, **found.best.settings})


# -- presets --------------------------------------------------------------------------------------


def test_a_preset_survives_its_file(tmp_path: Path) -> None:
    values = {"actor_lr": 1e-05, "batch_size": 64, "actor_hidden": "64,64", "log_det": True}
    preset = Preset("adac-td3", values)
    write_preset(tmp_path / "p.toml", preset, ["said by", "whom"])
    assert read_preset(tmp_path / "p.toml") == preset
    assert tomllib.loads((tmp_path / "p.toml").read_text())["agent"] == "adac-td3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agent = ", "is not TOML"),
        ("[settings]\ntau = 1", 'must have agent = "NAME"'),
        ('agent = "td3"\nenv = "x"', "not 'env'"),
        ('agent = "td3"\n[settings.tau]\nx = 1', "tau in the preset"),
    ],
)
def test_a_preset_that_is_none_is_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(UserError, match=words):
        read_preset(tmp_path / "p.toml")


# -- all of it ------------------------------------------------------------------------------------


def command(*words: Any) -> int:
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    return int(done.value.code or 0)


def test_a_task_that_does_not_exist_is_said_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["tune", "Nonsense-v0", "--agent", "td3", "--trials", "1"])
    assert "no task is registered as 'Nonsense-v0'" in " ".join(capsys.readouterr().err.split())


def test_the_command_lists_what_it_would_tune(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("tune", "Pendulum-v1", "--agent", "sac", "--set", "lr=1e-3", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "tau: 0.001 to 0.05, by magnitude  (now 0.005)  Polyak step" in out
    assert "actor_lr" not in out
    assert command("tune", "Pendulum-v1", "--trials", "0") == 2


@pytest.mark.slow
def test_a_tuning_on_ray_is_continued_and_its_preset_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    def command(*words: object) -> int:
        """In a process of its own: Ray reads once in a process who may talk to it."""
        said = subprocess.run([sys.executable, "-m", "adac", *map(str, words)], text=True,
                              capture_output=True, check=False)  # fmt: skip
        print(said.stdout, said.stderr)
        return said.returncode

    task = "InvertedPendulum-v5"  # short episodes
    words = ["tune", task, "--agent", "td3", "--steps", 40, "--eval-episodes", 1,
             "--jobs", 2, "--out", out, "--only", "noise", "--set", "net_arch=8", "batch_size=8",
             "warmup=10"]  # fmt: skip
    assert command(*words, "--trials", 2) == 0
    done = {path: path.stat().st_mtime_ns for path in out.glob("*/done.json")}
    assert len(done) >= 1
    assert command(*words, "--trials", 3) == 0
    assert {path: path.stat().st_mtime_ns for path in done} == done
    states = [one.state.name for one in open_study(out, plan_of(out)).trials]
    assert len(states) == 3
    assert set(states) <= {"COMPLETE", "PRUNED"}
    assert "(as it was)" in capsys.readouterr().out
    run = tmp_path / "run"
    options = ["--steps", 20, "--eval-every", 0, "--out", run, "--set", "batch_size=4"]
    assert command("train", task, "--preset", out / "best.toml", *options) == 0
    agent = settings.from_json(read_config(run)["agent"])
    best = read_preset(out / "best.toml")
    assert settings.names(agent)["noise"] == best.settings["noise"]
    assert agent.batch_size == 4
    assert agent.networks.actor_hidden == (8,)


def plan_of(folder: Path) -> Plan:
    """As the command has stored it."""
    first = json.loads((folder / JOURNAL).read_text().splitlines()[1])
    facts = first["user_attr"]["plan"]
    return Plan(**facts | {"only": tuple(facts["only"])})


def test_where_everything_fails_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adac.experiments.sweeps.sweep.run", lambda *_: None)
    with pytest.raises(RunError, match="no trial has finished"):
        tune(PLAN, Options(tmp_path / "out", 1))


def test_no_number_is_cut_where_the_terminal_is_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a_long_setting_{n}" for n in range(8)]
    row = outcome.Row(0, "complete", -1454.31, 0, dict.fromkeys(names, 0.000345))
    _show(outcome.Outcome([row], row, row, {}, []))
    said = capsys.readouterr().out
    assert "0 (as it was)" in said
    assert "-1,454.3" in said
    assert "…" not in said
