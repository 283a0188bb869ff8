"""What a person sees while a sweep runs: a live table on a terminal, lines elsewhere."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from adac.experiments.sweeps.trials import Trial
from adac.runs.progress import duration

Status = Literal["waiting", "running", "done", "failed"]


@dataclass
class Row:
    """How far one trial is."""

    trial: Trial
    status: Status = "waiting"
    attempts: int = 0
    step: int = 0
    value: float | None = None  # the last return
    reason: str = ""  # of the last failure
    seconds: float = 0.0  # spent on `steps_here` steps in this sweep
    steps_here: int = 0
    _seen: float | None = None  # when its process last reported; None: not yet

    def start(self, step: int) -> None:
        self.status, self.attempts = "running", self.attempts + 1
        self.step, self._seen = step, None

    def progress(self, step: int, value: float | None) -> None:
        now = time.monotonic()
        if self._seen is not None:
            self.seconds += now - self._seen
            self.steps_here += step - self.step
        self.step, self.value, self._seen = step, value, now

    @property
    def state(self) -> str:
        """In the step's column: a process takes some seconds to start and compile."""
        if self._seen is None:
            return "starting again" if self.attempts > 1 else "starting"
        return f"{self.step:,}/{self.trial.steps:,}"

    @property
    def rate(self) -> float | None:
        return self.steps_here / self.seconds if self.steps_here > 0 and self.seconds else None

    @property
    def left(self) -> int:
        return 0 if self.status in ("done", "failed") else self.trial.steps - self.step


def count(rows: Sequence[Row], status: Status) -> int:
    return sum(row.status == status for row in rows)


def seconds_left(rows: Sequence[Row], slots: int) -> float | None:
    """Each kind of trial at the speed that it was seen to have, others at the mean speed."""
    seen: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.rate is not None:
            seen.setdefault((row.trial.task, row.trial.label), []).append(row.rate)
    if not seen:
        return None
    means = {kind: sum(rates) / len(rates) for kind, rates in seen.items()}
    other = sum(means.values()) / len(means)
    alone = [row.left / means.get((row.trial.task, row.trial.label), other) for row in rows]
    busy = max(min(slots, sum(seconds > 0 for seconds in alone)), 1)
    return max(sum(alone) / busy, max(alone, default=0.0))


def summary(rows: Sequence[Row], slots: int) -> str:
    left = seconds_left(rows, slots)
    failed = count(rows, "failed")
    parts = [
        f"{count(rows, 'done')}/{len(rows)} done",
        f"{count(rows, 'running')} running",
        f"{count(rows, 'waiting')} waiting",
        *([f"{failed} failed"] if failed else []),
        f"{'–' if left is None else duration(left)} left",
    ]
    return ", ".join(parts)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


class Board(Protocol):
    def say(self, text: str, style: str = "") -> None: ...

    def show(self, rows: Sequence[Row], slots: int) -> None: ...


class Lines:
    """A line for each event, and how far it is every `every` seconds."""

    def __init__(self, every: float = 60.0):
        self._every, self._last = every, time.monotonic()

    def say(self, text: str, style: str = "") -> None:
        print(text, file=sys.stderr, flush=True)

    def show(self, rows: Sequence[Row], slots: int) -> None:
        if time.monotonic() - self._last < self._every:
            return
        self._last = time.monotonic()
        running = [
            f"  {row.trial.id}: {row.state}, return {number(row.value)}"
            for row in rows
            if row.status == "running"
        ]
        self.say("\n".join([summary(rows, slots), *running]))


class Screen:
    """The live table: running trials, then failures, then the whole in one line."""

    def __init__(self, name: str, live: Live):
        self._name, self._live = name, live
        self._started = time.monotonic()

    def say(self, text: str, style: str = "") -> None:
        self._live.console.print(Text(text, style=style, overflow="fold"), highlight=False)

    def show(self, rows: Sequence[Row], slots: int) -> None:
        room = max(self._live.console.height - 8, 3)
        running = [row for row in rows if row.status == "running"]
        parts: list[Table | Text] = [_running_table(running[:room])] if running else []
        if len(running) > room:
            parts.append(Text(f"and {len(running) - room} more running", style="dim"))
        parts += [self._whole(rows, slots)]
        self._live.update(Group(*parts), refresh=True)

    def _whole(self, rows: Sequence[Row], slots: int) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        steps = sum(row.trial.steps for row in rows)
        taken = steps - sum(row.left for row in rows)
        elapsed = duration(time.monotonic() - self._started)
        table.add_row(
            Text(self._name, style="bold"),
            ProgressBar(total=max(steps, 1), completed=taken, width=24),
            Text(f"{summary(rows, slots)}, {elapsed} so far"),
        )
        return table


def _running_table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("task", "agent"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    widths = {"seed": 4, "": 12, "step": 15, "steps/s": 7, "left": 7, "return": 9}
    for name, width in widths.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        rate = row.rate
        table.add_row(
            row.trial.task.rpartition("/")[2],
            row.trial.label,
            str(row.trial.seed),
            ProgressBar(total=row.trial.steps, completed=row.step, width=12),
            row.state,
            "–" if rate is None else f"{rate:.0f}",
            "–" if rate is None else duration(row.left / rate),
            number(row.value),
        )
    return table


@contextlib.contextmanager
def board(name: str) -> Iterator[Board]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield Screen(name, live)
