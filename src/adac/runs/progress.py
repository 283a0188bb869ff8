"""What a person sees while a run goes on."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

COMPILING = "compiling"
NOT_LEARNING = "random steps"  # before the first update: their speed says nothing about the rest
TRAINING = "training"
WARMUP = "warm-up"  # random actions that are learned from
EVALUATING = "evaluating"
ENDED = "ended"


class Display(Protocol):
    """What a person sees while a run goes on."""

    def phase(self, name: str) -> None: ...

    def update(self, step: int, last_return: float | None) -> None: ...

    def say(self, text: str) -> None: ...


class Silent:
    def phase(self, name: str) -> None:
        pass

    def update(self, step: int, last_return: float | None) -> None:
        pass

    def say(self, text: str) -> None:
        pass


class Pace:
    """Steps per second over the last half minute or so, and the time left."""

    def __init__(self, step: int, total: int):
        self.total, self.phase = total, TRAINING
        self.begun = self.since = time.monotonic()  # of the run, of the phase
        self._marks = [(self.since, step)]

    def begin(self, phase: str) -> None:
        """Compilation, and steps without updates, are no measure of those that follow."""
        if phase == self.phase:
            return
        now = time.monotonic()
        if self.phase in (COMPILING, NOT_LEARNING):
            self._marks = [(now, self._marks[-1][1])]
        self.phase, self.since = phase, now

    def mark(self, step: int) -> None:
        self._marks.append((time.monotonic(), step))
        while len(self._marks) > 2 and self._marks[-1][0] - self._marks[1][0] > 30.0:
            self._marks.pop(0)

    @property
    def step(self) -> int:
        return self._marks[-1][1]

    @property
    def rate(self) -> float:
        (start, first), (end, last) = self._marks[0], self._marks[-1]
        return (last - first) / max(end - start, 1e-9)

    def left(self) -> str:
        if self.rate <= 0 or self.phase in (COMPILING, NOT_LEARNING):
            return "–"
        return duration((self.total - self.step) / self.rate)


def duration(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


class Lines:
    """Without a terminal: a line now and then, at most one each ten seconds."""

    def __init__(self, step: int, total: int, every: float = 10.0):
        self.pace, self.total, self._every = Pace(step, total), total, every
        self._last = time.monotonic()

    def phase(self, name: str) -> None:
        self.pace.begin(name)

    def update(self, step: int, last_return: float | None) -> None:
        now = time.monotonic()
        if now - self._last < self._every and step < self.total:
            return
        self._last = now
        self.pace.mark(step)
        self.say(f"step {numbers(self.pace, last_return)[0]}")

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def numbers(pace: Pace, last_return: float | None) -> tuple[str, ...]:
    """Step, speed, time left and the return of μ's last episode: in many words, then in few."""
    place, rate, left = f"{pace.step:,}/{pace.total:,}", f"{pace.rate:,.0f}", pace.left()
    share = f"{pace.step / max(pace.total, 1):.0%}"
    shown = "–" if last_return is None else f"{last_return:,.{int(abs(last_return) < 1_000)}f}"
    return (
        f"{place}  {rate} steps/s  {left} left  last exploring episode {shown}",
        f"{place}  {rate} steps/s  {left} left  exploring {shown}",
        f"{place}  {rate}/s  {left} left  exploring {shown}",
        f"{share}  {rate}/s  {left} left  exploring {shown}",
        f"{share}  {left} left  exploring {shown}",
    )


class _Line(ProgressColumn):
    """Phase, bar and numbers, in as many words as the terminal has room for."""

    BARS = (14, 8)

    def __init__(self, pace: Pace, console: Console):
        super().__init__()
        self.pace, self.console = pace, console

    def render(self, task: Task) -> RenderableType:
        phase, pace = self.pace.phase, self.pace
        choices = numbers(pace, task.fields["last_return"])
        if phase in (COMPILING, EVALUATING):  # nothing moves: show that time does
            place = f"{pace.step:,}/{pace.total:,}"
            choices = (f"{place}  for {duration(time.monotonic() - pace.since)}",)
        if phase == ENDED:
            choices = (f"{pace.step:,}/{pace.total:,}  in {duration(pace.since - pace.begun)}",)
        room = self.console.width - 1
        # A bar is worth more than the longer of two wordings, and less than the numbers.
        texts = [
            (bar, text)
            for words in (choices[:2], choices[2:])
            for bars in (self.BARS, (0,))
            for text in words
            for bar in bars
        ]
        taken = len(phase) + 2
        fitting = (
            (bar, text) for bar, text in texts if taken + bar + 2 * bool(bar) + len(text) <= room
        )
        bar, text = next(fitting, texts[-1])
        row = Table.grid(padding=(0, 2, 0, 0))
        bars = [ProgressBar(pace.total, pace.step, width=bar)] if bar else []
        row.add_row(Text(phase, "bold"), *bars, Text(text, no_wrap=True, overflow="ellipsis"))
        return row


class Bar:
    """On a terminal: one line with step, steps/s, time left and the last return."""

    def __init__(self, progress: Progress, pace: Pace):
        self._progress, self.pace = progress, pace
        self._task = progress.add_task("", total=pace.total, last_return=None)
        self._last = 0.0

    def phase(self, name: str) -> None:
        self.pace.begin(name)

    def update(self, step: int, last_return: float | None) -> None:
        now = time.monotonic()
        if now - self._last < 0.2 and step < self.pace.total:
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
        with Progress(_Line(pace, console), console=console, refresh_per_second=4) as progress:
            yield Bar(progress, pace)
            pace.begin(ENDED)
