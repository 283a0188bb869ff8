"""README's and docs/results.md's table of results, written from the files under results/.

python tools/readme_results.py           writes both tables anew
python tools/readme_results.py --check   are they what the files say? exit code 1 if not

Each row is a task and an agent: the last evaluation of every seed, on seeds of 100 and up only.
"""

from pathlib import Path

import numpy as np

import written_tables
from adac.experiments.analysis.results import Run, read_results

ROOT = written_tables.ROOT
FOLDERS = ("rare", "parity")
PAGES = ("README.md", "docs/results.md")
HEAD = "| task | agent | steps | seeds | return, mean (lowest to highest) |\n|---|---|--:|--:|--:|"
FRESH = 100  # seeds below this chose settings


def rows(runs: list[Run]) -> list[str]:
    found: dict[tuple[str, str, int], list[float]] = {}
    for run in runs:
        if int(run.seed) >= FRESH and run.last_step == run.config["steps"]:
            key = (run.env.rpartition("/")[2], run.label, run.last_step)
            found.setdefault(key, []).append(run.returns[run.last_step])
    return [
        f"| {task} | `{label}` | {steps:,} | {len(values)} | {_returns(np.array(values))} |"
        for (task, label, steps), values in sorted(found.items())
    ]


def _returns(values: np.ndarray) -> str:
    mean = f"{values.mean():,.0f}"
    return mean if len(values) == 1 else f"{mean} ({values.min():,.0f} to {values.max():,.0f})"


def table(results: Path = ROOT / "results") -> str:
    folders = [results / name for name in FOLDERS if (results / name).is_dir()]
    runs = [run for folder in folders for run in read_results(folder).runs]
    return "\n".join([HEAD, *rows(runs)])


def pages() -> dict[str, str]:
    return dict.fromkeys(PAGES, table())


if __name__ == "__main__":
    written_tables.main("results", pages())
