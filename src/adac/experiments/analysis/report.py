"""`adac report`: one self-contained page. Python gathers and escapes, the page's script draws.

The data travels as JSON in a script element that no browser executes, with `<`, `>` and `&`
escaped, and the script writes text nodes only. A content-security policy names the hash of that
one script and no address, so that nothing in a stranger's run folder can run, load or call home.
"""

import base64
import hashlib
import html
import importlib.resources
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from adac.errors import UserError
from adac.experiments.analysis import published, statistics, tables, videos
from adac.experiments.analysis.drawing import COLOURS, DASHES
from adac.experiments.analysis.results import Group, Results, Run, evenly_spread, read_results
from adac.experiments.analysis.snapshots import GRID, density, read_snapshots, state_name
from adac.experiments.analysis.statistics import Interval, Marks, Moments
from adac.experiments.analysis.tables import ScoreTable
from adac.experiments.paper.numbers import STEPS as PAPER_STEPS
from adac.experiments.paper.numbers import TRIALS as PAPER_TRIALS
from adac.runs.csv_table import VISITS, number_in, read_table
from adac.runs.files import read_plain, write_whole
from adac.runs.folder import MOST_BYTES, flatten
from adac.runs.progress import duration
from adac.training.coverage import PIXELS

POINTS = 250  # of one curve in the page, at most
SNAPSHOT_RUNS = 12  # in the page, at most

# Shown first, with these words; other columns of metrics.csv follow under their own names.
METRICS = {
    "mean_return": "return of the target policy",
    "episode_return": "return while exploring",
    "coverage": "cells of the state space visited",
    "bias": "bias of μ against π",
    "spread": "spread of μ within a state",
    "saturation_pi": "share of |π| above 0.98",
    "saturation_mu": "share of |μ| above 0.98",
    "episode_bonus": "intrinsic return while exploring",
    "bonus": "mean intrinsic reward in a batch",
    "q": "task critic's value",
    "q_behaviour": "behaviour critic's value",
}
FILES = (
    "template.html",
    "style.css",
    "chart.js",
    "curves.js",
    "page.js",
)  # of the page, each report_…
NOT_DRAWN = {"step", "episodes", "wall_seconds"}


def write_report(folder: Path, out: Path, title: str | None = None) -> list[str]:
    """Write the page; returns what a reader must know (also in the page)."""
    if out.is_dir() or out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"the page is written as .html, not '{out.name}'")
    results = read_results(folder)
    data = gather(results, title or folder.resolve().name)
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        # A lone surrogate in a label is no character; its escape can be read, here and by JSON.
        write_whole(Path(os.path.realpath(out)), render(data).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UserError(f"{out} could not be written: {error.strerror}") from None
    return [*data["notes"], *data["warnings"]]


def render(data: dict[str, Any], more: str = "", allowed: str = "") -> str:
    """The template with its style, its script and its data put in.

    `more` is another script behind the page's own, and `allowed` what its policy lets it do.
    """
    parts = importlib.resources.files("adac.experiments.analysis")
    read = {name: (parts / f"report_{name}").read_text(encoding="utf-8") for name in FILES}
    script = "".join(read[name] for name in FILES if name.endswith(".js")) + more
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "TITLE": html.escape(str(data["title"])),
        "HASH": digest,
        "ALLOWED": allowed,
        "STYLE": read["style.css"],
        "SCRIPT": script,
        "DATA": embed(data),
    }
    # In one pass: what is put in is never searched for further places.
    return re.sub(f"@({'|'.join(values)})@", lambda m: values[m[1]], read["template.html"])


def embed(data: Any) -> str:
    """JSON that can stand in a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def gather(results: Results, title: str, *, last_video: bool = False) -> dict[str, Any]:
    table = tables.build(results)
    shown, left_out = videos.gather(results, last_video)
    return {
        "title": title,
        "labels": results.labels,
        "colours": list(COLOURS),
        "dashes": [" ".join(map(str, dash)) for dash in DASHES],
        "metrics": _metrics(results),
        "tasks": [
            {"env": env, "groups": [_group(group) for group in groups.values()]}
            for env, groups in results.groups.items()
        ],
        "table": _table(table),
        "published": _published(results),
        "notes": [*results.notes, *left_out],
        "warnings": table.warnings,
        "snapshots": _first_runs(results, _snapshots),
        "visits": _first_runs(results, _visits),
        "pixels": PIXELS,
        "videos": shown,
        "grid": all_rounded(GRID),
        "settings": _settings(results),
        "paper": {"trials": PAPER_TRIALS, "steps": PAPER_STEPS},
        "last": statistics.LAST,
    }


def rounded(value: float) -> float | None:
    """Five digits are more than a screen shows; what is not finite becomes null."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def all_rounded(values: Any) -> list[float | None]:
    return [rounded(float(value)) for value in np.asarray(values).ravel()]


def _metrics(results: Results) -> list[dict[str, str]]:
    found = {column for run in results.runs for column in run.metrics} - NOT_DRAWN
    found |= {"mean_return"} if any(run.returns for run in results.runs) else set()
    names = [name for name in METRICS if name in found] + sorted(found - set(METRICS))
    return [{"name": name, "text": METRICS.get(name, name)} for name in names]


def _group(group: Group) -> dict[str, Any]:
    columns = ["mean_return", *sorted({c for run in group.runs for c in run.metrics} - NOT_DRAWN)]
    curves = {}
    for column in columns:
        curve = group.curve(column)
        if curve is not None:
            kept = evenly_spread(curve.steps, POINTS)
            hours = group.hours(curve.steps[kept])
            curves[column] = {
                "steps": curve.steps[kept].tolist(),
                "values": [all_rounded(row[kept]) for row in curve.values],
            } | ({} if hours is None else {"hours": all_rounded(hours)})
    seeds = [run.seed for run in group.drawn]
    return {"label": group.label, "agent": group.agent_name, "seeds": seeds, "curves": curves}


# The table.


def _moments(
    moments: Moments, marks: Marks, form: tables.Form = tables.with_spread
) -> dict[str, Any]:
    mean, std = form(moments)
    return {
        "mean": mean,
        "std": std,
        "seeds": moments.seeds,
        "bold": marks.bold,
        "signs": marks.signs,
    }


def _interval(interval: Interval, form: Any = tables.four_digits) -> dict[str, str]:
    return {name: form(value) for name, value in interval._asdict().items()}


def _table(table: ScoreTable) -> dict[str, Any]:
    rows = []
    for env, row in table.rows.items():
        cells = {}
        for label, cell in row.items():
            cells[label] = _moments(cell.ours, cell.marks) | {"iqm": _interval(cell.iqm)}
            if cell.paper is not None:
                cells[label]["paper"] = _moments(*cell.paper, tables.as_printed)
        rows.append({"env": env, "cells": cells})
    aggregate = {label: _interval(i, _two) for label, i in table.aggregate.items()}
    pairs = [
        {"a": a, "b": b, "chance": _interval(i, _two), "p": "" if math.isnan(p) else f"{p:.2g}"}
        for a, b, i, p in table.pairs
    ]
    return {"columns": table.columns, "rows": rows, "aggregate": aggregate, "pairs": pairs}


def _two(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _published(results: Results) -> dict[str, Any]:
    tasks = [
        {
            "env": env,
            "rows": [[line.name, f"{line.updates:g}", *published.cells(line), line.source or "here"]
                     for line in lines],
        }
        for env, lines in published.beside(results).items()
    ]  # fmt: skip
    heads = ["method", "updates", "seeds", *(f"at {step:,}" for step in published.STEPS), "source"]
    return {"heads": heads, "tasks": tasks}


# Snapshots.


def _first_runs(
    results: Results, gathered: Callable[[Run], dict[str, Any] | None]
) -> list[dict[str, Any]]:
    """Of the first runs that have any."""
    found: list[dict[str, Any]] = []
    for run in results.runs:
        one = gathered(run) if len(found) < SNAPSHOT_RUNS else None
        if one is not None:
            found.append(one)
    return found


def _name(run: Run) -> str:
    return f"{run.label}, {run.env}, seed {run.seed}"


def _snapshots(run: Run) -> dict[str, Any] | None:
    try:
        shots = read_snapshots(run.folder)
    except (OSError, ValueError, KeyError):
        return None
    stages: dict[int, list[dict[str, Any]]] = {}
    for shot in shots:
        cell = {
            "state": state_name(run.env, shot.state),
            "pi": rounded(shot.pi),
            "mu": all_rounded(density(shot.mu)),
        }
        stages.setdefault(shot.step, []).append(cell)
    listed = [{"step": step, "cells": cells} for step, cells in stages.items()]
    return {"name": _name(run), "stages": listed} if listed else None


def _visits(run: Run) -> dict[str, Any] | None:
    """Where μ has been and where π goes, at a few stages: the share of the states in each pixel."""
    stages: dict[int, dict[str, Any]] = {}
    for row in read_table(run.folder / VISITS) if run.folder.is_dir() else []:
        policy, cells = row.get("policy"), [number_in(row, name) for name in ("x", "y", "visits")]
        if policy not in ("mu", "pi") or not all(c is not None and math.isfinite(c) for c in cells):
            continue
        x, y, visits = (int(cell or 0) for cell in cells)
        empty = {name: np.zeros((PIXELS, PIXELS)) for name in ("mu", "pi")}
        if 0 <= x < PIXELS and 0 <= y < PIXELS:
            stages.setdefault(int(row["step"]), empty)[policy][y, x] = visits
    shares = [
        {"step": step} | {name: all_rounded(one / max(one.sum(), 1)) for name, one in both.items()}
        for step, both in stages.items()
    ]
    return {"name": _name(run), "stages": shares} if shares else None


# Settings.


def _settings(results: Results) -> dict[str, Any]:
    """What all runs share, once; and what tells them apart, run by run."""
    flat = [_flat(run) for run in results.runs]
    keys = list(dict.fromkeys(key for settings in flat for key in settings))
    shared = {k: flat[0].get(k, "") for k in keys if len({f.get(k) for f in flat}) == 1}
    runs = [
        {
            "name": str(run.folder.relative_to(results.folder)),
            "label": group.label,
            "env": run.env,
            "seed": run.seed,
            "steps": run.last_step,
            "finished": run.finished,
            "time": "" if run.seconds is None else duration(run.seconds),
            "machine": _machine(run),
            "score": "" if math.isnan(run.score) else tables.four_digits(run.score),
            "settings": {k: v for k, v in _flat(run).items() if k not in shared},
        }
        for group in results.all_groups()
        for run in group.runs
    ]
    return {"shared": shared, "runs": runs}


def _machine(run: Run) -> str:
    """As a finished trial of a sweep has it, or as its config.json does."""
    noted = run.config.get("versions", {})
    try:
        done = json.loads(read_plain(run.folder / "done.json", MOST_BYTES))
        return f"{done['machine']['cores']} × {done['machine']['cpu']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return str(noted.get("processor") or noted.get("machine", ""))


def _flat(run: Run) -> dict[str, str]:
    plain = flatten({k: v for k, v in run.config.items() if k != "label"})
    return {name: _text(value) for name, value in plain.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
