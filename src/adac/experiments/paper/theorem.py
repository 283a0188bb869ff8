"""`adac reproduce theorem`: Theorem 1 on random tabular MDPs, counted, drawn and contradicted.

Expectations are taken per step, that is (1 − γ) A f, so that MDPs of different γ can share an axis.
"""

import csv
import itertools
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from adac.errors import UserError
from adac.experiments.analysis.drawing import new_figure
from adac.experiments.paper import theory
from adac.experiments.paper.theorem_cases import (
    BONUSES,
    ESTIMATES,
    Counterexample,
    draw_cases,
    smallest,
)
from adac.experiments.paper.theory import Array, Case, Mask, Sides, Terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHAPES = tuple(itertools.product(range(2, 9), range(2, 6)))  # (states, actions), smallest first
STARTS = ("pair", "state", "mean")  # worst (s, a); worst s, own first action; s drawn uniformly


class Statement(NamedTuple):
    """One line of the report and one panel of the figure."""

    key: str
    title: str
    formula: str
    sides: Callable[[Terms], Sides]
    printed: bool = False


FAILS, HOLDS = "#D55E00", "#0072B2"  # Okabe and Ito: told apart by every eye
GAIN_MU, GAIN_PI = r"E_\mu D", r"E_\pi D"
STATEMENTS = (
    Statement(
        "first_printed",
        "First (stability), printed",
        rf"${GAIN_PI} \geq {GAIN_MU} + E_\pi R - E_\mu R$",
        theory.first_printed,
        printed=True,
    ),
    Statement(
        "first_reversed",
        "First, the other way round",
        rf"${GAIN_MU} \geq {GAIN_PI} - (E_\pi R - E_\mu R)$",
        theory.first_reversed,
    ),
    Statement(
        "second_printed",
        "Second (effectiveness), printed",
        rf"${GAIN_MU} \geq {GAIN_PI} - E_\pi R_{{in}}$",
        theory.second_printed,
        printed=True,
    ),
    Statement(
        "second_corrected",
        "Second, corrected",
        rf"${GAIN_MU} \geq {GAIN_PI} - (E_\mu R_{{in}} - E_\pi R_{{in}})$",
        theory.second_corrected,
    ),
    Statement(
        "return_bound",
        "What exploring costs in return",
        r"$E_\mu R \geq E_\pi R - (E_\mu R_{in} - E_\pi R_{in})$",
        theory.return_bound,
    ),
)


@dataclass(frozen=True)
class Study:
    """One entry per MDP, smallest shapes first."""

    states: np.ndarray
    actions: np.ndarray
    discount: np.ndarray
    estimate: np.ndarray  # index into ESTIMATES
    bonus: np.ndarray  # index into BONUSES
    slack: dict[tuple[str, str], Array]  # (statement, start) → left − right per step
    violated: dict[tuple[str, str], Mask]
    identity_error: Array  # largest |left − right| over start pairs, per step
    smallest: dict[str, Counterexample | None]  # printed statement → its smallest contradiction


# The study.


def measure(case: Case) -> tuple[dict[tuple[str, str], Array], dict[tuple[str, str], Mask]]:
    """Left − right per step, and whether it fails, for every statement and kind of start."""
    pairs, states = theory.terms(case), theory.terms_from_states(case)
    mean = Terms(*(x.mean(-1, keepdims=True) for x in states))
    slack: dict[tuple[str, str], Array] = {}
    violated: dict[tuple[str, str], Mask] = {}
    for statement in STATEMENTS:
        for start, t in zip(STARTS, (pairs, states, mean), strict=True):
            sides, axes = statement.sides(t), tuple(range(1, t.gain_pi.ndim))
            slack[statement.key, start] = (1 - case.mdp.discount) * sides.slack.min(axes)
            violated[statement.key, start] = np.asarray(sides.violated.any(axes))
    return slack, violated


def study(mdps: int, seed: int) -> Study:
    """Draw, measure and search; the shapes share the MDPs evenly, each with its own stream."""
    if mdps < 1:
        raise UserError(f"the number of MDPs must be at least 1, not {mdps}")
    if seed < 0:
        raise UserError(f"the seed must not be negative, but is {seed}")
    printed = [s for s in STATEMENTS if s.printed]
    found: dict[str, Counterexample | None] = {s.key: None for s in printed}
    parts: list[tuple[np.ndarray, ...]] = []
    slacks, violations = [], []
    for i, (shape, stream) in enumerate(
        zip(SHAPES, np.random.SeedSequence(seed).spawn(len(SHAPES)), strict=True)
    ):
        count = mdps // len(SHAPES) + (i < mdps % len(SHAPES))
        if count == 0:
            break
        case, estimate, bonus = draw_cases(np.random.default_rng(stream), *shape, count)
        slack, violated = measure(case)
        slacks.append(slack)
        violations.append(violated)
        error = np.abs(theory.identity(theory.terms(case)).slack).max((-1, -2))
        size = (np.full(count, shape[0]), np.full(count, shape[1]))
        scale = 1 - case.mdp.discount
        parts.append((*size, case.mdp.discount, estimate, bonus, scale * error))
        for statement in printed:
            found[statement.key] = found[statement.key] or smallest(case, statement.sides)
    states, actions, discount, estimates, bonuses, errors = map(
        np.concatenate, zip(*parts, strict=True)
    )
    return Study(
        states=states,
        actions=actions,
        discount=discount,
        estimate=estimates,
        bonus=bonuses,
        slack={key: np.concatenate([s[key] for s in slacks]) for key in slacks[0]},
        violated={key: np.concatenate([v[key] for v in violations]) for key in violations[0]},
        identity_error=errors,
        smallest=found,
    )


# Writing.


def write_csv(result: Study, path: pathlib.Path) -> None:
    """One row per MDP."""
    keys = list(result.slack)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        head = ["states", "actions", "discount", "estimate", "bonus", "identity_error"]
        out.writerow(head + [f"{statement}_{start}" for statement, start in keys])
        for i in range(len(result.states)):
            kinds = [ESTIMATES[result.estimate[i]], BONUSES[result.bonus[i]]]
            numbers = [result.identity_error[i], *(result.slack[key][i] for key in keys)]
            size = [result.states[i], result.actions[i], f"{result.discount[i]:.4f}"]
            out.writerow(size + kinds + [f"{x:.6g}" for x in numbers])


def counts_table(result: Study) -> Table:
    """Violations of every statement, by kind of start."""
    total = len(result.states)
    table = Table(
        title=f"Theorem 1 on {total:,} random MDPs: in how many it fails",
        caption="Start: some pair (s, a); some state, each policy with its own first action; "
        "a state drawn uniformly, likewise.",
    )
    table.add_column("statement", no_wrap=True)
    for column in ("some pair", "some state", "mean state"):
        table.add_column(column, justify="right")
    for s in STATEMENTS:
        shares = [result.violated[s.key, start].sum() for start in STARTS]
        style = "bold" if s.printed else ""
        table.add_row(s.title, *(f"{n:,} ({n / total:.0%})" for n in shares), style=style)
    table.add_row("Identity, largest error", f"{result.identity_error.max():.1e}", "", "")
    return table


def kinds_table(result: Study, statement: Statement) -> Table:
    """Where one statement fails, by what is estimated and what is rewarded."""
    table = Table(title=f"{statement.title}: share that fails")
    table.add_column("Q")
    for name in BONUSES:
        table.add_column(f"bonus {name}", justify="right")
    failed = result.violated[statement.key, "pair"]
    for i, name in enumerate(ESTIMATES):
        cells = [failed[(result.estimate == i) & (result.bonus == j)] for j in range(len(BONUSES))]
        table.add_row(name, *(f"{c.mean():.1%}" if len(c) else "-" for c in cells))
    return table


def number(value: float) -> str:
    """Short and exact enough to retype."""
    return f"{value:.6g}"


def example_table(example: Counterexample, statement: Statement) -> Table:
    """A counter-example in full: enough to redo it by hand."""
    case, (state, action) = example.case, example.start
    pi, mu = (p.argmax(-1) for p in (theory.target_policy(case), theory.behaviour_policy(case)))
    table = Table(
        title=f"{statement.title}: smallest counter-example found",
        caption=f"γ = {number(float(case.mdp.discount))}; from state {state}, action {action}: "
        f"left {number(example.left)} < right {number(example.right)}",
    )
    for column in ("state", "action", "P(next state)", "R", "bonus", "Q", "taken by"):
        table.add_column(column, justify="left" if column == "taken by" else "right")
    for s, a in np.ndindex(case.bonus.shape):
        row = " ".join(number(float(p)) for p in case.mdp.transition[s, a])
        values = [number(float(x[s, a])) for x in (case.mdp.reward, case.bonus, case.estimate)]
        takers = " ".join(name for name, policy in (("π", pi), ("μ", mu)) if policy[s] == a)
        table.add_row(str(s), str(a), row, *values, takers)
    return table


def report(result: Study, console: Console) -> None:
    """All of it, to be read in a terminal."""
    console.print(counts_table(result))
    for statement in STATEMENTS:
        if not statement.printed:
            continue
        console.print(kinds_table(result, statement))
        example = result.smallest[statement.key]
        if example is None:
            console.print(f"{statement.title}: no counter-example found.")
        else:
            console.print(example_table(example, statement))


# Drawing.


def panel(axes: "Axes", result: Study, statement: Statement) -> None:
    """Left − right over the MDPs: what fails in orange, what holds in blue, counts in words."""
    slack = result.slack[statement.key, "pair"]
    violated = result.violated[statement.key, "pair"]
    edge = float(np.quantile(np.abs(slack), 0.995)) or 1.0
    # Zero is an edge between two bins: no bar mixes the two signs.
    bins = np.linspace(-edge, edge, 61).tolist()
    groups = [np.clip(slack[violated], -edge, -1e-12), np.clip(slack[~violated], 0, edge)]
    axes.hist(groups, bins=bins, stacked=True, color=[FAILS, HOLDS])
    axes.axvspan(-1.05 * edge, 0, color=FAILS, alpha=0.07, linewidth=0)
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlim(-1.05 * edge, 1.05 * edge)
    axes.set_title(f"{statement.title}\n{statement.formula}", fontsize=12)
    axes.set_xlabel("left − right per step, worst start")
    failed, total = int(violated.sum()), len(violated)
    holds, equal = total - failed, int((slack[~violated] <= 1e-9).sum())
    ties = "all with equality" if equal == holds else f"{equal:,} with equality"
    note(axes, 0.03, "left", f"fails in {failed:,}\n({failed / total:.1%})", FAILS)
    note(axes, 0.97, "right", f"holds in {holds:,}\n{ties}", HOLDS)


def identity_panel(axes: "Axes", result: Study) -> None:
    """The identity's error, on the scale of rounding."""
    error = np.log10(np.maximum(result.identity_error, 1e-18))
    axes.hist(error, bins=np.linspace(-18, -8, 41).tolist(), color=HOLDS)
    axes.set_title(
        "Why: the identity\n"
        rf"${GAIN_PI} = {GAIN_MU} + E_\pi R - E_\mu R - \gamma A_\mu (P^\pi - P^\mu) Q$",
        fontsize=12,
    )
    axes.set_xlabel("log₁₀ |left − right| per step, worst start")
    text = f"largest error {result.identity_error.max():.0e}\n(rounding; exact in real numbers)"
    note(axes, 0.97, "right", text, HOLDS)


def note(axes: "Axes", x: float, side: str, text: str, color: str) -> None:
    """A count in the panel's upper corner."""
    axes.text(x, 0.96, text, transform=axes.transAxes, ha=side, va="top", color=color, fontsize=10)


def draw(result: Study, path: pathlib.Path) -> None:
    """Six panels: the printed statements first, then what holds."""
    figure = new_figure(15, 9)
    grid = figure.subplots(2, 3)
    for axes, statement in zip(grid.flat[[0, 1, 3, 4, 5]], STATEMENTS, strict=True):
        panel(axes, result, statement)
    identity_panel(grid[0, 2], result)
    for axes in grid.flat:
        axes.set_yscale("log")
        axes.set_ylim(0.7, 6 * len(result.states))  # room for the counts above the bars
        axes.spines[["top", "right"]].set_visible(False)
    for row in grid:
        row[0].set_ylabel("MDPs")
    figure.suptitle(
        f"Theorem 1 on {len(result.states):,} random MDPs of 2 to 8 states and 2 to 5 actions: "
        "orange contradicts the statement",
        fontsize=15,
    )
    figure.supxlabel(
        r"$D = T^{max} Q - Q$; $E_\pi$ and $E_\mu$: discounted sums along each policy; "
        r"$R_{in}$: the bonus. The outermost bars hold all that lies beyond.",
        fontsize=11,
    )
    figure.savefig(path, dpi=110)


def run(mdps: int, seed: int, out: pathlib.Path) -> None:
    """Study, print, and write theorem.csv and theorem.png into `out`."""
    new_figure(1, 1)  # a missing extra is said before minutes of computing
    result = study(mdps, seed)
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    report(result, console)
    write_csv(result, out / "theorem.csv")
    console.print(f"Wrote {out / 'theorem.csv'}")
    draw(result, out / "theorem.png")
    console.print(f"Wrote {out / 'theorem.png'}")
