"""CSV files that survive a kill and a resume."""

import contextlib
import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from adac.errors import RunError
from adac.runs.files import no_follow, write_whole

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
            self._file = open(path, "a", newline="", opener=no_follow)  # noqa: SIM115 (the run's)
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
