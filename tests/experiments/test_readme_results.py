"""The table of results says what the files say, of fresh seeds and finished runs alone."""

from pathlib import Path

import pytest
from folders import write_run

import readme_results as tool
import written_tables


def test_readme_and_results_page_are_what_the_files_say() -> None:
    assert written_tables.stale("results", tool.pages()) == [], "run tools/readme_results.py"


def test_only_fresh_seeds_of_finished_runs_count(tmp_path: Path) -> None:
    for name, seed, last in (("a", 100, 10.0), ("b", 101, 30.0), ("chosen-on", 0, 1e6)):
        write_run(tmp_path / "rare" / name, [1.0, 2.0, last], env="Hopper-v4", seed=seed)
    write_run(tmp_path / "rare" / "half-way", [1.0, 1e6], env="Hopper-v4", seed=102)
    rows = tool.table(tmp_path).splitlines()[2:]
    assert rows == ["| Hopper-v4 | `td3` | 300 | 2 | 20 (10 to 30) |"]


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="has no lines"):
        written_tables.written("# adac\n", "results", "table")
