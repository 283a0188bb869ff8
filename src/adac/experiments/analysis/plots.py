"""Learning curves of run folders: one panel a task, one line an agent, a band over seeds."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adac.errors import UserError, missing_extra
from adac.runs.csv_table import read_table
from adac.runs.folder import distinct_labels, read_config, same_runs

# Okabe and Ito's colours, which also the colour-blind tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":")  # a second and third round through the colours


def style(number: int) -> dict[str, str]:
    """The colour and dash of a figure's first, second, … line."""
    rounds, place = divmod(number, len(COLOURS))
    return {"color": COLOURS[place], "linestyle": DASHES[rounds % len(DASHES)]}


class Curve(NamedTuple):
    steps: NDArray[np.int64]
    values: NDArray[np.float64]  # [seeds, steps]


def common_curve(series: Sequence[Mapping[int, float]]) -> Curve | None:
    """Over the steps that every seed has; None where there is no such step."""
    common = sorted(set.intersection(*(set(s) for s in series))) if series else []
    if not common:
        return None
    values = [[s[step] for step in common] for s in series]
    return Curve(np.array(common, np.int64), np.array(values, np.float64))


def plot_runs(folders: Sequence[Path], out: Path, metric: str | None = None) -> None:
    figure_class = _figure_class()
    if out.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"a plot is written as .png, .svg or .pdf, not '{out.suffix}'")
    panels = gather(folders, metric)
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = figure_class(figsize=(5.2 * columns + 0.6, 3.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (task, curves) in zip(axes, panels.items(), strict=False):
        _draw(axis, task, curves, metric)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("adac plot", "plot") from None
    return Figure


def gather(folders: Sequence[Path], metric: str | None) -> dict[str, dict[str, Curve]]:
    """{task: {label: curve}}, from evaluations.csv, or from a column of metrics.csv."""
    tasks: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
    for folder, config in _once_each(folders):
        tasks.setdefault(config["env"], []).append((folder, config))
    panels: dict[str, dict[str, Curve]] = {}
    for task, runs in tasks.items():
        lines: dict[str, list[dict[int, float]]] = {}
        labels = distinct_labels([config for _, config in runs])
        for label, (folder, _) in zip(labels, runs, strict=True):
            lines.setdefault(label, []).append(_series(folder, metric))
        panels[task] = {label: _curve(series) for label, series in lines.items()}
    return panels


def _once_each(folders: Sequence[Path]) -> list[tuple[Path, dict[str, Any]]]:
    configs = [read_config(folder) for folder in folders]
    kept = []
    for first, *copies in same_runs(configs):
        kept.append((folders[first], configs[first]))
        for copy in copies:
            pair = f"{folders[first]} and {folders[copy]}"
            warnings.warn(f"{pair} are the same agent, task and seed: drawn once", stacklevel=2)
    return kept


def _series(folder: Path, metric: str | None) -> dict[int, float]:
    """A column of metrics.csv or, failing that, of evaluations.csv."""
    column = metric or "mean_return"
    tables = [read_table(folder / f"{name}.csv") for name in ("metrics", "evaluations")]
    rows = next((table for table in tables if table and column in table[0]), None)
    if rows is None:
        known = ", ".join(c for table in tables if table for c in table[0] if c != "step")
        raise UserError(f"{folder} has no column '{column}' to draw; it has {known or 'none yet'}")
    series = {int(row["step"]): float(row[column]) for row in rows if row[column]}
    if not series:
        raise UserError(f"{folder} has nothing to draw yet: its column '{column}' is empty")
    return series


def _curve(series: list[dict[int, float]]) -> Curve:
    curve = common_curve(series)
    if curve is None:
        raise UserError("these runs have no step in common, so no mean can be drawn")
    return curve


def _draw(axis: Any, task: str, curves: dict[str, Curve], metric: str | None) -> None:
    for number, (agent, curve) in enumerate(curves.items()):
        chosen = style(number)
        mean, seeds = curve.values.mean(axis=0), len(curve.values)
        label = agent if seeds == 1 else f"{agent} (mean ± std of {seeds} seeds)"
        axis.plot(curve.steps, mean, label=label, linewidth=1.8, **chosen)
        if seeds > 1:
            std = curve.values.std(axis=0, ddof=1)
            axis.fill_between(
                curve.steps, mean - std, mean + std, color=chosen["color"], alpha=0.2, lw=0
            )
    axis.set_title(task, fontsize=11)
    axis.set_xlabel("environment steps")
    axis.set_ylabel("return of the target policy" if metric is None else metric)
    axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
