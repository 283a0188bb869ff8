"""The tables of speed say what benchmarks/results.jsonl says, and of which version it is."""

import json
from pathlib import Path

import readme_speed as tool
import written_tables

FACTS = {"date": "2026-01-02", "cores": 2, "cpu": "A CPU"}


def measured(path: Path, facts: dict[str, object], **rates: list[float]) -> dict[str, str]:
    """Pages from a file with these steps per second of `td3` on Hopper, round by round."""
    records = [
        {"round": n, "job": f"rate/Hopper-v5/td3/{library}", "others": 0.0, "steps_per_second": x}
        for library, values in rates.items()
        for n, x in enumerate(values)
    ]
    path.write_text("\n".join(json.dumps(line) for line in [facts, *records]))
    return tool.pages(path)


def test_both_pages_are_what_the_file_says() -> None:
    assert written_tables.stale("speed", tool.pages()) == [], "run tools/readme_speed.py"


def test_ratios_are_taken_within_a_round(tmp_path: Path) -> None:
    pages = measured(tmp_path / "raw", FACTS, adac=[100, 300, 400], sb3=[50, 100, 400])
    row = next(line for line in pages["README.md"].splitlines() if "`td3`, Hopper" in line)
    assert row == "| `td3`, Hopper-v5 | 300 | – | 100 (ours\N{NO-BREAK SPACE}2.0×) |"
    assert "0 of 1 targets are met." in pages["docs/performance.md"]


def test_the_version_is_said(tmp_path: Path) -> None:
    old = measured(tmp_path / "raw", FACTS, adac=[1.0])
    new = measured(tmp_path / "raw", FACTS | {"adac": "0.2.0"}, adac=[1.0])
    assert "Version 0.1, 2026-01-02, 2 cores of A CPU" in old["README.md"]
    assert all("Version 0.2.0" in page for page in new.values())
