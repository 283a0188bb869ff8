"""The paper's figures from trial folders: each as PNG, SVG, and a CSV of exactly what is drawn."""

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adac.errors import UserError
from adac.experiments.analysis import statistics, tables
from adac.experiments.analysis.drawing import band, legend, new_figure, save, styles, tidy
from adac.experiments.analysis.plots import Curve
from adac.experiments.analysis.results import Group, Results, Run, read_results
from adac.experiments.analysis.snapshots import (
    GRID,
    Snapshot,
    density,
    read_snapshots,
    state_name,
)

RETURN = "return of the target policy"
# What metrics.csv may call the intrinsic reward: of a training episode, or the mean of a batch.
BONUS = {
    "episode_bonus": "intrinsic return of a training episode",
    "bonus": "mean intrinsic reward in a batch",
}
COLUMNS = ("panel", "task", "label", "seeds", "x", "mean", "std")


@dataclass
class Sheet:
    """A figure in the making, and the rows of its CSV."""

    results: Results
    styles: dict[str, dict[str, str]]
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def curve(self, axis: Any, panel: str, group: Group, column: str = "mean_return") -> bool:
        """Draw one line and note it; False where the runs have no such numbers."""
        curve = group.curve(column)
        if curve is None:
            return False
        band(axis, curve, group.label, self.styles[group.label])
        self._note(panel, group, curve)
        return True

    def _note(self, panel: str, group: Group, curve: Curve) -> None:
        several = len(curve.values) > 1
        mean = curve.values.mean(axis=0)
        std = curve.values.std(axis=0, ddof=1) if several else None
        for i, step in enumerate(curve.steps):
            spread = "" if std is None else f"{std[i]:.6g}"
            row = (panel, group.env, group.label, len(curve.values), step, f"{mean[i]:.6g}", spread)
            self.rows.append(row)

    def density(self, axis: Any, run: Run, shot: Snapshot, base: float, scale: float) -> None:
        """μ's density as a ridge on the line `base`, π as a dot on it."""
        p, panel = density(shot.mu), f"snapshot at {shot.step}"
        top = base + scale * p / max(float(p.max()), 1e-9)
        axis.fill_between(GRID, base, top, color="#0072B2", alpha=0.25, lw=0, zorder=2)
        axis.plot(GRID, top, color="#0072B2", lw=1.4, zorder=3)
        axis.plot([shot.pi], [base], "o", color="#D55E00", ms=7, zorder=4, clip_on=False)
        label = f"{run.label}, {state_name(run.env, shot.state)}"
        for x, y in zip(GRID, p, strict=True):
            self.rows.append((f"{panel}: mu", run.env, label, 1, f"{x:.4f}", f"{y:.6g}", ""))
        self.rows.append((f"{panel}: pi", run.env, label, 1, f"{shot.pi:.4f}", "", ""))

    def dots(
        self, axis: Any, panel: str, group: Group, values: Sequence[float], rows: dict[str, int]
    ) -> None:
        """One dot a seed, the mean as a bar through them."""
        if not values:
            return
        y, colour = rows[group.label], self.styles[group.label]["color"]
        axis.plot(values, [y] * len(values), "o", color=colour, ms=5, alpha=0.55, mew=0, zorder=3)
        mean, std, seeds = statistics.moments(values)
        axis.plot([mean, mean], [y - 0.33, y + 0.33], color=colour, lw=3, zorder=4)
        for run, value in zip(group.counted, values, strict=True):
            self.rows.append((panel, group.env, group.label, 1, run.seed, f"{value:.6g}", ""))
        spread = "" if seeds < 2 else f"{std:.6g}"
        row = (f"{panel}: mean", group.env, group.label, seeds, "", f"{mean:.6g}", spread)
        self.rows.append(row)

    def write(self, path: Path) -> Path:
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(self.rows)
        return path


def draw(name: str, folder: Path, out: Path, stem: str | None = None) -> list[Path]:
    """Draw the figure `name` from the trials below `folder` into the folder `out`."""
    if name not in FIGURES:
        raise UserError(f"there is no figure '{name}'; there are {', '.join(FIGURES)}")
    results = read_results(folder)
    for note in results.notes:
        warnings.warn(note, stacklevel=2)
    sheet = Sheet(results, styles(results.labels))
    figure = FIGURES[name](sheet)
    out.mkdir(parents=True, exist_ok=True)
    stem = stem or name
    paths = [*save(figure, out / stem), sheet.write(out / f"{stem}.csv")]
    return [*paths, *_write_table(results, out / stem)]


def _write_table(results: Results, stem: Path) -> list[Path]:
    """The final scores under every figure, with tests and what the seeds do not carry."""
    table = tables.build(results)
    if not table.rows:
        return []
    beside = [stem.with_name(f"{stem.name}_table{suffix}") for suffix in (".csv", ".md")]
    tables.write_csv(table, results, beside[0])
    beside[1].write_text(tables.markdown(table, results.notes))
    return beside


def _grid(figure: Any, count: int, most: int) -> list[Any]:
    columns = min(count, most)
    rows = -(-count // columns)
    axes: list[Any] = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axis in axes[count:]:
        axis.set_visible(False)
    return axes[:count]


def _size(count: int, most: int) -> tuple[float, float]:
    columns = min(count, most)
    return max(4.4 * columns, 6.5), 3.2 * -(-count // columns) + 0.9


def learning_curves(sheet: Sheet, columns: int) -> Any:
    """One panel a task: Figures 5 and 6."""
    tasks = sheet.results.groups
    figure = new_figure(*_size(len(tasks), columns))
    axes = _grid(figure, len(tasks), columns)
    for axis, (env, groups) in zip(axes, tasks.items(), strict=True):
        for group in groups.values():
            sheet.curve(axis, "return", group)
        tidy(axis, _title(env, groups.values()), RETURN)
    legend(figure, axes)
    return figure


def _title(env: str, groups: Any) -> str:
    """The task, and over how many seeds the lines are."""
    counts = sorted({len(group.drawn) for group in groups})
    if not counts or counts[-1] == 0:
        return env
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{env}, {span} seed{'' if counts[-1] == 1 else 's'}"


def cartpole(sheet: Sheet) -> Any:
    """Figure 3: curves, the bias of μ against π, and snapshots of both below."""
    shots = _snapshot_run(sheet.results)
    figure = new_figure(12, 8.6 if shots else 4.4)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.05, 1)) if shots else (figure, None)
    left, right = top.subplots(1, 2, width_ratios=(1.35, 1))
    for group in sheet.results.all_groups():
        sheet.curve(left, "return", group)
        if "adac-" in group.agent_name:
            sheet.curve(right, "bias", group, "bias")
    env, groups = next(iter(sheet.results.groups.items()))
    tidy(left, _title(env, groups.values()), RETURN)
    tidy(right, "bias of μ: ‖mean of μ − π‖", "bias")
    legend(top, [left, right])
    if shots is not None:
        _snapshots(sheet, bottom, *shots)
    return figure


def _snapshot_run(results: Results) -> tuple[Run, list[Snapshot]] | None:
    """The first run with snapshots, of the agent with co-training if it has some."""
    runs = sorted(results.runs, key=lambda run: ("no-cotraining" in run.agent_name, run.seed))
    for run in runs:
        shots = read_snapshots(run.folder) if "adac-" in run.agent_name else []
        if shots:
            return run, shots
    return None


def _snapshots(sheet: Sheet, figure: Any, run: Run, shots: Sequence[Snapshot]) -> None:
    stages = sorted({shot.step for shot in shots})
    axes = figure.subplots(1, len(stages), sharey=True, squeeze=False)[0]
    states = sorted({shot.state for shot in shots})
    for axis, step in zip(axes, stages, strict=True):
        for shot in (s for s in shots if s.step == step):
            sheet.density(axis, run, shot, base=-states.index(shot.state), scale=0.8)
        tidy(axis, f"step {step:,}", "", steps=False)
        axis.grid(axis="y", alpha=0)
        axis.set_xlim(-1.05, 1.05)
        axis.set_xlabel("action")
        axis.set_yticks([-i for i in range(len(states))], [state_name(run.env, s) for s in states])
    figure.suptitle(
        f"{run.label}, seed {run.seed}: π (dots) and μ's density (curves) at four states"
        if len(states) == 4
        else f"{run.label}, seed {run.seed}: π (dots) and μ's density (curves)",
        fontsize=11,
    )


def contamination(sheet: Sheet) -> Any:
    """Figure 4: what the bonus does to the environment's own return, and the bonus itself."""
    figure = new_figure(11, 4.4)
    left, right = figure.subplots(1, 2)
    column = _bonus_column(sheet.results)
    for group in sheet.results.all_groups():
        sheet.curve(left, "environment return", group)
        sheet.curve(right, "intrinsic", group, column)
    env, groups = next(iter(sheet.results.groups.items()))
    tidy(left, f"{_title(env, groups.values())}: environment", RETURN)
    tidy(right, "the bonus, apart", BONUS[column])
    legend(figure, [left, right])
    return figure


def _bonus_column(results: Results) -> str:
    for column in BONUS:
        if any(run.metrics.get(column) for run in results.runs):
            return column
    raise UserError("none of these runs has an intrinsic reward in its metrics.csv")


def ablation(sheet: Sheet) -> Any:
    """Final returns seed by seed, one row a variant; beside them how far π is saturated."""
    tasks, labels = sheet.results.groups, sheet.results.labels
    ratios = [3, 1] * len(tasks)
    figure = new_figure(max(5.2 * len(tasks) + 1.5, 7), 0.27 * len(labels) + 1.9)
    axes = figure.subplots(1, 2 * len(tasks), sharey=True, squeeze=False, width_ratios=ratios)[0]
    rows = {label: -i for i, label in enumerate(labels)}
    for i, (env, groups) in enumerate(tasks.items()):
        left, right = axes[2 * i : 2 * i + 2]
        for group in groups.values():
            sheet.dots(left, "final return", group, [run.score for run in group.counted], rows)
            ends = [late(run, "saturation_pi") for run in group.counted]
            sheet.dots(
                right,
                "final saturation of π",
                group,
                ends if min(ends, default=-1.0) >= 0 else [],
                rows,
            )
        first = next(iter(groups.values()))
        if len(first.scores):
            left.axvline(first.scores.mean(), color="0.5", lw=1, ls="--", zorder=1)
        tidy(left, _title(env, groups.values()), "", steps=False)
        tidy(right, "π saturated", "", steps=False)
        left.set_xlabel("final return")
        right.set_xlabel("|π| > 0.98")
        right.set_xlim(-0.05, 1.05)
    axes[0].set_yticks(list(rows.values()), list(rows))
    axes[0].set_ylim(-len(rows) + 0.4, 0.6)
    return figure


def late(run: Run, column: str) -> float:
    """A column of metrics.csv over the last tenth of the run; −1 where it has none."""
    series = run.metrics.get(column, {})
    return statistics.final_score(list(series), list(series.values())) if series else -1.0


def sparse(sheet: Sheet) -> Any:
    return learning_curves(sheet, columns=2)


def benchmark(sheet: Sheet) -> Any:
    return learning_curves(sheet, columns=4)


FIGURES: dict[str, Callable[[Sheet], Any]] = {
    "cartpole": cartpole,
    "contamination": contamination,
    "sparse": sparse,
    "benchmark": benchmark,
    "ablation": ablation,
}
