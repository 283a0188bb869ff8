"""README's and docs/results.md's table of results, written from the files under results/.

python tools/readme_results.py           writes both tables anew
python tools/readme_results.py --check   are they what the files say? exit code 1 if not

Each row is a task and an agent: the last evaluation of every seed, on seeds of 100 and up only.
"""

import sys
from pathlib import Path

import numpy as np

from adac.experiments.analysis.results import Run, read_results

ROOT = Path(__file__).parents[1]
FOLDERS = ("rare", "parity")
PAGES = ("README.md", "docs/results.md")
BEGIN, END = "<!-- results: python tools/readme_results.py -->", "<!-- results end -->"
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


def written(page: str, content: str) -> str:
    """The page with the table between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def main() -> None:
    content, stale = table(), []
    for name in PAGES:
        path = ROOT / name
        old = path.read_text("utf-8")
        new = written(old, content)
        if "--check" in sys.argv[1:]:
            stale += [name] if new != old else []
        else:
            path.write_text(new, "utf-8")
    if stale:
        raise SystemExit(f"{', '.join(stale)}: not what results/ says; run tools/readme_results.py")


if __name__ == "__main__":
    main()
