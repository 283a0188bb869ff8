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
from adac.experiments.analysis.curves import Curve, Limits
from adac.experiments.analysis.drawing import styles
from adac.experiments.analysis.figures import KINDS, curves, draw, plot
from adac.experiments.analysis.results import read_results
from adac.experiments.analysis.sheet import Look, Sheet
from adac.experiments.analysis.statistics import Moments
from adac.training.learner import Learner
from adac.training.train import Schedule, train
from commands import read_rows
from helpers import SMALL_LATENT

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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dots"])
def test_every_kind_is_drawn_and_its_csv_is_what_was_put_in(
    kind: str, trials: Path, tmp_path: Path
) -> None:
    paths = draw(kind, [trials], tmp_path, "mine")
    assert {path.name for path in paths} == {
        "mine.png", "mine.svg", "mine.csv", "mine_table.csv", "mine_table.md",
    }  # fmt: skip
    assert all(path.stat().st_size > 100 for path in paths)
    rows = [r for r in read_rows(tmp_path / "mine.csv") if "return" in r["panel"]]
    for env in TASKS:
        for label, more in (("TD3", 0.0), ("ADAC (TD3)", 1000.0)):
            line = [r for r in rows if (r["task"], r["label"]) == (env, label)]
            assert [int(r["x"]) for r in line] == list(STEPS)
            assert [float(r["mean"]) for r in line] == [more + 100 + s / 100 for s in STEPS]
            assert {float(r["std"]) for r in line} == {100.0}
            assert {r["seeds"] for r in line} == {"3"}


@pytest.mark.parametrize("kind", ["curves", "bonus", "behaviour"])
def test_each_task_has_a_panel_of_its_own(kind: str, trials: Path) -> None:
    found = read_results(trials)
    figure = KINDS[kind](Sheet(found, styles(found.labels)))
    for env in TASKS:
        (panel,) = [axis for axis in figure.axes if axis.get_title().startswith(env)]
        assert len(panel.get_lines()) == 2


def test_the_command_names_a_figure_after_its_folder(trials: Path, tmp_path: Path) -> None:
    for more, name in (([], trials.name), (["--as", "mine"], "mine")):
        done = CliRunner().invoke(
            app, ["figure", "curves", str(trials), "-o", str(tmp_path), *more]
        )
        assert done.exit_code == 0, done.output
        assert (tmp_path / f"{name}.svg").is_file()
    same = [(tmp_path / f"{name}.csv").read_text() for name in (trials.name, "mine")]
    assert same[0] == same[1]


def test_a_figure_is_the_same_file_twice(trials: Path, tmp_path: Path) -> None:
    first, second = (draw("curves", [trials], tmp_path / name) for name in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()


def test_bonus_draws_the_bonus_apart(trials: Path, tmp_path: Path) -> None:
    draw("bonus", [trials], tmp_path, "bonus")
    rows = [r for r in read_rows(tmp_path / "bonus.csv") if r["panel"] == "intrinsic"]
    assert [float(r["mean"]) for r in rows[:3]] == list(BONUS["bonus"])


def test_behaviour_draws_bias_of_adac_alone_and_snapshots(trials: Path, tmp_path: Path) -> None:
    draw("behaviour", [trials], tmp_path, "x")
    rows = read_rows(tmp_path / "x.csv")
    bias = [r for r in rows if r["panel"] == "bias"]
    assert {r["label"] for r in bias} == {"ADAC (TD3)"}
    dots = [r for r in rows if r["panel"] == "snapshot at 300: pi"]
    assert [float(r["x"]) for r in dots] == [0.25, 0.25]
    ridge = [r for r in rows if r["panel"] == "snapshot at 300: mu"][: len(snapshots.GRID)]
    total = np.trapezoid([float(r["mean"]) for r in ridge], [float(r["x"]) for r in ridge])
    assert total == pytest.approx(1.0, abs=0.01)


def test_the_table_holds_marks_and_the_papers_numbers(trials: Path, tmp_path: Path) -> None:
    draw("curves", [trials], tmp_path, "benchmark")
    cells = {(r["task"], r["agent"]): r for r in read_rows(tmp_path / "benchmark_table.csv")}
    ours = cells["Hopper-v4", "adac-td3"]
    assert (ours["mean"], ours["std"], ours["marks"]) == ("1103", "100", "bold†")
    assert (ours["paper_mean"], ours["paper_marks"]) == ("3598.0", "bold†")
    assert cells["Hopper-v4", "td3"]["marks"] == ""
    assert cells["adac/PendulumSparse-v0", "td3"]["paper_mean"] == ""
    text = (tmp_path / "benchmark_table.md").read_text()
    assert "**1103†** ± 100 (n=3)" in text
    assert "**3598†** ± 374 |" in text
    assert "P(ADAC (TD3) beats TD3) = 1.00 [1.00, 1.00]" in text
    assert "3 seeds, too few for a t-test" in text


def test_dots_draw_every_seed(trials: Path, tmp_path: Path) -> None:
    draw("dots", [trials], tmp_path, "x")
    rows = [r for r in read_rows(tmp_path / "x.csv") if r["task"] == "Hopper-v4"]
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


def test_an_unknown_kind_and_an_empty_folder_are_one_sentence(trials: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no kind of figure 'x'; there are curves, bonus"):
        draw("x", [trials], tmp_path)
    with pytest.raises(UserError, match="holds no run folder"):
        draw("curves", [tmp_path], tmp_path)


# Curves, and the plot of any column.


CURVE = Curve(np.array([1, 2, 3, 4]), np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 4.0]]))


def test_smoothing_is_each_seeds_own_running_mean() -> None:
    assert CURVE.smoothed(0) is CURVE
    smooth = CURVE.smoothed(1)
    assert smooth.steps.tolist() == [1, 2, 3, 4]
    assert smooth.values[0] == pytest.approx([0.5, 2 / 3, 1.0, 1.0])
    assert smooth.values[1] == pytest.approx([0.0, 1 / 3, 5 / 3, 2.5])


def test_a_band_stays_within_what_was_reached() -> None:
    """At the last step the seeds are 1 and 4: 2.5 ± 2.12, and nobody was above 4 or below 0."""
    wide = CURVE.band(Limits(-9.0, 9.0))
    assert wide is not None
    assert wide[1][-1] == pytest.approx(2.5 + 4.5**0.5)
    band = CURVE.band(Limits(0.0, 4.0))
    assert band is not None
    assert (band[0].min(), band[1].max()) == (0.0, 4.0)
    assert band[0][1:3] == pytest.approx([0.0, 1.0])  # 0.5 ± 0.71, and no spread at all
    assert Curve(CURVE.steps, CURVE.values[:1]).band(Limits(0.0, 4.0)) is None


def test_the_limits_of_a_band_are_those_of_its_panel(tmp_path: Path) -> None:
    """5 ± 7.1 from returns of 0 and 10, where another agent's best is 11."""
    for seed, value in enumerate((0.0, 10.0)):
        write_run(tmp_path / str(seed), [value] * 3, seed=seed)
    write_run(tmp_path / "other", [11.0] * 3, agent="sac")
    found = read_results(tmp_path)
    (axis,) = curves(Sheet(found, styles(found.labels))).axes
    (band,) = axis.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 11.0)


def test_seeds_are_thin_lines_instead_of_a_band(trials: Path) -> None:
    found = read_results(trials)
    figure = curves(Sheet(found, styles(found.labels), Look(seeds=True)))
    axis = figure.axes[0]
    assert len(axis.get_lines()) == 2 * (1 + 3)
    assert not axis.collections
    thin = [line for line in axis.get_lines() if line.get_linewidth() < 1]
    ends = sorted(float(line.get_ydata()[-1]) for line in thin)
    assert ends == [3.0, 103.0, 203.0, 1003.0, 1103.0, 1203.0]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["ADAC (TD3)", "TD3"]


def test_plot_takes_run_folders_and_folders_of_them(trials: Path, tmp_path: Path) -> None:
    """A folder named twice, as itself and inside another, is one run."""
    inside = trials / "Hopper-v4-td3-0"
    for folders in ([inside], [trials], [trials, inside]):
        out = tmp_path / f"{len(folders)}.svg"
        plot(folders, out)
        assert "</svg>" in out.read_text()
    assert len(read_results(trials, inside).runs) == 12


def test_plot_has_a_name_for_its_picture(
    trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inside = trials / "Hopper-v4-td3-0"
    assert plot([inside]) == Path("Hopper-v4-td3-0.png")
    assert plot([inside], None, "bias") == Path("Hopper-v4-td3-0-bias.png")
    assert plot([inside, trials / "Hopper-v4-td3-1"]) == Path("curves.png")
    assert all(path.stat().st_size > 1_000 for path in tmp_path.glob("*.png"))


def test_curves_over_hours_are_where_the_clock_was(tmp_path: Path) -> None:
    """Two seeds that took 1 and 3 hours to step 300; metrics lie between evaluations."""
    metrics = {"bias": (0.1, 0.2, 0.3)}
    for seed, hours in enumerate((1, 3)):
        folder = write_run(tmp_path / str(seed), [1.0, 2.0, 3.0], seed=seed, metrics=metrics)
        lines = ["step,mean_return,wall_seconds", f"150,1,{hours * 1800}", f"300,2,{hours * 3600}"]
        (folder / "evaluations.csv").write_text("\n".join(lines) + "\n")
    found = read_results(tmp_path)
    (group,) = found.all_groups()
    assert group.hours(np.array([0, 75, 150, 300])) == pytest.approx([0.0, 0.5, 1.0, 2.0])
    sheet = Sheet(found, styles(found.labels), Look(hours=True))
    (axis,) = curves(sheet, "bias").axes
    assert axis.get_lines()[0].get_xdata() == pytest.approx([2 / 3, 4 / 3, 2.0])
    assert axis.get_xlabel() == "hours of training"


def test_without_a_clock_there_are_no_hours(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", [1.0, 2.0, 3.0])
    (folder / "evaluations.csv").write_text("step,mean_return\n100,1\n300,2\n")
    with pytest.raises(UserError, match="no wall_seconds"):
        plot([tmp_path], tmp_path / "x.png", None, Look(hours=True))


def test_no_two_of_many_lines_look_alike() -> None:
    looks = styles([str(n) for n in range(70)]).values()
    assert len({(look["color"], look["linestyle"]) for look in looks}) == 70


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (93.771, 0.266, ("93.77", "0.27")),
        (2408.53, 310.4, ("2409", "310")),
        (53.5, 0.7071, ("53.50", "0.71")),
        (-0.512, 12.3, ("-1", "12")),
        (5.0, 1e-7, ("5.0000", "0.0000")),
        (1000.0, 0.0, ("1000", "0")),
        (3.25, float("nan"), ("3.250", "")),
    ],
)
def test_mean_and_deviation_end_at_the_same_place(
    mean: float, std: float, text: tuple[str, str]
) -> None:
    assert tables.with_spread(Moments(mean, std, 3)) == text


def test_plot_says_what_has_no_such_column(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [1.0, 2.0, 3.0], agent="adac-td3", metrics={"bias": (1, 2, 3)})
    write_run(tmp_path / "b", [1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match="td3 on adac/PendulumSparse-v0 has no 'bias'"):
        plot([tmp_path], tmp_path / "x.png", "bias")
    with pytest.raises(UserError, match=r"no column 'biass' to draw; it has .*mean_return.*bias"):
        plot([tmp_path], tmp_path / "x.png", "biass")
    with pytest.raises(UserError, match="smooth is a number of points"):
        Look(smooth=-1)


def test_plot_needs_a_step_in_common(tmp_path: Path) -> None:
    for seed, metrics in enumerate(({"q": (1.0, "", "")}, {"q": ("", 2.0, "")})):
        write_run(tmp_path / str(seed), [1.0, 2.0, 3.0], seed=seed, metrics=metrics)
    with pytest.raises(UserError, match="no step in common"):
        plot([tmp_path], tmp_path / "x.png", "q")


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


def test_evenly_spread_keeps_the_ends() -> None:
    kept = results.evenly_spread(np.arange(1000), 10)
    assert (kept[0], kept[-1], len(kept)) == (0, 999, 10)
    assert results.evenly_spread(np.arange(3), 10).tolist() == [0, 1, 2]


# Snapshots.


@pytest.fixture(scope="module")
def learner() -> Iterator[Learner]:
    made = Learner("adac/PendulumSparse-v0", "adac-td3", overrides=SMALL_LATENT | {"warmup": 10})
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
        draw("curves", [tmp_path / "runs"], tmp_path, "sparse")
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
