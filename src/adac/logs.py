"""Where numbers go: CSV files that survive a resume, TensorBoard, Weights & Biases, the screen."""

import contextlib
import csv
import io
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from adac.errors import RunError, missing_extra
from adac.runs import write_whole

EVALUATION_COLUMNS = (
    "step", "mean_return", "std_return", "episodes", "wall_seconds",
    "min_return", "max_return", "mean_length",
)  # fmt: skip

GAP_COLUMNS = ("episode_bonus_gap", "episode_bonus_mu", "episode_bonus_pi")


class Table:
    """A CSV file with fixed columns; rows after `step` are dropped when a run is resumed."""

    def __init__(self, path: Path, columns: Sequence[str], step: int):
        self.path, self.columns = path, list(columns)
        text = io.StringIO(newline="")
        kept = self._writer_to(text)
        kept.writeheader()
        kept.writerows(row for row in read_table(path) if int(row["step"]) <= step)
        try:
            write_whole(path, text.getvalue().encode())  # a kill here must not cost the past
            self._file = open(path, "a", newline="")  # noqa: SIM115 (lives as long as the run)
        except OSError as error:
            raise RunError(f"{path} could not be written: {error.strerror}") from error
        self._writer = self._writer_to(self._file)

    def _writer_to(self, file: TextIO) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self.columns, restval="", extrasaction="ignore")

    def add(self, row: Mapping[str, Any]) -> None:
        try:
            self._writer.writerow(row)
            self._file.flush()
        except OSError as error:
            raise RunError(f"{self.path} could not be written: {error.strerror}") from error

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()


def read_table(path: Path) -> list[dict[str, str]]:
    """The complete rows of a CSV file; a line cut off by a kill is passed over."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        width = len(reader.fieldnames or ())
        return [
            row
            for row in reader
            if len(row) == width and None not in row.values() and row["step"].isdigit()
        ]


class Sink(Protocol):
    def write(self, values: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    def __init__(self, folder: Path):
        try:
            from tensorboard.summary import Writer
        except ImportError:
            raise missing_extra("--tensorboard", "tensorboard") from None
        self._writer = Writer(str(folder / "tensorboard"))

    def write(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """Online if the machine is logged in, offline otherwise (upload later with `wandb sync`)."""

    def __init__(self, folder: Path, config: Mapping[str, Any]):
        try:
            import wandb
        except ImportError:
            raise missing_extra("--wandb", "wandb") from None
        mode: Any = os.environ.get("WANDB_MODE") or ("online" if _logged_in(wandb) else "offline")
        self._run = wandb.init(
            project="adac", name=folder.name, dir=str(folder), config=dict(config), mode=mode
        )

    def write(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


def _logged_in(wandb: Any) -> bool:
    try:
        return bool(wandb.login(prompt=False))
    except wandb.errors.Error:
        return False


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
