"""Small text results of finished trials, kept in the repository so that evidence adds up."""

import csv
import io
from pathlib import Path

from adac.errors import UserError
from adac.experiments.analysis.rollouts import FILE as ROLLOUTS
from adac.experiments.analysis.snapshots import FILE as SNAPSHOTS
from adac.experiments.sweeps.trials import DONE, is_done
from adac.runs.csv_table import VISITS
from adac.runs.files import write_whole

ROWS = 200  # of metrics.csv that are kept, evenly over the run
WHOLE = ("config.json", "evaluations.csv", DONE)
BY_STAGE = (SNAPSHOTS, ROLLOUTS, VISITS)  # of runs that have them


def publish(trial: Path, results: Path) -> Path:
    """Copy a finished trial's configuration, evaluations, metrics and machine to `results`."""
    if not is_done(trial):
        raise UserError(f"{trial} is not a finished trial: it has no {DONE}")
    target = results / trial.name
    target.mkdir(parents=True, exist_ok=True)
    metrics = trial / "metrics.csv"
    if metrics.is_file():
        text = metrics.read_text("utf-8", "replace")
        write_whole(target / "metrics.csv", thin_csv(text).encode())
    for name in BY_STAGE:
        if (trial / name).is_file():
            write_whole(target / name, (trial / name).read_bytes())
    for name in WHOLE:  # done.json last, as everywhere
        write_whole(target / name, (trial / name).read_bytes())
    return target


def recall(published: Path, trial: Path) -> None:
    """A published trial back into a sweep's folder, where it counts as finished."""
    trial.mkdir(parents=True, exist_ok=True)
    for name in ("metrics.csv", *BY_STAGE, *WHOLE):
        if (published / name).is_file():
            write_whole(trial / name, (published / name).read_bytes())


def thin_csv(text: str, rows: int = ROWS) -> str:
    """At most `rows` rows of a CSV, evenly spread, the last among them."""
    lines = list(csv.reader(io.StringIO(text)))
    header, body = lines[:1], lines[1:]
    if len(body) > rows:
        stride = -(-len(body) // rows)
        body = body[::-1][::stride][::-1]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(header + body)
    return out.getvalue()
