"""Figures: the CSV holds what was put in; trial folders are read as they are; snapshots."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from folders import STEPS, write_run
from typer.testing import CliRunner

from adac.cli.main import app
from adac.errors import UserError
from adac.experiments.analysis import results, snapshots, tables
from adac.experiments.analysis.figures import FIGURES, draw
from adac.experiments.analysis.results import read_results
from adac.training.learner import Learner
from adac.training.train import Schedule, train

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

TASKS = ("adac/PendulumSparse-v0", "Hopper-v4")
BONUS = {
    "bonus": (0.5, 0.4, 0.1),
    "bias": (0.1, 0.2, 0.3),
    "saturation_pi": (0.0, 0.25, 0.75),
}


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks × two agents × three seeds; returns are 100·seed + step/100, ADAC's 1,000 more."""
    root = tmp_path_factory.mktemp("trials")
    for env in TASKS:
        for agent, label, more in (("td3", "TD3", 0.0), ("adac-td3", "ADAC (TD3)", 1000.0)):
            for seed in range(3):
                returns = [more + 100.0 * seed + step / 100 for step in STEPS]
                name = f"{env.rpartition('/')[2]}-{agent}-{seed}"
                write_run(
                    root / name, returns,
                    env=env, agent=agent, label=label, seed=seed, metrics=BONUS,
                )  # fmt: skip
    shots = [("step", "state_index", "kind", "action")]
    for step in (100, 300):
        for state in range(2):
            shots.append((step, state, "pi", 0.25))
            shots += [(step, state, "mu", a) for a in np.linspace(-0.5, 0.5, 20)]
    with open(root / "PendulumSparse-v0-adac-td3-0" / "snapshots.csv", "w", newline="") as file:
        csv.writer(file).writerows(shots)
    return root


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "ablation"])
def test_every_figure_is_drawn_and_its_csv_is_what_was_put_in(
    name: str, trials: Path, tmp_path: Path
) -> None:
    paths = draw(name, trials, tmp_path)
    assert {path.name for path in paths} == {
        f"{name}.png", f"{name}.svg", f"{name}.csv", f"{name}_table.csv", f"{name}_table.md",
    }  # fmt: skip
    assert all(path.stat().st_size > 100 for path in paths)
    rows = [r for r in rows_of(tmp_path / f"{name}.csv") if "return" in r["panel"]]
    for env in TASKS:
        for label, more in (("TD3", 0.0), ("ADAC (TD3)", 1000.0)):
            line = [r for r in rows if (r["task"], r["label"]) == (env, label)]
            assert [int(r["x"]) for r in line] == list(STEPS)
            assert [float(r["mean"]) for r in line] == [more + 100 + s / 100 for s in STEPS]
            assert {float(r["std"]) for r in line} == {100.0}
            assert {r["seeds"] for r in line} == {"3"}


def test_the_command_draws_under_another_name(trials: Path, tmp_path: Path) -> None:
    command = ["figure", "sparse", str(trials), "-o", str(tmp_path / "out"), "--as", "mine"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    draw("sparse", trials, tmp_path)
    assert (tmp_path / "out/mine.csv").read_text() == (tmp_path / "sparse.csv").read_text()
    assert (tmp_path / "out/mine.svg").is_file()


def test_a_figure_is_the_same_file_twice(trials: Path, tmp_path: Path) -> None:
    first, second = (draw("sparse", trials, tmp_path / name) for name in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()


def test_contamination_draws_the_bonus_apart(trials: Path, tmp_path: Path) -> None:
    draw("contamination", trials, tmp_path)
    rows = [r for r in rows_of(tmp_path / "contamination.csv") if r["panel"] == "intrinsic"]
    assert [float(r["mean"]) for r in rows[:3]] == list(BONUS["bonus"])


def test_cartpole_draws_bias_of_adac_alone_and_snapshots(trials: Path, tmp_path: Path) -> None:
    draw("cartpole", trials, tmp_path)
    rows = rows_of(tmp_path / "cartpole.csv")
    bias = [r for r in rows if r["panel"] == "bias"]
    assert {r["label"] for r in bias} == {"ADAC (TD3)"}
    dots = [r for r in rows if r["panel"] == "snapshot at 300: pi"]
    assert [float(r["x"]) for r in dots] == [0.25, 0.25]
    ridge = [r for r in rows if r["panel"] == "snapshot at 300: mu"][: len(snapshots.GRID)]
    total = np.trapezoid([float(r["mean"]) for r in ridge], [float(r["x"]) for r in ridge])
    assert total == pytest.approx(1.0, abs=0.01)


def test_the_table_holds_marks_and_the_papers_numbers(trials: Path, tmp_path: Path) -> None:
    draw("benchmark", trials, tmp_path)
    cells = {(r["task"], r["agent"]): r for r in rows_of(tmp_path / "benchmark_table.csv")}
    ours = cells["Hopper-v4", "adac-td3"]
    assert (ours["mean"], ours["std"], ours["marks"]) == ("1103", "100", "bold†")
    assert (ours["paper_mean"], ours["paper_marks"]) == ("3598.0", "bold†")
    assert cells["Hopper-v4", "td3"]["marks"] == ""
    assert cells["adac/PendulumSparse-v0", "td3"]["paper_mean"] == ""
    text = (tmp_path / "benchmark_table.md").read_text()
    assert "**1103†** ± 100.0 (n=3)" in text
    assert "**3598†** ± 374 |" in text
    assert "P(ADAC (TD3) beats TD3) = 1.00 [1.00, 1.00]" in text
    assert "3 seeds, too few for a t-test" in text


def test_the_ablation_draws_every_seed(trials: Path, tmp_path: Path) -> None:
    draw("ablation", trials, tmp_path)
    rows = [r for r in rows_of(tmp_path / "ablation.csv") if r["task"] == "Hopper-v4"]
    dots = {(r["label"], r["x"]): r["mean"] for r in rows if r["panel"] == "final return"}
    assert dots["TD3", "2"] == "203"
    assert len(dots) == 6
    means = {r["label"]: (r["mean"], r["std"]) for r in rows if r["panel"] == "final return: mean"}
    assert means == {"TD3": ("103", "100"), "ADAC (TD3)": ("1103", "100")}
    saturated = {r["mean"] for r in rows if r["panel"] == "final saturation of π"}
    assert saturated == {"0.75"}


def test_variants_of_one_agent_are_in_order_and_get_no_pair_marks(tmp_path: Path) -> None:
    for label in ("K = 16", "K = 2", "reference"):
        for seed in range(2):
            write_run(
                tmp_path / f"{label}{seed}", [1.0, 2.0, 3.0 + seed],
                agent="adac-td3", label=label, seed=seed, settings={"label": label},
            )  # fmt: skip
    for seed in range(2):
        write_run(tmp_path / f"td3{seed}", [1.0, 2.0, 3.0 + seed], seed=seed)
    found = read_results(tmp_path)
    assert found.labels == ["reference", "K = 2", "K = 16", "td3"]
    (row,) = tables.build(found).rows.values()
    assert {cell.marks.signs for cell in row.values()} == {""}


def test_an_unknown_figure_and_an_empty_folder_are_one_sentence(
    trials: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="there is no figure 'x'"):
        draw("x", trials, tmp_path)
    with pytest.raises(UserError, match="holds no run folder"):
        draw("sparse", tmp_path, tmp_path)


# Reading.


def test_unfinished_runs_are_drawn_alone_but_not_scored(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [1.0, 2.0, 3.0], seed=0)
    write_run(tmp_path / "b", [1.0], seed=1)
    found = read_results(tmp_path)
    group = found.groups["adac/PendulumSparse-v0"]["td3"]
    assert group.scores.tolist() == [3.0]
    assert [run.seed for run in group.drawn] == ["0"]
    assert any("1 of 2 runs are unfinished" in note for note in found.notes)
    (tmp_path / "b" / "done.json").write_text("{}")
    finished = read_results(tmp_path).groups["adac/PendulumSparse-v0"]["td3"]
    assert finished.scores.tolist() == [3.0, 1.0]


def test_a_copy_is_not_a_second_seed(tmp_path: Path) -> None:
    for name in "ab":
        write_run(tmp_path / name, [1.0, 2.0, 3.0])
    found = read_results(tmp_path)
    assert len(found.runs) == 1
    assert "counted once" in found.notes[0]


def test_of_two_copies_the_one_that_came_further_counts(tmp_path: Path) -> None:
    for name, returns in {"a": [1.0], "b": [1.0, 2.0, 3.0], "c": [1.0, 2.0]}.items():
        write_run(tmp_path / name, returns)
    found = read_results(tmp_path)
    assert [run.folder.name for run in found.runs] == ["b"]
    assert len([note for note in found.notes if "counted once" in note]) == 2


def test_a_curve_covers_the_steps_that_all_seeds_have(tmp_path: Path) -> None:
    for seed, returns in enumerate(([1.0, 2.0, 3.0], [5.0, 6.0])):
        run = write_run(tmp_path / str(seed), returns, seed=seed)
        (run / "done.json").write_text("{}")
    curve = read_results(tmp_path).groups["adac/PendulumSparse-v0"]["td3"].curve()
    assert curve is not None
    assert curve.steps.tolist() == list(STEPS[:2])
    assert curve.values.tolist() == [[1.0, 2.0], [5.0, 6.0]]


def test_one_name_with_two_settings_is_two_agents(tmp_path: Path) -> None:
    for particles in (8, 32):
        write_run(tmp_path / str(particles), [1.0, 2.0, 3.0], settings={"particles": particles})
    labels = read_results(tmp_path).labels
    assert sorted(labels) == ["td3 (particles=32)", "td3 (particles=8)"]


def test_damaged_folders_are_passed_over(tmp_path: Path) -> None:
    write_run(tmp_path / "good", [1.0, 2.0, 3.0])
    for name, text in {"x": "{", "y": '{"format": "other"}', "z": "[]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    bad = write_run(tmp_path / "w", [1.0, 2.0, 3.0], seed=1)
    (bad / "evaluations.csv").write_text("step,mean_return\n1,apple\n")
    found = read_results(tmp_path)
    assert len(found.runs) == 1
    assert len(found.notes) == 4
    assert all("passed over" in note for note in found.notes)


def test_one_run_folder_is_enough(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [1.0, 2.0, 3.0])
    assert read_results(folder).runs[0].score == 3.0
    table = tables.build(read_results(folder))
    assert table.warnings[0].startswith("adac/PendulumSparse-v0: 1 seed, too few for a spread")


def test_thin_keeps_the_ends() -> None:
    kept = results.thin(np.arange(1000), 10)
    assert (kept[0], kept[-1], len(kept)) == (0, 999, 10)
    assert results.thin(np.arange(3), 10).tolist() == [0, 1, 2]


# Snapshots.


@pytest.fixture(scope="module")
def learner() -> Iterator[Learner]:
    small = {"actor_hidden": "8,8", "critic_hidden": "8,8", "warmup": 10, "batch_size": 8}
    made = Learner("adac/PendulumSparse-v0", "adac-td3", overrides={**small, "particles": 4})
    yield made
    made.close()


def test_snapshots_are_taken_at_their_steps(learner: Learner, tmp_path: Path) -> None:
    callback = snapshots.snapshots_at(tmp_path, [20, 10])
    train(learner, 30, Schedule(log_every=0), callback=callback)
    shots = snapshots.read_snapshots(tmp_path)
    assert [shot.step for shot in shots] == [10] * 4 + [20] * 4
    assert all(len(shot.mu) == snapshots.SAMPLES for shot in shots)
    assert all(np.abs([shot.pi, *shot.mu]).max() <= 1.0 for shot in shots)
    now = snapshots.take(learner)
    pi = learner.policy(snapshots.states_of(learner))[:, 0]
    assert [shot.pi for shot in now] == pytest.approx(pi.tolist())


def test_a_resumed_run_drops_the_stages_it_will_take_again(
    learner: Learner, tmp_path: Path
) -> None:
    later = "step,state_index,kind,action\n1,0,pi,0.5\n1,0,mu,0.5\n999999,0,pi,0.5\n999999,0,mu,0\n"
    (tmp_path / "snapshots.csv").write_text(later)
    for _ in range(2):
        snapshots.record_snapshots(learner, tmp_path)
    steps = [shot.step for shot in snapshots.read_snapshots(tmp_path)]
    assert steps == [1] + [learner.step] * 4


def test_density_loses_no_mass_at_the_bounds() -> None:
    grid = np.linspace(-1, 1, 2001)
    for samples in (np.full(50, 1.0), np.linspace(-1, 1, 50)):
        assert np.trapezoid(snapshots.density(samples, grid), grid) == pytest.approx(1.0, abs=1e-3)


def test_what_is_left_out_of_a_table_stands_under_it(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a", [1.0, 2.0, 3.0], seed=0)
    write_run(tmp_path / "runs" / "b", [1.0], seed=1)
    with pytest.warns(UserWarning, match="1 of 2 runs are unfinished"):
        draw("sparse", tmp_path / "runs", tmp_path)
    assert "1 of 2 runs are unfinished" in (tmp_path / "sparse_table.md").read_text()


@pytest.mark.parametrize(
    ("name", "value"), [("num_envs", 4), ("env_kwargs", {"gravity": 1.0}), ("steps", 200)]
)
def test_runs_that_differ_in_more_than_the_seed_are_not_pooled(
    tmp_path: Path, name: str, value: object
) -> None:
    write_run(tmp_path / "a", [1.0, 2.0, 3.0])
    other = write_run(tmp_path / "b", [1.0, 2.0])
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {name: value}))
    (other / "done.json").write_text("{}")
    groups = read_results(tmp_path).groups["adac/PendulumSparse-v0"]
    assert len(groups) == 2
    assert {len(group.scores) for group in groups.values()} == {1}


def test_a_run_that_stopped_at_its_return_is_finished(tmp_path: Path) -> None:
    for name, enough in (("a", 2.0), ("b", 2.5)):
        run = write_run(tmp_path / name, [1.0, 2.0], seed=ord(name))
        config = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps(config | {"stop_return": enough}))
    group = read_results(tmp_path).groups["adac/PendulumSparse-v0"]["td3"]
    assert [run.seed for run in group.counted] == [str(ord("a"))]
