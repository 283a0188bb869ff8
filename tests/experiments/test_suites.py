"""The named experiments, and sweeps written down in TOML."""

import copy
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adac.cli.main import app
from adac.core import presets, settings
from adac.errors import UserError
from adac.experiments.analysis import published
from adac.experiments.analysis.figures import KINDS
from adac.experiments.paper import ppo
from adac.experiments.sweeps import suite_files, suites
from adac.experiments.sweeps.suites import SUITES, Suite, narrow, parse_seeds, trials
from adac.experiments.sweeps.trials import Trial, make_trial
from adac.runs.folder import label_of, read_config
from adac.training.train import Schedule


def test_the_experiments_are_the_papers() -> None:
    tasks = {name: len(suite.tasks) for name, suite in suites.PAPER.items()}
    assert tasks == {
        "cartpole": 1, "contamination": 1, "sparse": 4, "benchmark": 14, "ablation": 3,
    }  # fmt: skip
    for suite in suites.PAPER.values():
        labels = {entrant.label for entrant in suite.entrants}
        assert any(label.startswith("paper-adac") for label in labels)  # as published
        assert labels & {"td3", "ddpg", "td3-vime"}  # what it is to be better than


def test_the_suite_that_the_field_can_compare() -> None:
    made = trials(dataclasses.replace(SUITES["exploration"], seeds=(0,)))
    assert {(trial.steps, trial.schedule.eval_every) for trial in made} == {(200_000, 5_000)}
    assert set(published.FIGURES) < {trial.task for trial in made}
    assert "exploration" not in suites.PAPER


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_every_trial_can_be_defined_and_read_back(suite: Suite) -> None:
    known = [e for e in suite.entrants if e.agent in presets.AGENTS]
    made = trials(dataclasses.replace(suite, entrants=tuple(known)))
    assert len({trial.id for trial in made}) == len(made)
    assert len(made) == len(known) * len(suite.tasks) * len(suite.seeds)
    for trial in made:
        assert settings.to_json(settings.from_json(trial.agent)) == trial.agent
        assert trial.steps % trial.schedule.eval_every == 0
        assert 15 <= trial.steps / trial.schedule.eval_every <= 100
    assert [trial.seed for trial in made] == sorted(trial.seed for trial in made)


def test_the_ablation_changes_one_thing_at_a_time_and_none_twice() -> None:
    made = trials(dataclasses.replace(SUITES["ablation"], seeds=(0,)))
    hashes = [trial.id.rpartition("_")[2] for trial in made]
    assert len(set(hashes)) == len(hashes)
    pendulum = {t.label: t.agent["explorer"] for t in made if "Pendulum" in t.task}
    reference = pendulum["reference"]
    assert {k: v for k, v in pendulum["ρ = 0.95"].items() if reference[k] != v} == {
        "latent_correlation": 0.95
    }


def test_few_particles_where_the_paper_says_so() -> None:
    """K = 8 for every ADAC agent on Hopper and Atlas (Appendix E), elsewhere its own."""
    suite = dataclasses.replace(SUITES["benchmark"], seeds=(0,))
    few = ("Hopper-v4", "adac/RoboschoolAtlasForwardWalk-v1")
    assert set(few) <= set(suite.tasks)
    known = tuple(e for e in suite.entrants if e.agent in presets.AGENTS)
    for trial in trials(dataclasses.replace(suite, entrants=known)):
        own = presets.make(trial.agent_name)
        if "adac" in trial.agent_name and trial.task in few:
            own = settings.override(own, {"particles": 8})
        assert trial.agent == settings.to_json(own)


def test_an_entrant_s_own_word_counts_more_than_its_task_s() -> None:
    mine = suites.Entrant("mine", "paper-adac-td3", {"particles": 5})
    suite = dataclasses.replace(SUITES["benchmark"], tasks=("Hopper-v4",), entrants=(mine,))
    assert {trial.agent["explorer"]["particles"] for trial in trials(suite)} == {5}


def test_only_some_of_a_suite() -> None:
    suite = narrow(SUITES["sparse"], ["PendulumSparse-v0"], ["td3", "sac"])
    assert suite.tasks == ("adac/PendulumSparse-v0",)
    assert [e.label for e in suite.entrants] == ["td3", "sac"]
    with pytest.raises(UserError, match="no task 'Hopper-v4'"):
        narrow(suite, ["Hopper-v4"], [])
    with pytest.raises(UserError, match="no agent 'td4'; did you mean td3"):
        narrow(suite, [], ["td4"])


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_what_is_reported_runs_on_seeds_that_no_choice_has_seen(suite: Suite) -> None:
    chosen_on = suite.name == "ablation"
    assert all((seed < 100) == chosen_on for seed in suite.seeds)


def test_seeds() -> None:
    assert parse_seeds("3") == (0, 1, 2)
    assert parse_seeds("4,7-9,4") == (4, 7, 8, 9)
    for bad in ("", "x", "1;2", "0", "5-3", "1000000000000", "0-1000000000000"):
        with pytest.raises(UserError, match="seed"):
            parse_seeds(bad)


GOOD = """
tasks = ["Pendulum-v1"]
agents = ["td3"]
seeds = [1, 5]
steps = 1000
eval_every = 500
[settings]
batch_size = 32
[[variants]]
label = "K = 8"
agent = "adac-td3"
settings = { particles = 8 }
"""


def test_a_toml_file_is_tasks_times_agents_and_variants_times_seeds(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    suite = suite_files.find(str(path))
    made = trials(suite)
    assert suite.name == "mine"
    assert [(t.label, t.seed) for t in made] == [
        ("td3", 1), ("K = 8", 1), ("td3", 5), ("K = 8", 5),
    ]  # fmt: skip
    assert all(t.agent["batch_size"] == 32 and t.schedule.eval_every == 500 for t in made)
    assert made[1].agent["explorer"]["particles"] == 8
    assert made[1].id.startswith("Pendulum-v1_K=8_s1_")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("steps", "stepps"), "unknown key 'stepps'; did you mean steps"),
        (("steps = 1000", ""), "has no 'steps'"),
        (("steps = 1000", "steps = true"), "'steps' cannot be True"),
        (("steps = 1000", "steps = 0"), "'steps' must be"),
        (("steps = 1000", 'steps = { "Pendulum-v1" = 100.5 }'), "'steps' must be"),
        (("steps = 1000", "steps = 1000\nnum_envs = 0"), "'num_envs' must be at least 1"),
        (("particles", "particels"), "no setting 'particels'"),
        (("[1, 5]", "[]"), "'seeds' must be"),
        (("Pendulum-v1", "Pendulun-v1"), "no task is registered as 'Pendulun-v1'"),
        (('"td3"', '"td4"'), "no agent 'td4'"),
        (("tasks =", "tasks"), "is not TOML"),
        (('label = "K = 8"', ""), "a variant has no 'label'"),
        (("tasks =", "tasks = " + "[" * 100_000), "is not TOML"),
    ],
)
def test_a_bad_toml_file_is_one_sentence(
    tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(UserError, match=sentence):
        trials(suite_files.read_toml(path))


def test_a_task_may_name_the_module_that_registers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registers_a_task.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import PendulumEnv\n"
        "gymnasium.register('Mine-v0', PendulumEnv, max_episode_steps=9)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "mine.toml"
    path.write_text('tasks = ["registers_a_task:Mine-v0"]\nagents = ["td3"]\nsteps = 100\n')
    assert {trial.task for trial in trials(suite_files.read_toml(path))} == {
        "registers_a_task:Mine-v0"
    }


def test_an_unknown_sweep_names_the_near_ones() -> None:
    with pytest.raises(UserError, match="did you mean cartpole"):
        suite_files.find("cartpol")


def test_ppo_without_its_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"adac\[ppo\]"):
        ppo.override({})


def test_a_sweep_may_end_its_trials_at_a_return(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace("steps = 1000", "steps = 1000\nstop_return = -90.5"))
    assert {trial.schedule.stop_return for trial in trials(suite_files.read_toml(path))} == {-90.5}


def test_ppo_says_what_it_does_not_do() -> None:
    plan = Schedule(eval_every=100, stop_return=1.0)
    with pytest.raises(UserError, match="ppo has no stop_return"):
        make_trial("Pendulum-v1", "ppo", 0, 100, schedule=plan)


PUBLISHED = Path(__file__).parents[2] / "results" / "former"


@pytest.mark.parametrize(
    "name",
    ["benchmark/Hopper-v4_td3_s0_6ba69557", "annealed/Hopper-v4_adac-td3_s0_e4ed121f"],
)
def test_a_younger_setting_at_its_neutral_value_does_not_rename_a_published_trial(
    name: str,
) -> None:
    """Runs from before there was a bound_penalty, a score_floor, a learn_after."""
    config = read_config(PUBLISHED / name)
    plan = Schedule(
        **{f.name: config[f.name] for f in dataclasses.fields(Schedule) if f.name in config}
    )

    def named(agent: Mapping[str, Any]) -> str:
        return Trial(
            config["env"], label_of(config), config["agent_name"], agent, config["seed"],
            config["steps"], plan, config["num_envs"],
        ).id  # fmt: skip

    assert named(config["agent"]) == Path(name).name
    younger = copy.deepcopy(config["agent"])
    for key, neutral in settings.LATER.items():
        part, _, setting = key.rpartition(".")
        (younger[part] if part else younger)[setting] = neutral
    assert younger != config["agent"]
    assert named(younger) == Path(name).name
    younger["base"]["bound_penalty"] = 0.1
    assert named(younger) != Path(name).name


def test_an_experiment_is_named_in_one_place() -> None:
    """Its entry in PAPER is its command, with its title as help, and its figure."""
    listed = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"}).output
    for name, suite in suites.PAPER.items():
        assert f"{name} " in listed
        assert suite.title in listed
        assert suite.figure in KINDS


def test_actions_are_repeated_with_one_update_per_environment_step(tmp_path: Path) -> None:
    lines = 'tasks = ["Pendulum-v1"]\nagents = ["td3"]\nseeds = 1\nsteps = 100\n'
    (tmp_path / "plain.toml").write_text(lines)
    (tmp_path / "twice.toml").write_text(lines + "action_repeat = 2\n")
    plain, twice = (
        trials(suite_files.find(str(tmp_path / f"{name}.toml")))[0] for name in ("plain", "twice")
    )
    assert twice.env_kwargs == {"action_repeat": 2}
    assert twice.agent["updates_per_step"] == 2
    assert "action_repeat" not in plain.identity()  # published trials keep their ids
    assert plain.id != twice.id
    explored = {t.task: t for t in trials(SUITES["exploration"])}
    assert explored["dm_control/hopper-hop-v0"].action_repeat == 2
    assert explored["MountainCarContinuous-v0"].action_repeat == 1
    (tmp_path / "none.toml").write_text(lines + "action_repeat = 0\n")
    with pytest.raises(UserError, match="action_repeat"):
        suite_files.find(str(tmp_path / "none.toml"))
