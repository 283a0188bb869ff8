"""The `adac` command as the tests call it, and the tables it writes."""

import csv
import subprocess
import time
from pathlib import Path
from typing import Any

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


def wait_for_step(folder: Path, step: int, process: subprocess.Popen[Any]) -> None:
    """Until a run has a checkpoint of at least this step."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        names = sorted(path.name for path in (folder / "checkpoint").glob("step-*.json"))
        if names and int(names[-1][5:17]) >= step:
            return
        assert process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.005)
    raise AssertionError("no checkpoint in two minutes")
