"""The `adac` command as the tests call it, and the tables it writes."""

import csv
from pathlib import Path

import pytest

from adac.cli.main import main


def adac(*words: str | Path) -> int:
    """Run it in this process; its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


def fails(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 2) -> str:
    """One sentence on stderr, the exit code, and no traceback."""
    assert adac(*words) == code
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if not line.startswith("step ")]
    assert len(lines) == 1, error
    assert lines[0].startswith("adac: ")
    assert "Traceback" not in error
    return lines[0]


def read_rows(path: Path) -> list[dict[str, str]]:
    """Of a CSV file."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
