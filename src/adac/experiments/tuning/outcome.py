"""What a tuning found: a table, which settings mattered, and a preset."""

import csv
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adac.experiments.analysis.drawing import COLOURS, new_figure, save_as
from adac.experiments.tuning.study import Plan
from adac.runs.files import write_whole
from adac.runs.preset import Preset, write_preset

TABLE, PRESET, PICTURE = "trials.csv", "best.toml", "importances.png"
ENOUGH = 4  # finished trials, below which nothing can be said about settings


@dataclass(frozen=True)
class Row:
    number: int
    state: str  # complete, pruned, fail or running
    score: float | None
    seed: int
    settings: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    rows: list[Row]  # the best first
    best: Row | None
    own: Row | None  # the agent's own settings, tried first
    importances: dict[str, float]  # their sum is 1; empty where nothing can be said
    files: list[Path]


def gather(study: Any, plan: Plan, folder: Path) -> Outcome:
    """And write it down."""
    rows = [
        Row(one.number, one.state.name.lower(), one.value, plan.seed + one.number, one.params)
        for one in study.get_trials(deepcopy=False)
        if one.state.name != "WAITING"
    ]
    finished = [row for row in rows if row.state == "complete"]
    rows.sort(key=lambda row: (row not in finished, -(row.score or 0.0), row.number))
    best = rows[0] if finished else None
    importances = _importances(study) if len(finished) >= ENOUGH else {}
    files = [_table(rows, folder / TABLE)]
    if importances:
        files.append(_picture(importances, plan, folder / PICTURE))
    if best is not None:
        files.append(_preset(best, plan, len(finished), folder / PRESET))
    own = next((row for row in finished if row.number == 0), None)
    return Outcome(rows, best, own, importances, files)


def _importances(study: Any) -> dict[str, float]:
    """PED-ANOVA: how far the best tenth's values of a setting differ from all that were tried."""
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return dict(found)


def _table(rows: list[Row], path: Path) -> Path:
    names = sorted({name for row in rows for name in row.settings})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", "score", "seed", *names])
    for row in rows:
        score = "" if row.score is None else f"{row.score:.9g}"
        cells = [row.settings.get(name, "") for name in names]
        writer.writerow([row.number, row.state, score, row.seed, *cells])
    write_whole(path, text.getvalue().encode())
    return path


def _picture(importances: dict[str, float], plan: Plan, path: Path) -> Path:
    figure = new_figure(6.0, 1.0 + 0.3 * len(importances))
    axis = figure.subplots()
    names = list(importances)[::-1]
    axis.barh(names, [importances[name] for name in names], color=COLOURS[0])
    axis.set_xlabel("importance (PED-ANOVA)")
    axis.set_title(f"{plan.agent} on {plan.task}")
    return save_as(figure, path)


def _preset(best: Row, plan: Plan, finished: int, path: Path) -> Path:
    about = (
        f"{plan.agent} on {plan.task}: the best of {finished} finished trials of `adac tune`, "
        f"{plan.steps:,} steps each.",
        f"It scored {best.score:.4g} with seed {best.seed}: of many, so try it on others.",
    )
    write_preset(path, Preset(plan.agent, {**plan.fixed, **best.settings}), about)
    return path
