"""What a person sees while a run goes on."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text


class Display(Protocol):
    """What a person sees while a run goes on."""

    def update(self, step: int, last_return: float | None) -> None: ...

    def say(self, text: str) -> None: ...


class Silent:
    def update(self, step: int, last_return: float | None) -> None:
        pass

    def say(self, text: str) -> None:
        pass


class Pace:
    """Steps per second over the last half minute or so, and the time left."""

    def __init__(self, step: int, total: int):
        self.total = total
        self._marks = [(time.monotonic(), step)]

    def mark(self, step: int) -> None:
        self._marks.append((time.monotonic(), step))
        while len(self._marks) > 2 and self._marks[-1][0] - self._marks[1][0] > 30.0:
            self._marks.pop(0)

    @property
    def rate(self) -> float:
        (start, first), (end, last) = self._marks[0], self._marks[-1]
        return (last - first) / max(end - start, 1e-9)

    def left(self) -> str:
        if self.rate <= 0:
            return "–"
        return duration((self.total - self._marks[-1][1]) / self.rate)


def duration(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


class Lines:
    """Without a terminal: a line now and then, at most one each ten seconds."""

    def __init__(self, step: int, total: int, every: float = 10.0):
        self.pace, self.total, self._every = Pace(step, total), total, every
        self._last = time.monotonic()

    def update(self, step: int, last_return: float | None) -> None:
        now = time.monotonic()
        if now - self._last < self._every and step < self.total:
            return
        self._last = now
        self.pace.mark(step)
        shown = "–" if last_return is None else f"{last_return:.1f}"
        self.say(
            f"step {step:,}/{self.total:,}  {self.pace.rate:.0f} steps/s  "
            f"{self.pace.left()} left  return {shown}"
        )

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Numbers(ProgressColumn):
    def __init__(self, pace: Pace):
        super().__init__()
        self.pace = pace

    def render(self, task: Task) -> Text:
        last = task.fields["last_return"]
        shown = "–" if last is None else f"{last:.1f}"
        return Text(
            f"{int(task.completed):,}/{int(task.total or 0):,}  {self.pace.rate:.0f} steps/s  "
            f"{self.pace.left()} left  return {shown}",
            no_wrap=True,
        )


class Bar:
    """On a terminal: one line with step, steps/s, time left and the last return."""

    def __init__(self, progress: Progress, pace: Pace, step: int, total: int):
        self._progress, self.pace = progress, pace
        self._task = progress.add_task("training", total=total, completed=step, last_return=None)
        self._last, self._total = 0.0, total

    def update(self, step: int, last_return: float | None) -> None:
        now = time.monotonic()
        if now - self._last < 0.2 and step < self._total:
            return
        self._last = now
        self.pace.mark(step)
        self._progress.update(self._task, completed=step, last_return=last_return)

    def say(self, text: str) -> None:
        self._progress.console.print(text, highlight=False)


@contextlib.contextmanager
def display(step: int, total: int, *, wanted: bool) -> Iterator[Display]:
    """A bar on a terminal, lines elsewhere, nothing if not wanted."""
    console = Console(stderr=True)
    if not wanted:
        yield Silent()
    elif not console.is_terminal:
        yield Lines(step, total)
    else:
        pace = Pace(step, total)
        columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=14), _Numbers(pace))
        with Progress(*columns, console=console, refresh_per_second=4) as progress:
            yield Bar(progress, pace, step, total)
