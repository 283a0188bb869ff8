"""Figures from run folders, by kind: curves, bonus, dots, behaviour.

`draw` writes a kind as PNG and SVG with a CSV of exactly what is drawn and the final table;
`plot` writes the curves of any column as a single picture. Both read the same `Results`.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adac.errors import UserError
from adac.experiments.analysis import published, statistics, tables
from adac.experiments.analysis.drawing import (
    legend,
    new_figure,
    require_format,
    save,
    save_as,
    styles,
    tidy,
)
from adac.experiments.analysis.results import RETURN, Group, Results, Run, read_results
from adac.experiments.analysis.rollouts import read_rollouts
from adac.experiments.analysis.sheet import Look, Sheet
from adac.experiments.analysis.snapshots import Snapshot, read_snapshots, state_name

# How an axis says these columns; others are called what they are called in the file.
WORDS = {
    RETURN: "return of the target policy",
    "episode_bonus": "intrinsic return of a training episode",
    "bonus": "mean intrinsic reward in a batch",
    "bias": "bias",
    "coverage": "cells of the state space visited",
}
# What metrics.csv may call the intrinsic reward: of a training episode, or the mean of a batch.
BONUS = ("episode_bonus", "bonus")


def draw(kind: str, folders: Sequence[Path], out: Path, stem: str | None = None) -> list[Path]:
    """Draw a kind of figure from the runs at or below `folders` into the folder `out`."""
    if kind not in KINDS:
        raise UserError(f"there is no kind of figure '{kind}'; there are {', '.join(KINDS)}")
    results = _read(folders)
    sheet = Sheet(results, styles(results.labels))
    figure = KINDS[kind](sheet)
    out.mkdir(parents=True, exist_ok=True)
    name = stem or (folders[0].resolve().name if len(folders) == 1 else kind)
    paths = [*save(figure, out / name), sheet.write(out / f"{name}.csv")]
    return [*paths, *_write_table(results, out / name)]


def plot(
    folders: Sequence[Path],
    out: Path | None = None,
    column: str | None = None,
    look: Look | None = None,
) -> Path:
    """One picture: the curves of a column of metrics.csv or evaluations.csv; returns its file."""
    if out is None:
        name = folders[0].resolve().name if len(folders) == 1 else "curves"
        out = Path(f"{name}.png" if column is None else f"{name}-{column}.png")
    require_format(out)
    results = _read(folders)
    sheet = Sheet(results, styles(results.labels), look or Look())
    return save_as(curves(sheet, column or RETURN), out)


def _read(folders: Sequence[Path]) -> Results:
    results = read_results(*folders)
    for note in results.notes:
        warnings.warn(note, stacklevel=3)
    return results


def _write_table(results: Results, stem: Path) -> list[Path]:
    """The final scores under every figure, with tests and what the seeds do not carry."""
    table = tables.build(results)
    if not table.rows:
        return []
    beside = [stem.with_name(f"{stem.name}_table{suffix}") for suffix in (".csv", ".md")]
    tables.write_csv(table, results, beside[0])
    texts = (tables.markdown(table, results.notes), published.markdown(results))
    beside[1].write_text("\n".join(filter(None, texts)))
    return beside


def _columns(count: int) -> int:
    """Of panels: four in a square, many in rows of four."""
    return {4: 2, 5: 3, 6: 3, 9: 3}.get(count, min(count, 4))


def _grid(count: int) -> tuple[Any, list[Any]]:
    """A figure and its panels."""
    columns = _columns(count)
    rows = -(-count // columns)
    figure = new_figure(max(4.4 * columns, 6.5), 3.2 * rows + 0.9)
    axes: list[Any] = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def curves(sheet: Sheet, column: str = RETURN) -> Any:
    """Learning curves, one panel a task: Figures 5 and 6."""
    tasks = sheet.results.groups
    figure, axes = _grid(len(tasks))
    without: list[Group] = []
    for place, (axis, (env, groups)) in enumerate(zip(axes, tasks.items(), strict=True)):
        without += sheet.curves(
            axis, "return" if column == RETURN else column, groups.values(), column
        )
        # All panels show the same quantity: it is named once a row.
        words = "" if place % _columns(len(tasks)) else WORDS.get(column, column)
        tidy(axis, _title(env, groups.values()), words, hours=sheet.look.hours)
        if column == RETURN and not sheet.look.hours:
            sheet.rivals(axis, env)
    _require_some(sheet, column)
    for group in without:
        warnings.warn(f"{group.label} on {group.env} {_why(group, column)}", stacklevel=3)
    legend(figure, axes)
    return figure


def _require_some(sheet: Sheet, column: str) -> None:
    if sheet.rows:
        return
    known = list(dict.fromkeys(c for run in sheet.results.runs for c in run.columns))
    if sheet.look.hours and column in known:
        raise UserError("these runs have no wall_seconds: draw them over steps")
    if column in known:
        raise UserError("these runs have no step in common, so no mean can be drawn")
    where = f"{sheet.results.folder} has no column '{column}' to draw"
    raise UserError(f"{where}; it has {', '.join(known) or 'none yet'}")


def _why(group: Group, column: str) -> str:
    if any(run.series(column) for run in group.drawn):
        return "has seeds without a step in common and is not drawn"
    return f"has no '{column}' and is not drawn"


def _title(env: str, groups: Any) -> str:
    """The task, and over how many seeds the lines are."""
    counts = sorted({len(group.drawn) for group in groups})
    if not counts or counts[-1] == 0:
        return env
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{env}, {span} seed{'' if counts[-1] == 1 else 's'}"


def behaviour(sheet: Sheet) -> Any:
    """Curves, the bias of μ against π, and snapshots of both below: Figure 3."""
    shots, tasks = _snapshot_run(sheet.results), sheet.results.groups
    height = 4.4 * len(tasks)
    figure = new_figure(12, height + 4.2 if shots else height)
    ratios = (1.05 * len(tasks), 1)
    top, bottom = figure.subfigures(2, 1, height_ratios=ratios) if shots else (figure, None)
    axes = top.subplots(len(tasks), 2, width_ratios=(1.35, 1), squeeze=False)
    for (left, right), (env, groups) in zip(axes, tasks.items(), strict=True):
        sheet.curves(left, "return", groups.values())
        sheet.curves(right, "bias", (g for g in groups.values() if "adac-" in g.agent_name), "bias")
        tidy(left, _title(env, groups.values()), WORDS[RETURN])
        tidy(right, "bias of μ: ‖mean of μ − π‖", WORDS["bias"])
    legend(top, axes.ravel())
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


def bonus(sheet: Sheet) -> Any:
    """The environment's own return, the intrinsic reward beside it, and below what π does with a
    pendulum at a few stages: Figure 4."""
    tasks, column = sheet.results.groups, _bonus_column(sheet.results)
    rollouts = _rollout_runs(sheet.results)
    height = 4.4 * len(tasks)
    figure = new_figure(11, height + 0.7 * len(rollouts) + (0.6 if rollouts else 0))
    ratios = (height, 0.7 * len(rollouts) + 0.6)
    top, bottom = figure.subfigures(2, 1, height_ratios=ratios) if rollouts else (figure, None)
    axes = top.subplots(len(tasks), 2, squeeze=False)
    for (left, right), (env, groups) in zip(axes, tasks.items(), strict=True):
        sheet.curves(left, "environment return", groups.values())
        sheet.curves(right, "intrinsic", groups.values(), column)
        tidy(left, f"{_title(env, groups.values())}: environment", WORDS[RETURN])
        tidy(right, "the bonus, apart", WORDS[column])
    legend(top, axes.ravel())
    if rollouts:
        _rollouts(sheet, bottom, rollouts)
    return figure


def _rollout_runs(results: Results) -> list[tuple[Run, dict[int, Any]]]:
    """The first seed of each agent that has rollouts."""
    found: dict[str, tuple[Run, dict[int, Any]]] = {}
    for run in sorted(results.runs, key=lambda run: run.seed):
        stages = read_rollouts(run.folder) if run.label not in found else {}
        if stages:
            found[run.label] = run, stages
    return list(found.values())


def _rollouts(sheet: Sheet, figure: Any, runs: Sequence[tuple[Run, dict[int, Any]]]) -> None:
    columns = max(len(stages) for _, stages in runs)
    axes = figure.subplots(len(runs), columns, squeeze=False)
    for row, (run, stages) in zip(axes, runs, strict=True):
        for axis in row[len(stages) :]:
            axis.set_visible(False)
        for axis, (step, angles) in zip(row, stages.items(), strict=False):
            sheet.rods(axis, run, step, angles)
            axis.set_title(f"{run.label}, step {step:,}", fontsize=8)
    figure.suptitle("one episode of π from left to right, at a few stages", fontsize=10)


def _bonus_column(results: Results) -> str:
    for column in BONUS:
        if any(run.metrics.get(column) for run in results.runs):
            return column
    raise UserError("none of these runs has an intrinsic reward in its metrics.csv")


def dots(sheet: Sheet) -> Any:
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


KINDS: dict[str, Callable[[Sheet], Any]] = {
    "curves": curves,
    "bonus": bonus,
    "dots": dots,
    "behaviour": behaviour,
}
