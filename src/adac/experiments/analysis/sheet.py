"""A figure in the making: what is drawn is noted, so that its CSV holds exactly that."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adac.errors import UserError
from adac.experiments.analysis import published, statistics
from adac.experiments.analysis.curves import Curve, limits
from adac.experiments.analysis.drawing import Style, line, rivals, shade, threads
from adac.experiments.analysis.results import RETURN, Group, Results, Run
from adac.experiments.analysis.snapshots import GRID, Snapshot, density, state_name

RODS = 14  # times of an episode that are drawn
COLUMNS = ("panel", "task", "label", "seeds", "x", "mean", "std")


@dataclass(frozen=True)
class Look:
    """How curves are drawn."""

    smooth: int = 0  # points on either side of a running mean
    seeds: bool = False  # a thin line for each instead of a band
    hours: bool = False  # of training instead of steps
    published: bool = True  # returns of others, as grey marks where a task has some

    def __post_init__(self) -> None:
        if self.smooth < 0:
            raise UserError(f"smooth is a number of points, not {self.smooth}")


@dataclass
class Sheet:
    """A figure in the making, and the rows of its CSV."""

    results: Results
    styles: dict[str, Style]
    look: Look = Look()
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def curves(
        self, axis: Any, panel: str, groups: Iterable[Group], column: str = RETURN
    ) -> list[Group]:
        """Draw the groups' lines into one panel and note them; returns those without numbers."""
        found, without = {}, []
        for group in groups:
            curve = self._curve(group, column)
            if curve is None:
                without.append(group)
            else:
                found[group.label] = (group, curve.smoothed(self.look.smooth))
        for label, (group, curve) in found.items():
            line(axis, curve, label, self.styles[label])
            self._note(panel, group, curve)
        for label, (_, curve) in found.items():
            if self.look.seeds:
                threads(axis, curve, self.styles[label])
            else:
                shade(axis, curve, limits(c for _, c in found.values()), self.styles[label])
        return without

    def rivals(self, axis: Any, env: str) -> None:
        """Returns that others have published on this task, as far as our own lines go."""
        groups = self.results.groups[env].values()
        last = max(
            (step for group in groups for run in group.drawn for step in run.returns), default=0
        )
        found = published.tracks(env, last) if self.look.published else {}
        if not found:
            return
        seeds = [one.seeds for points in found.values() for _, one in points]
        rivals(
            axis,
            [(name, [(step, one.mean) for step, one in points]) for name, points in found.items()],
            f"means of {min(seeds)} to {max(seeds)} seeds",
        )
        for name, points in found.items():
            for step, (mean, std, count) in points:
                self.rows.append(("published", env, name, count, step, f"{mean:g}", f"{std:g}"))

    def _curve(self, group: Group, column: str) -> Curve | None:
        curve = group.curve(column)
        if curve is None or not self.look.hours:
            return curve
        hours = group.hours(curve.steps)
        return None if hours is None else curve._replace(hours=hours)

    def _note(self, panel: str, group: Group, curve: Curve) -> None:
        mean, std = curve.mean, curve.std
        for i, step in enumerate(curve.x):
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

    def rods(self, axis: Any, run: Run, step: int, angles: Sequence[float]) -> None:
        """A pendulum at even times of one episode, from left to right."""
        times = [round(i * (len(angles) - 1) / (RODS - 1)) for i in range(RODS)]
        colour, panel = self.styles[run.label]["color"], f"rollout at {step}"
        for place, time in enumerate(times):
            tip = place + 0.9 * math.sin(angles[time]), 0.9 * math.cos(angles[time])
            axis.plot([place, tip[0]], [0, tip[1]], color=colour, lw=2, solid_capstyle="round")
            axis.plot([place], [0], "o", color="0.35", ms=2.5)
            self.rows.append((panel, run.env, run.label, 1, time, f"{angles[time]:.3f}", ""))
        axis.set(xlim=(-1.2, RODS + 0.2), ylim=(-1.2, 1.2), aspect="equal")
        axis.axis("off")

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
