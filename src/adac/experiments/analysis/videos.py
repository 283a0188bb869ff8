"""Videos in run folders, as the report's page holds them: in itself."""

import base64
from pathlib import Path
from typing import Any

from adac.experiments.analysis.results import Results, Run
from adac.runs.files import read_plain

KINDS = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}
FOLDERS = (".", "videos")  # of a run
MOST_BYTES = 16 * 2**20  # of one video
MOST_IN_ALL = 64 * 2**20  # a page that a browser still opens


def gather(results: Results, last: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Each video with its run's name, and a note where one is left out for its size.

    Or the `last` one of each run.
    """
    found: list[dict[str, Any]] = []
    notes: list[str] = []
    taken = 0
    for group in results.all_groups():
        for run in group.runs:
            for path in _files(run)[-1 if last else 0 :]:
                try:
                    content = read_plain(path, min(MOST_BYTES, MOST_IN_ALL - taken))
                except OSError as error:
                    name = path.relative_to(results.folder)
                    notes.append(f"{name} is not in the page: {error.strerror}")
                    continue
                taken += len(content)
                found.append(_video(path, content, group.label, run))
    return found, notes


def _video(path: Path, content: bytes, label: str, run: Run) -> dict[str, Any]:
    kind = KINDS[path.suffix]
    return {
        "label": label,
        "env": run.env,
        "kind": kind,
        "caption": f"{label}, {run.env}, seed {run.seed}: {path.name}",
        "address": f"data:{kind};base64,{base64.b64encode(content).decode()}",
    }


def _files(run: Run) -> list[Path]:
    if not run.folder.is_dir():
        return []
    near = (path for folder in FOLDERS for path in sorted((run.folder / folder).glob("*")))
    # One that is being recorded has a point before its name.
    return [path for path in near if path.suffix in KINDS and not path.name.startswith(".")]
