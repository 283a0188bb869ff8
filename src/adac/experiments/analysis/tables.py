"""The final table: one row a task, one column an agent, Table 2's marks, the paper beside ours."""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adac.experiments.analysis import statistics
from adac.experiments.analysis.results import Group, Results
from adac.experiments.analysis.statistics import Interval, Marks, Moments
from adac.experiments.paper.numbers import TABLE_2, paper_name


@dataclass(frozen=True)
class Cell:
    ours: Moments
    marks: Marks
    iqm: Interval
    paper: tuple[Moments, Marks] | None


@dataclass(frozen=True)
class ScoreTable:
    columns: list[str]  # labels
    rows: dict[str, dict[str, Cell]]  # {task: {label: cell}}
    aggregate: dict[str, Interval]  # {label: IQM of normalised scores over the common tasks}
    pairs: list[tuple[str, str, Interval, float]]  # A, B, P(A > B), and p on a single task
    warnings: list[str]


def build(results: Results) -> ScoreTable:
    rows = {env: _row(groups) for env, groups in results.groups.items()}
    rows = {env: row for env, row in rows.items() if row}
    columns = [label for label in results.labels if any(label in row for row in rows.values())]
    return ScoreTable(
        columns=columns,
        rows=rows,
        aggregate=_aggregate(results, columns),
        pairs=_pairs(results),
        warnings=seed_warnings(results),
    )


def _row(groups: dict[str, Group]) -> dict[str, Cell]:
    scored = {label: group for label, group in groups.items() if len(group.scores)}
    ours = {label: statistics.moments(group.scores) for label, group in scored.items()}
    marks = statistics.marks(ours, {label: g.agent_name for label, g in scored.items()})
    return {
        label: Cell(
            ours[label],
            marks[label],
            statistics.iqm_interval([group.scores]),
            TABLE_2.get(paper_name(group.env), {}).get(group.agent_name),
        )
        for label, group in scored.items()
    }


def _aggregate(results: Results, columns: list[str]) -> dict[str, Interval]:
    """Over the tasks that every column has run; with a single task the row itself says it all."""
    complete = [
        groups
        for groups in results.groups.values()
        if all(label in groups and len(groups[label].scores) for label in columns)
    ]
    if len(complete) < 2 or len(columns) < 2:
        return {}
    normalised = [statistics.normalise({c: row[c].scores for c in columns}) for row in complete]
    return {c: statistics.iqm_interval([task[c] for task in normalised]) for c in columns}


def _pairs(results: Results) -> list[tuple[str, str, Interval, float]]:
    """Probability of improvement of each ADAC over what it is built on, over all common tasks."""
    found = []
    for ours, base in _compared(results):
        common = [
            (row[ours].scores, row[base].scores)
            for row in results.groups.values()
            if ours in row and base in row and len(row[ours].scores) and len(row[base].scores)
        ]
        if common:
            p = _single_p(common)
            found.append((ours, base, statistics.improvement_interval(common), p))
    return found


def _single_p(common: list[tuple[statistics.Scores, statistics.Scores]]) -> float:
    if len(common) != 1:
        return math.nan
    return statistics.welch(*(statistics.moments(side) for side in common[0]))


def _compared(results: Results) -> list[tuple[str, str]]:
    """Every label of an ADAC agent against the base it names, with the same bonus."""
    names = {group.label: group.agent_name for group in results.all_groups()}
    pairs = []
    for label, name in names.items():
        _, adac, base = name.rpartition("adac-")
        base = base.replace("-no-cotraining", "")
        if adac:
            pairs += [(label, other) for other, n in names.items() if n == base]
    return pairs


NEEDS: dict[statistics.Claim, str] = {
    "spread": "a spread or any test",
    "test": "a t-test and marks to rely on",
    "interval": "intervals that cover 95 %",
    "paper": "the paper's tables",
}


def seed_warnings(results: Results) -> list[str]:
    """What the seeds do not carry, task by task; the agent with the fewest decides."""
    by_count: dict[int, list[str]] = {}
    for env, groups in results.groups.items():
        counts = [len(group.scores) for group in groups.values() if len(group.scores)]
        if counts:
            by_count.setdefault(min(counts), []).append(env)
    warnings = []
    for seeds, envs in sorted(by_count.items()):
        missing = [
            f"{text} ({statistics.SEEDS_FOR[claim]})"
            for claim, text in NEEDS.items()
            if not statistics.enough(seeds, claim)
        ]
        if missing:
            count = f"{seeds} seed{'' if seeds == 1 else 's'}"
            warnings.append(f"{_some(envs)}: {count}, too few for {'; for '.join(missing)}")
    return warnings


def _some(envs: list[str]) -> str:
    return ", ".join(envs) if len(envs) <= 3 else f"{len(envs)} tasks"


# Text.


def four_digits(value: float) -> str:
    """Four significant digits, as the paper prints them."""
    if not math.isfinite(value):
        return "–"
    digits = 0 if value == 0 else max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}" if abs(value) >= 1e-3 or value == 0 else f"{value:.1e}"


def with_spread(moments: Moments) -> tuple[str, str]:
    """Mean and deviation to the same place: two digits of the deviation, as far as they count."""
    mean, std = moments.mean, moments.std
    if not (math.isfinite(mean) and math.isfinite(std)) or std <= 0:
        return four_digits(mean), "" if math.isnan(std) else f"{std:g}"
    decimals = min(max(1 - math.floor(math.log10(std)), 0), 4)
    return f"{mean:.{decimals}f}", f"{std:.{decimals}f}"


def as_printed(moments: Moments) -> tuple[str, str]:
    return printed(moments.mean), "" if math.isnan(moments.std) else printed(moments.std)


def printed(value: float) -> str:
    """The paper's numbers are not given digits that it does not have."""
    return f"{value:.6g}"


Form = Callable[[Moments], tuple[str, str]]


def cell_text(moments: Moments, marks: Marks, form: Form = with_spread) -> str:
    mean, std = form(moments)
    text = f"{mean}{marks.signs}"
    return (f"**{text}**" if marks.bold else text) + (f" ± {std}" if std else "")


def markdown(table: ScoreTable, notes: Sequence[str] = ()) -> str:
    """Ours, and under each of our numbers the paper's where it has one."""
    lines = [
        "| task | " + " | ".join(table.columns) + " |",
        "|---|" + "---:|" * len(table.columns),
    ]
    for env, row in table.rows.items():
        ours = [_own(row.get(c)) for c in table.columns]
        lines.append(f"| {env} | " + " | ".join(ours) + " |")
        if any(cell.paper for cell in row.values()):
            paper = [_printed(row.get(c)) for c in table.columns]
            lines.append("| *the paper* | " + " | ".join(paper) + " |")
    if table.aggregate:
        pooled = [_interval(table.aggregate[c]) for c in table.columns]
        lines.append("| IQM, normalised | " + " | ".join(pooled) + " |")
    pairs = [f"- P({a} beats {b}) = {_interval(i)}" for a, b, i, _ in table.pairs]
    said = [f"- {text}" for text in (*notes, *table.warnings)]
    return "\n".join([*lines, "", *pairs, *said]).strip() + "\n"


def _own(cell: Cell | None) -> str:
    return "" if cell is None else f"{cell_text(cell.ours, cell.marks)} (n={cell.ours.seeds})"


def _printed(cell: Cell | None) -> str:
    return "" if cell is None or cell.paper is None else cell_text(*cell.paper, as_printed)


def _interval(interval: Interval) -> str:
    if math.isnan(interval.low):
        return f"{interval.value:.2f} (a single seed: no interval)"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


COLUMNS = (
    "task", "label", "agent", "seeds", "mean", "std", "marks", "iqm", "iqm_low", "iqm_high",
    "paper_mean", "paper_std", "paper_marks",
)  # fmt: skip


def write_csv(table: ScoreTable, results: Results, path: Path) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for env, row in table.rows.items():
            for label, cell in row.items():
                agent = results.groups[env][label].agent_name
                writer.writerow([env, label, agent, *_flat(cell)])


def _flat(cell: Cell) -> list[object]:
    paper = cell.paper
    printed = [paper[0].mean, paper[0].std, signs(paper[1])] if paper else ["", "", ""]
    values = [*cell.ours[:2], *cell.iqm]
    mean, std, *interval = ("" if np.isnan(v) else f"{v:.6g}" for v in values)
    return [cell.ours.seeds, mean, std, signs(cell.marks), *interval, *printed]


def signs(marks: Marks) -> str:
    return ("bold" if marks.bold else "") + marks.signs
