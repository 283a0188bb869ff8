"""Work that must not be lost: folders kept apart, interruptions saved, owed evaluations made."""

import csv
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv

from adac.cli.main import main
from adac.errors import RunError, UserError
from adac.runs.checkpoint import Store
from adac.training import evaluation
from adac.training.learner import Learner
from adac.training.train import train
from hostile import held_elsewhere

SMALL: dict[str, Any] = {
    "actor_hidden": [8], "critic_hidden": [8], "warmup": 20, "learn_after": 20, "batch_size": 8,
}  # fmt: skip


class Kill(BaseException):
    pass


def small(seed: int = 0, env: Any = "Pendulum-v1", **options: Any) -> Learner:
    return Learner(env, "td3", seed=seed, overrides=SMALL, **options)


def steps_of(folder: Path, table: str = "evaluations") -> list[int]:
    with open(folder / f"{table}.csv", newline="") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def adac(*words: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


# -- whose folder ---------------------------------------------------------------------------------


def test_save_refuses_the_folder_of_another_run(tmp_path: Path) -> None:
    mine = small().learn(40, out=tmp_path, log_every=10)
    mine.save(tmp_path)
    other = small(seed=7)
    with pytest.raises(UserError, match=r"already holds a run of 40 steps.*overwrite=True"):
        other.save(tmp_path)
    assert Learner.load(tmp_path).step == 40
    other.save(tmp_path, overwrite=True)
    loaded = Learner.load(tmp_path)
    assert (loaded.step, loaded.seed) == (0, 7)
    assert not (tmp_path / "metrics.csv").exists()
    assert len(list((tmp_path / "checkpoint").glob("step-*.json"))) == 1  # nothing to fall back on


def test_a_save_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    learner = small().learn(30)
    learner.save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.name != ".lock"
              and path.is_file()}  # fmt: skip
    broken = small(seed=9).learn(30)
    broken.loop.running.arrays[0] = broken.loop.running.arrays[0] * np.nan
    with pytest.raises(RunError, match="not finite"):
        broken.save(tmp_path, overwrite=True)
    assert {path: path.read_bytes() for path in before} == before
    assert Learner.load(tmp_path).seed == 0


def change_a_digit(path: Path) -> None:
    """Of the last row's last number; columns after it may be empty."""
    text = path.read_text().rstrip()
    at = max(place for place, letter in enumerate(text) if letter.isdigit())
    path.write_text(text[:at] + str((int(text[at]) + 5) % 10) + text[at + 1 :] + "\n")


@pytest.mark.parametrize("table", ["metrics.csv", "evaluations.csv"])
def test_a_changed_digit_of_a_table_is_said_and_stops_nothing(
    tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan: dict[str, Any] = {"log_every": 10, "eval_every": 20, "eval_episodes": 1}
    small().learn(40, out=tmp_path, **plan)
    change_a_digit(tmp_path / table)
    assert adac("resume", tmp_path, "--steps", "60") == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(said) == 1
    assert f"{table} was damaged: its" in said[0]
    assert "that were written" in said[0]
    Learner.load(tmp_path).learn(20, out=tmp_path, **plan)  # vouched for as it is, from then on


def test_a_folder_is_vouched_for_by_its_own_checkpoints_only(tmp_path: Path) -> None:
    plan: dict[str, Any] = {"log_every": 10}
    mine = small().learn(20, out=tmp_path / "run", **plan)
    mine.save(tmp_path / "copy")
    Learner.load(tmp_path / "copy").learn(20, out=tmp_path / "copy", **plan)
    Learner.load(tmp_path / "run").learn(20, out=tmp_path / "elsewhere", **plan)
    small(seed=3).save(tmp_path / "run", overwrite=True)
    Learner.load(tmp_path / "run").learn(20, out=tmp_path / "run", **plan)


def test_an_optimiser_that_has_overflowed_is_said_without_a_folder() -> None:
    learner = small().learn(40)
    learner.loop.running.state = jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf + jnp.inf if ".nu" in jax.tree_util.keystr(path) else leaf,
        learner.state,
    )
    with pytest.raises(RunError, match="not finite"):
        learner.learn(20, log_every=10)


def test_a_step_past_the_plan_does_not_change_the_plan(tmp_path: Path) -> None:
    """Three environments end at 42 of 40; a kill then cost the last evaluation."""
    learner = small(num_envs=3).learn(40, out=tmp_path, eval_every=25, eval_episodes=1)
    assert learner.step == 42
    config = (tmp_path / "config.json").read_text()
    learner.evaluated = 27
    learner.save(tmp_path)
    assert adac("resume", tmp_path) == 0
    assert (tmp_path / "config.json").read_text() == config
    assert steps_of(tmp_path) == [27, 42]
    assert train(learner, 40, out=tmp_path / "copy")  # as a trial of a sweep does
    with pytest.raises(UserError, match="at step 42 already, past 39"):
        train(learner, 39)


def test_a_copy_of_the_best_does_not_detach_the_run(tmp_path: Path) -> None:
    run, best = tmp_path / "run", tmp_path / "best"

    def keep(learner: Learner) -> None:
        if learner.step in (10, 20):
            learner.save(best)

    learner = small().learn(40, out=run, callback=keep)
    assert learner.learn(20, out=run).step == 60
    assert Learner.load(best).step == 20
    assert Learner.load(run).step == 60


def test_saving_keeps_the_plan_of_the_run(tmp_path: Path) -> None:
    learner = small().learn(30, out=tmp_path, eval_every=0, horizon=500)
    learner.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["steps"], config["horizon"]) == (30, 500)


@pytest.mark.parametrize("how", ["removed", "renamed", "elsewhere"])
def test_a_folder_saved_to_again_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    learner = small().learn(30)
    learner.save("x")
    if how == "removed":
        shutil.rmtree("x")
    elif how == "renamed":
        os.rename("x", "best")
    else:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
    learner.save("x")
    assert len(Learner.load("x").replay) == 30


def test_one_folder_by_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small().learn(30, out="run")
    assert Learner.load("run").learn(10, out=tmp_path / "run").step == 40


def test_two_learners_of_one_folder_do_not_replace_each_other(tmp_path: Path) -> None:
    small().learn(30, out=tmp_path)
    one, other = Learner.load(tmp_path), Learner.load(tmp_path)
    one.learn(10, out=tmp_path)
    with pytest.raises(UserError, match="trained on by somebody else, to step 40"):
        other.learn(20, out=tmp_path)
    assert Learner.load(tmp_path).step == 40


def test_python_takes_the_lock_too(tmp_path: Path) -> None:
    learner = small().learn(30, out=tmp_path)
    with held_elsewhere(tmp_path):
        for write in (lambda: learner.learn(5, out=tmp_path), lambda: learner.save(tmp_path)):
            with pytest.raises(RunError, match="another process"):
                write()
    learner.save(tmp_path)


@pytest.mark.parametrize("lose", [shutil.rmtree, lambda run: shutil.rmtree(run / "checkpoint")])
def test_a_folder_removed_under_a_run_ends_in_one_that_can_be_resumed(
    tmp_path: Path, lose: Callable[[Path], Any]
) -> None:
    run = tmp_path / "run"

    def callback(learner: Learner) -> None:
        if learner.step == 25:
            lose(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        small().learn(40, out=run, checkpoint_every=10, log_every=10, callback=callback)
    assert len(Learner.load(run).replay) == 40
    assert adac("resume", run, "--steps", "50") == 0


# -- interruptions --------------------------------------------------------------------------------


def test_ctrl_c_in_python_saves_the_step_and_is_raised(tmp_path: Path) -> None:
    def press(learner: Learner) -> None:
        if learner.step == 33:
            os.kill(os.getpid(), signal.SIGINT)

    learner = small()
    with pytest.raises(KeyboardInterrupt):
        learner.learn(100, out=tmp_path, callback=press)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert 33 <= Learner.load(tmp_path).step <= 34
    assert Learner.load(tmp_path).step == learner.step
    with pytest.raises(KeyboardInterrupt):  # without a folder there is nothing to save
        small().learn(100, callback=press)


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_an_exception_of_a_callback_leaves_a_checkpoint(tmp_path: Path, error: type) -> None:
    def fail(learner: Learner) -> None:
        if learner.step == 33:
            raise error

    whole = small().learn(60)
    with pytest.raises(error):
        small().learn(60, out=tmp_path, callback=fail)
    resumed = Learner.load(tmp_path)
    assert resumed.step == 33
    resumed.learn(27)
    np.testing.assert_array_equal(resumed.replay.rows[:60], whole.replay.rows[:60])


def test_python_saves_as_often_as_the_shell(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("adac.training.learner.CHECKPOINT_EVERY", 20)

    def kill(learner: Learner) -> None:
        if learner.step == 50:
            raise Kill

    with pytest.raises(Kill):
        small().learn(60, out=tmp_path, callback=kill)
    assert Learner.load(tmp_path).step == 40


# -- evaluations ----------------------------------------------------------------------------------

PLAN: dict[str, Any] = {"eval_every": 50, "eval_episodes": 1, "checkpoint_every": 60}


def evaluations(folder: Path) -> list[dict[str, str]]:
    with open(folder / "evaluations.csv", newline="") as file:
        return [{k: v for k, v in r.items() if k != "wall_seconds"} for r in csv.DictReader(file)]


def test_an_evaluation_that_a_kill_cost_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the last evaluation, with a checkpoint of the last step from the loop before."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    small().learn(120, out=whole, **PLAN)
    assert steps_of(whole) == [50, 100, 120]

    def kill(learner: Learner, *_: Any, **__: Any) -> Any:
        if learner.step == 120:
            learner.save(killed)
            raise Kill
        return real(learner, *_, **__)

    real = Learner.evaluate
    monkeypatch.setattr(Learner, "evaluate", kill)
    with pytest.raises(Kill):
        small().learn(120, out=killed, **PLAN)
    monkeypatch.undo()
    assert Learner.load(killed).step == 120
    assert adac("resume", killed) == 0
    assert evaluations(killed) == evaluations(whole)
    assert adac("resume", killed) == 0  # "already", and no second row
    assert evaluations(killed) == evaluations(whole)


def test_a_stop_inside_an_evaluation_is_heard_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    small().learn(120, out=whole, **PLAN)
    real, asked = evaluation.answers.step, []

    def step(env: Any, action: Any, size: int) -> Any:
        asked.append(1)
        if len(asked) == 100 + 60:  # training asks through it too
            os.kill(os.getpid(), signal.SIGINT)
        return real(env, action, size)

    monkeypatch.setattr(evaluation.answers, "step", step)
    with pytest.raises(KeyboardInterrupt):
        small().learn(120, out=stopped, **PLAN)
    monkeypatch.undo()
    assert Learner.load(stopped).step == 50
    assert steps_of(stopped) == []
    assert adac("resume", stopped) == 0
    assert evaluations(stopped) == evaluations(whole)


def test_what_can_not_be_evaluated_is_said_at_once(tmp_path: Path) -> None:
    env = gymnasium.wrappers.TimeLimit(PendulumEnv(), 20)
    with pytest.raises(UserError, match="pass eval_env"):
        small(env=env).learn(60, eval_every=50, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# -- a buffer that is left behind -----------------------------------------------------------------


def test_a_run_without_its_buffer_fills_one_before_it_learns(tmp_path: Path) -> None:
    small().learn(60).save(tmp_path / "a")
    learner = Learner.load(tmp_path / "a", with_replay=False)
    before = learner.updates
    learner.learn(SMALL["learn_after"])
    assert learner.updates == before
    learner.learn(30)
    assert learner.updates == before + 30 - 1  # one a step from then on, and none made up for
    learner.save(tmp_path / "b")
    again = Learner.load(tmp_path / "b")
    again.learn(5)
    learner.learn(5)
    assert again.updates == learner.updates


def test_another_environment_is_named_before_the_task_is_blamed(tmp_path: Path) -> None:
    small().learn(10).save(tmp_path)
    with pytest.warns(UserWarning, match="this is not the environment that the run was trained in"):
        Learner.load(tmp_path, env=lambda: gymnasium.make("Pendulum-v1", g=3.0))


# -- a folder that is not what it was -------------------------------------------------------------


def test_a_changed_configuration_is_refused_by_its_checkpoint(tmp_path: Path) -> None:
    small().learn(30).save(tmp_path)
    path = tmp_path / "config.json"
    good = path.read_text()
    for old, new in (('"seed": 0', '"seed": 1'), ('"tau": 0.005', '"tau": 0.025')):
        assert old in good
        path.write_text(good.replace(old, new))
        with pytest.raises(UserError, match="damaged or changed"):
            Learner.load(tmp_path)
    path.write_text(good)
    assert Learner.load(tmp_path).step == 30


def forge_facts(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    learner = Learner.load(folder)
    save = Store.save

    def forged(store: Store, step: int, arrays: Any, facts: Any, replay: Any) -> None:
        change(facts)
        save(store, step, arrays, facts, replay)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "save", forged)
        learner.save(folder)


WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "updates": lambda facts: facts.update(updates=None),
    "returns": lambda facts: facts["world"].update(returns=5),
    "episodes": lambda facts: facts["world"].update(episodes=["x"]),
    "steps": lambda facts: facts["world"].update(steps=-5),
    "world": lambda facts: facts.update(world=[]),
    "metrics": lambda facts: facts.update(metrics=[1]),
    "recent": lambda facts: facts.update(recent=[[1]]),
    "collected": lambda facts: facts.update(collected=[0.0, 0.0]),
    "random": lambda facts: facts.update(replay_random={"bit_generator": "MT19937"}),
    "state": lambda facts: facts.update(replay_random={"bit_generator": "PCG64", "state": 5}),
    "evaluated": lambda facts: facts.update(evaluated=[]),
    "wall_seconds": lambda facts: facts.update(wall_seconds="long"),
    "horizon": lambda facts: facts.update(horizon=10**400),
}


@pytest.mark.parametrize("how", WRONG)
def test_facts_that_are_not_adac_s_are_one_sentence(tmp_path: Path, how: str) -> None:
    small().learn(30).save(tmp_path)
    forge_facts(tmp_path, WRONG[how])
    try:
        Learner.load(tmp_path).learn(3)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017 (a huge horizon may be accepted)
    else:
        assert how == "horizon"


def test_env_kwargs_that_name_files_must_be_given_again(tmp_path: Path) -> None:
    Learner("Hopper-v5", "td3", overrides=SMALL).save(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    config["env_kwargs"] = {"xml_file": "/etc/shadow"}
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"xml_file.*pass it yourself"):
        Learner.load(tmp_path)
    with pytest.raises(UserError, match="cannot be made with"):
        Learner.load(tmp_path, env_kwargs={"xml_file": "/nothing/here.xml"})


# -- what does not fit, and what cannot be meant -------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Learner("Pendulum-v1", overrides={"replay_size": 1e12}), "replay_size = 1,000,0"),
        (lambda: Learner("Pendulum-v1", overrides={"batch_size": 1e10}), "batch_size = 10,000,0"),
        (lambda: small(num_envs=10**20), "num_envs must be between 1 and 4,096"),
        (lambda: small().predict({}), "an observation of this task is"),
        (lambda: small().predict(np.full(3, np.nan)), "finite, not nan"),
        (lambda: small().predict(None), "an observation of this task is"),
        (lambda: small().add(np.zeros((2, 3)), np.zeros(2), [0, 0], np.zeros((2, 3)), [0, 0]),
         r"action must be of shape \(2, 1\)"),
        (lambda: small().add(np.zeros((1, 3)), [[np.inf]], [0], np.zeros((1, 3)), [0]), "finite"),
        (lambda: small().add(5, 5, 5, 5, 5), "an observation of this task is"),
        (lambda: small().learn(5, eval_every="100"), "eval_every must be a whole number"),
        (lambda: small().learn(5, log_every=-1), "log_every must be at least 0"),
        (lambda: small().learn(5, horizon="far"), "horizon must be a whole number"),
        (lambda: small().learn(5, stop_return="x", eval_every=5), "stop_return must be a number"),
        (lambda: small().learn(5, callback=[3]), "callback must be a function"),
        (lambda: small().evaluate("3"), "episodes must be a whole number"),
        (lambda: small(eval_env=5), "eval_env must be a task id, a Gymnasium environment"),
        (lambda: small(env_kwargs=5), "env_kwargs must be a dictionary of names"),
        (lambda: small(start_from=5), "start_from must be the path of"),
        (lambda: Learner("Pendulum-v1", overrides=[1]), "overrides must be a dictionary"),
        (lambda: Learner("Pendulum-v1", overrides={5: 1}), "overrides must be a dictionary"),
        (lambda: small().learn(5, out=5), "out must be the path of"),
        (lambda: small().learn(5, info_keywords=5), "info_keywords must be a list"),
        (lambda: small().save(""), "folder must be the path of"),
        (lambda: Learner.load(None), "folder must be the path of"),
        (lambda: Learner.load(""), "folder must be the path of"),
        (lambda: small().add_dataset(b"x"), "data must be the path of"),
        (lambda: small().predict(np.zeros(3), state=5), "state and episode_start must be"),
    ],
)  # fmt: skip
def test_one_sentence(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        call()
