"""Results in the form that SimbaV2, XQC and FlashSAC publish theirs in, both ways.

One row an evaluation: exp_name,env_name,seed,metric,env_step,value.
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from adac.errors import UserError
from adac.runs.files import write_whole

COLUMNS = ("exp_name", "env_name", "seed", "metric", "env_step", "value")
METRIC = "avg_return"


class Record(NamedTuple):
    """The returns of one run."""

    name: str  # of the method
    env: str
    seed: str
    returns: dict[int, float]  # by environment step

    def config(self) -> dict[str, Any]:
        """What a run folder would say of it."""
        facts = {"env": self.env, "env_kwargs": {}, "num_envs": 1, "seed": self.seed, "agent": {}}
        return facts | {"agent_name": self.name, "label": self.name}


def write(records: Iterable[Record], path: Path) -> None:
    lines = [",".join(COLUMNS)]
    for record in records:
        name, env = _cell(record.name), _cell(env_name(record.env))
        lines += [
            f"{name},{env},{record.seed},{METRIC},{step},{value:.9g}"
            for step, value in sorted(record.returns.items())
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_whole(path, ("\n".join(lines) + "\n").encode())
    except OSError as error:
        raise UserError(f"{path} could not be written: {error.strerror}") from None


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\\n]', text) else text


def env_name(task_id: str) -> str:
    """dm_control's own name of a task, as others write it; any other id as it is."""
    inside = task_id.removeprefix("dm_control/")
    return inside if inside == task_id else inside.removesuffix("-v0")


def read(path: Path, known: Sequence[str] = ()) -> list[Record]:
    """The runs of a file; tasks by their ids here where `known` has one of the same name."""
    rows = _rows(path)
    ids = {_plain(env_name(task)): task for task in known}
    metric = _metric(path, {row["metric"] for row in rows})
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    try:
        for row in rows:
            if row["metric"] == metric and math.isfinite(value := float(row["value"])):
                env = ids.get(_plain(row["env_name"]), row["env_name"])
                run = found.setdefault((row["exp_name"], env, row["seed"]), {})
                run[round(float(row["env_step"]))] = value
    except (ValueError, OverflowError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    return [Record(*names, returns) for names, returns in found.items()]


def _rows(path: Path) -> list[Mapping[str, str]]:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows: list[Mapping[str, str]] = list(csv.DictReader(file))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a table: {error}") from None
    if not rows or any(row.get(name) is None for row in rows for name in COLUMNS):
        raise UserError(f"{path} is no file of results: its columns must be {','.join(COLUMNS)}")
    return rows


def _metric(path: Path, names: set[str]) -> str:
    returns = sorted(name for name in names if "return" in name.lower()) or sorted(names)
    if METRIC in names or len(returns) == 1:
        return METRIC if METRIC in names else returns[0]
    raise UserError(f"{path} has the metrics {', '.join(returns)}, and none is {METRIC}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
