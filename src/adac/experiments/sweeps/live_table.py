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

COMPILES = 10  # first steps of a process, whose time says nothing about the others
WIDE = 100  # columns of a terminal with room for all of the table
NARROW = 60

Status = Literal["waiting", "running", "done", "failed", "pruned"]


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
    _begun: int = 0  # the step at which its process started

    def start(self, step: int) -> None:
        self.status, self.attempts = "running", self.attempts + 1
        self.step, self._begun, self._seen = step, step, None

    def progress(self, step: int, value: float | None) -> None:
        now = time.monotonic()
        if self._seen is not None and step - self._begun >= COMPILES:
            self.seconds += now - self._seen
            self.steps_here += step - self.step
        self.step, self.value, self._seen = step, value, now

    @property
    def reported(self) -> bool:
        return self._seen is not None

    @property
    def state(self) -> str:
        """In the step's column: a process takes some seconds to start and compile."""
        if not self.reported:
            return "starting again" if self.attempts > 1 else "starting"
        return f"{self.step:,}/{self.trial.steps:,}"

    @property
    def rate(self) -> float | None:
        return self.steps_here / self.seconds if self.steps_here > 0 and self.seconds else None

    @property
    def left(self) -> int:
        return 0 if self.status in ("done", "failed", "pruned") else self.trial.steps - self.step


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
    failed, pruned = count(rows, "failed"), count(rows, "pruned")
    parts = [
        f"{count(rows, 'done')}/{len(rows)} done",
        *([f"{pruned} pruned"] if pruned else []),
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
        width = self._live.console.width
        parts: list[Table | Text] = [running_table(running[:room], width)] if running else []
        if len(running) > room:
            parts.append(Text(f"and {len(running) - room} more running", style="dim"))
        parts += [self._whole(rows, slots, width)]
        self._live.update(Group(*parts), refresh=True)

    def _whole(self, rows: Sequence[Row], slots: int, width: int) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        steps = sum(row.trial.steps for row in rows)
        taken = steps - sum(row.left for row in rows)
        elapsed = duration(time.monotonic() - self._started)
        bar = ProgressBar(total=max(steps, 1), completed=taken, width=24)
        table.add_row(
            Text(self._name, style="bold"),
            *([bar] if width >= WIDE else []),
            Text(f"{summary(rows, slots)}, {elapsed} so far"),
        )
        return table


def running_table(rows: Sequence[Row], width: int) -> Table:
    """Names and returns first: a narrow terminal has percent instead of bar, step and speed."""
    wide = {"": 12, "step": 15, "steps/s": 7} if width >= WIDE else {"done": 8}
    timed = {"left": 7} if width >= NARROW else {}
    columns = {"seed": 4, **wide, **timed, "return": 9}
    room = max(width - sum(columns.values()) - 2 * (len(columns) + 1), 12)
    agent = min(max((len(row.trial.label) for row in rows), default=5), room // 2)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name, most in {"task": room - agent, "agent": agent}.items():
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=most)
    for name, least in columns.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=least)
    for row in rows:
        cells = _cells(row)
        table.add_row(
            row.trial.task.rpartition("/")[2], row.trial.label, *(cells[name] for name in columns)
        )
    return table


def _cells(row: Row) -> dict[str, str | ProgressBar]:
    rate = row.rate
    return {
        "seed": str(row.trial.seed),
        "": ProgressBar(total=row.trial.steps, completed=row.step, width=12),
        "step": row.state,
        "done": f"{row.step / row.trial.steps:.0%}" if row.reported else "starting",
        "steps/s": "–" if rate is None else f"{rate:.0f}",
        "left": "–" if rate is None else duration(row.left / rate),
        "return": number(row.value),
    }


@contextlib.contextmanager
def board(name: str) -> Iterator[Board]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield Screen(name, live)
