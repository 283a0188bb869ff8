"""CSV files that survive a kill, a resume and a damaged line, and tell a changed digit."""

import contextlib
import csv
import io
import json
import os
import re
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from adac.errors import RunError
from adac.runs.files import no_follow, read_plain, write_whole

EVALUATION_COLUMNS = (
    "step", "mean_return", "std_return", "episodes", "wall_seconds",
    "min_return", "max_return", "mean_length", "success_rate",
)  # fmt: skip

GAP_COLUMNS = ("episode_bonus_gap", "episode_bonus_mu", "episode_bonus_pi")
VISITS = "visits.csv"  # where the two policies have been, at a few stages
VISITS_COLUMNS = ("step", "policy", "x", "y", "visits")
MOST_BYTES = 2**30
_STEP = re.compile(r"[0-9]{1,18}")

Row = dict[str, str]


class Mark(NamedTuple):
    """What a checkpoint vouches for: a table's rows up to a step, and a CRC-32 over them."""

    step: int = -1
    rows: int = 0
    crc: int = 0

    def after(self, row: Mapping[str, str]) -> "Mark":
        """Over names and cells, so that a column of another version changes nothing."""
        cells = json.dumps(sorted((name, cell) for name, cell in row.items() if cell))
        return Mark(int(row["step"]), self.rows + 1, zlib.crc32(cells.encode(), self.crc))

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Mark":
        mark = cls()
        for row in rows:
            mark = mark.after(row)
        return mark


class Table:
    """A CSV file with fixed columns; rows after `step` are dropped when a run is resumed.

    `vouched` is the mark that its checkpoint carries: rows that differ are said, and kept.
    """

    def __init__(self, path: Path, columns: Sequence[str], step: int, vouched: Mark | None = None):
        past = _parse(path, columns)
        unknown = [name for name in past.columns if name not in columns]  # of another version
        self.path, self.columns = path, [*columns, *unknown]
        if damage := _damage(past, vouched):
            warnings.warn(f"{path} was damaged: {damage}", stacklevel=3)
        rows = [row for row in past.rows if int(row["step"]) <= step]
        self.mark = Mark.of(rows)
        text = io.StringIO(newline="")
        kept = self._writer_to(text)
        kept.writeheader()
        kept.writerows(rows)
        try:
            write_whole(path, text.getvalue().encode())  # a kill here must not cost the past
            self._file = open(path, "a", newline="", encoding="utf-8", opener=no_follow)  # noqa: SIM115
        except OSError as error:
            raise RunError(f"{path} could not be written: {error.strerror}") from error

    def _writer_to(self, file: TextIO) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self.columns, restval="", extrasaction="ignore")

    def add(self, row: Mapping[str, Any]) -> None:
        text = io.StringIO(newline="")
        self._writer_to(text).writerow(row)
        try:
            self._file.write(text.getvalue())
            self._file.flush()
        except OSError as error:
            raise RunError(f"{self.path} could not be written: {error.strerror}") from error
        written = _row(self.columns, text.getvalue().removesuffix("\n"))
        self.mark = self.mark if written is None else self.mark.after(written)  # as it is read

    def sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunError(f"{self.path} could not be written: {error.strerror}") from error

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()


def read_table(path: Path) -> list[Row]:
    """The complete rows of a CSV file; a line cut off by a kill is passed over, as is damage."""
    return _parse(path, ()).rows


def number_in(row: Mapping[str, str], name: str) -> float | None:
    """A cell's number, if there is one."""
    try:
        return float(row[name])
    except (KeyError, ValueError):
        return None


class _Parsed(NamedTuple):
    columns: list[str]
    rows: list[Row]
    passed_over: int  # lines that are no rows, but for a last one that a kill cut off


def _damage(past: _Parsed, vouched: Mark | None) -> str:
    """What is to be said of it in one sentence; nothing where all is as it was written."""
    said = []
    if vouched is not None:
        there = Mark.of(row for row in past.rows if int(row["step"]) <= vouched.step)
        if there != vouched:
            rows = f"its {there.rows} rows up to step {vouched.step:,} are not the {vouched.rows}"
            said.append(f"{rows} that were written, so that it may show wrong numbers")
    if past.passed_over:
        said.append(f"{past.passed_over} of its lines are passed over")
    return ", and ".join(said)


def _parse(path: Path, expected: Sequence[str]) -> _Parsed:
    """Line by line, so that a stray quotation mark does not swallow those that follow."""
    try:
        text = read_plain(path, MOST_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return _Parsed([], [], 0)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    first, *lines = text.split("\n")
    columns = _columns(_cells(first), expected)
    if "step" not in columns:
        return _Parsed([], [], len(lines) if any(lines) else 0)
    found = [_row(columns, line) for line in lines[:-1]]  # what no newline ends was cut off
    return _Parsed(columns, [row for row in found if row is not None], found.count(None))


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.removesuffix("\r")]), [])
    except csv.Error:
        return []


def _columns(header: list[str], expected: Sequence[str]) -> list[str]:
    """The header; where one name, or that of the steps, is not what was written, it is damaged."""
    if len(header) == len(expected):
        differing = [a for a, b in zip(header, expected, strict=True) if a != b]
        if len(differing) == 1 or "step" not in header:
            return list(expected)
    return header if len(set(header)) == len(header) else []


def _row(columns: list[str], line: str) -> Row | None:
    cells = _cells(line)
    if len(cells) != len(columns):
        return None
    row = dict(zip(columns, cells, strict=True))
    return row if _STEP.fullmatch(row["step"]) else None
