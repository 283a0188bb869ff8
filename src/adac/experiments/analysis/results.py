"""Reading trial folders: runs with their scores and curves, grouped by task and label."""

import csv
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adac.errors import UserError
from adac.experiments.analysis.curves import Curve, common_curve
from adac.experiments.analysis.exchange import Record, read
from adac.experiments.analysis.statistics import Scores, final_score
from adac.runs.csv_table import read_table
from adac.runs.files import files_below
from adac.runs.folder import distinct_labels, label_of, read_config, same_runs

Series = dict[int, float]  # step → value
RETURN = "mean_return"  # the column of evaluations.csv
CLOCK = "wall_seconds"  # another


@dataclass(frozen=True)
class Run:
    """One trial folder. `columns` are evaluations.csv's and metrics.csv's numbers by name."""

    folder: Path
    config: dict[str, Any]
    label: str
    evaluations: dict[str, Series]
    metrics: dict[str, Series]
    finished: bool

    @property
    def env(self) -> str:
        return str(self.config["env"])

    @property
    def agent_name(self) -> str:
        return str(self.config["agent_name"])

    @property
    def seed(self) -> str:
        return str(self.config["seed"])

    @property
    def returns(self) -> Series:
        """Of the target policy, on the environment's own reward."""
        return self.evaluations.get(RETURN, {})

    @property
    def last_step(self) -> int:
        return max(self.returns, default=0)

    @property
    def score(self) -> float:
        return final_score(list(self.returns), list(self.returns.values()))

    @property
    def seconds(self) -> float | None:
        """Of training, over all resumes."""
        return max(self.evaluations.get(CLOCK, {}).values(), default=None)

    def series(self, column: str) -> Series:
        """A column of metrics.csv or, failing that, of evaluations.csv."""
        return self.metrics.get(column) or self.evaluations.get(column, {})

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys((*self.evaluations, *self.metrics)))


@dataclass
class Group:
    """The runs of one label on one task: they differ in their seed only."""

    env: str
    label: str
    runs: list[Run] = field(default_factory=list)

    @property
    def agent_name(self) -> str:
        return self.runs[0].agent_name

    @property
    def counted(self) -> list[Run]:
        """The finished runs: a score half way would be compared with scores at the end."""
        return [run for run in self.runs if run.finished and run.returns]

    @property
    def drawn(self) -> list[Run]:
        """The finished runs, or all while there is none."""
        return self.counted or [run for run in self.runs if run.returns or run.metrics]

    @property
    def scores(self) -> Scores:
        return np.array([run.score for run in self.counted], np.float64)

    def curve(self, column: str = RETURN) -> Curve | None:
        """A column over the steps that all drawn seeds have; None where there is no such step."""
        return common_curve([s for s in (run.series(column) for run in self.drawn) if s])

    def hours(self, steps: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Of training at these steps, mean over the drawn seeds; None where nobody noted them."""
        clocks = [run.evaluations.get(CLOCK, {}) for run in self.drawn]
        if not clocks or not all(clocks):
            return None
        read = [np.interp(steps, [0, *clock], [0.0, *clock.values()]) for clock in clocks]
        hours: NDArray[np.float64] = np.mean(read, axis=0) / 3600
        return hours


@dataclass
class Results:
    """All runs below some folders: groups by task, then by label; and what a reader must know."""

    folder: Path  # that holds all of them
    groups: dict[str, dict[str, Group]]
    notes: list[str]

    @property
    def runs(self) -> list[Run]:
        return [run for group in self.all_groups() for run in group.runs]

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(group.label for group in self.all_groups()))

    def all_groups(self) -> Iterator[Group]:
        for groups in self.groups.values():
            yield from groups.values()

    def agents(self, names: Iterable[str]) -> dict[str, list[Group]]:
        """{agent's name: its groups}, for the names that are there."""
        found = {name: [g for g in self.all_groups() if g.agent_name == name] for name in names}
        return {name: groups for name, groups in found.items() if groups}


def read_results(*paths: Path) -> Results:
    """Every run folder at or below these, and files as `exchange` has them.

    A damaged folder is passed over with a note.
    """
    notes: list[str] = []
    root = Path(os.path.commonpath([path.absolute() for path in paths]))
    files = [path for path in paths if path.suffix == ".csv" and not path.is_dir()]
    folders = [path for path in paths if path not in files]
    found = {run.folder: run for folder in folders for run in _runs(folder, root, notes)}
    known = sorted({run.env for run in found.values()})
    exchanged = [_of_record(path, record) for path in files for record in read(path, known)]
    runs = _once_each([*found.values(), *exchanged], root, notes)
    groups: dict[str, dict[str, Group]] = {}
    for env, members in _by_env(sorted(runs, key=_place)).items():
        for run, label in zip(
            members, distinct_labels([run.config for run in members]), strict=True
        ):
            group = groups.setdefault(env, {}).setdefault(label, Group(env, label))
            group.runs.append(run)
    return Results(root, groups, list(dict.fromkeys(notes)) + _unfinished(groups))


def _of_record(path: Path, record: Record) -> Run:
    evaluations = {RETURN: record.returns}
    return Run(path, record.config(), record.name, evaluations, metrics={}, finished=True)


def _runs(folder: Path, root: Path, notes: list[str]) -> list[Run]:
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    runs, passed = [], []
    found = (path for path in files_below(folder.absolute()) if path.name == "config.json")
    for path in sorted(found):
        try:
            runs.append(read_run(path.parent))
        except (UserError, OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            passed.append(f"passed over {_name(path.parent, root)}: {_reason(error)}")
    if not runs:
        raise UserError(f"{folder} holds no run folder that can be read{_first(passed)}")
    notes += passed
    return runs


def read_run(folder: Path) -> Run:
    config = read_config(folder)
    if not isinstance(config["agent"], dict):
        raise UserError("config.json does not describe an agent")
    evaluations = _columns(folder / "evaluations.csv")
    return Run(
        folder=folder,
        config=config,
        label=label_of(config),
        evaluations=evaluations,
        metrics=_columns(folder / "metrics.csv"),
        finished=_ended(config, evaluations.get(RETURN, {})) or (folder / "done.json").is_file(),
    )


def _ended(config: dict[str, Any], returns: Series) -> bool:
    """Whether the run took all its steps, or returned what it was to stop at."""
    last, steps, enough = max(returns, default=0), config.get("steps"), config.get("stop_return")
    if not isinstance(steps, int) or last >= steps:
        return True
    return isinstance(enough, int | float) and returns.get(last, -math.inf) >= enough


def _columns(path: Path) -> dict[str, Series]:
    """{column: {step: number}}; empty cells and what is not finite are left out."""
    columns: dict[str, Series] = {}
    for row in read_table(path):
        step = int(row["step"])
        for name, text in row.items():
            value = float(text) if text else math.nan
            if name != "step" and math.isfinite(value):
                columns.setdefault(name, {})[step] = value
    return columns


def _name(path: Path, root: Path) -> str:
    inside = path.relative_to(root)
    return path.name if inside == Path() else str(inside)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, UserError) else f"its files are damaged ({error})"


def _first(notes: Sequence[str]) -> str:
    return f" ({notes[0]})" if notes else ""


def _by_env(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Tasks in the paper's order, then the others by name."""
    from adac.envs import SUITE

    known = {task.id: number for number, task in enumerate(SUITE)}
    names = sorted({run.env for run in runs}, key=lambda env: (known.get(env, len(known)), env))
    return {env: [run for run in runs if run.env == env] for env in names}


def _place(run: Run) -> tuple[Any, ...]:
    """ADAC first, then its baselines in the order of Table 2; variants by name, K = 8 before 16."""
    known = ("adac-td3", "adac-ddpg", "paper-adac", "td3", "ddpg", "sac", "ppo")
    starts = [i for i, name in enumerate(known) if run.agent_name.startswith(name)]
    place = (starts[0], len(run.agent_name)) if starts else (len(known), 0)
    return (*place, run.label != "reference", _natural(run.label), _natural(run.seed))


def _natural(text: str) -> list[tuple[float, str]]:
    """Numbers in a name are compared as numbers."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if i % 2 else (-1.0, part) for i, part in enumerate(parts)]


def _once_each(runs: Sequence[Run], root: Path, notes: list[str]) -> list[Run]:
    """The same settings and seed give the same bits: a second copy is not a second seed."""
    kept = []
    for first, *copies in same_runs([run.config for run in runs]):
        kept.append(max((runs[place] for place in (first, *copies)), key=lambda r: r.last_step))
        for copy in copies:
            pair = f"{_name(runs[first].folder, root)} and {_name(runs[copy].folder, root)}"
            notes.append(f"{pair} are the same agent, task and seed: counted once")
    return kept


def _unfinished(groups: dict[str, dict[str, Group]]) -> list[str]:
    notes = []
    for env, row in groups.items():
        open_runs = [run for group in row.values() for run in group.runs if not run.finished]
        if open_runs:
            count, total = len(open_runs), sum(len(group.runs) for group in row.values())
            notes.append(f"{env}: {count} of {total} runs are unfinished and have no score yet")
        lengths = {run.last_step for group in row.values() for run in group.counted}
        if len(lengths) > 1:
            low, high = min(lengths), max(lengths)
            notes.append(f"{env}: runs of different length are compared, {low:,} to {high:,} steps")
    return notes


def evenly_spread(steps: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most `most` positions, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(np.int64))
