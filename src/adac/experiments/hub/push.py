"""`adac push`: a run with its policy, curve, video and card, in one commit."""

import contextlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adac.errors import AdacError
from adac.experiments.analysis import figures
from adac.experiments.hub.card import card
from adac.experiments.hub.files import (
    CONFIG,
    CURVE,
    POLICY,
    README,
    TABLES,
    VIDEO,
    connect,
    explain,
    require_name,
    weights,
)
from adac.experiments.sweeps.provenance import scratch_folder
from adac.runs.csv_table import read_table
from adac.runs.files import refuse_links
from adac.runs.folder import BEST, read_config
from adac.runs.video import VIDEOS
from adac.training.data import MINARI
from adac.training.learner import Learner
from adac.training.recording import record


def push(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload the run; returns its address. The replay buffer is not part of it."""
    require_name(repository)
    api = connect()
    scratch = scratch_folder("adac-push")
    try:
        files = gather(folder, repository, scratch)
        return _upload(api, repository, files, f"adac run {folder.resolve().name}", private)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def gather(folder: Path, repository: str, scratch: Path) -> dict[str, Path]:
    """Every file of the repository by its name there; what is made for it lies in `scratch`."""
    config = read_config(folder)
    for part in (BEST.parent, VIDEOS):  # else a stranger's run could send a file of ours out
        refuse_links(folder / part)
    learner = Learner.load(folder, with_replay=False)
    try:
        learner.target_policy().save(scratch / POLICY)
        made = [POLICY]
        with contextlib.suppress(AdacError):  # no evaluations, or no matplotlib
            figures.plot([folder], scratch / CURVE)
            made.append(CURVE)
        if _video(learner, folder, scratch / VIDEO):
            made.append(VIDEO)
        step = learner.step
    finally:
        learner.close()
    evaluations = read_table(folder / "evaluations.csv")
    (scratch / README).write_text(card(repository, config, step, evaluations, made), "utf-8")
    (scratch / CONFIG).write_text(json.dumps(_without_places(config), indent=2) + "\n", "utf-8")
    made.append(CONFIG)
    kept = [folder / name for name in (*TABLES, BEST)]
    own = [path for path in kept if path.is_file()] + weights(folder)
    names = {path.relative_to(folder).as_posix(): path for path in own}
    return names | {name: scratch / name for name in (*made, README)}


def _without_places(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the run began with by its name alone: the folders of its owner are nobody's business."""
    found = dict(config)
    if found.get("from"):
        found["from"] = {**found["from"], "folder": _name(found["from"]["folder"])}
    if found.get("data"):
        found["data"] = [s if s.startswith(MINARI) else _name(s) for s in found["data"]]
    return found


def _name(place: str) -> str:
    """The last part of a path, of whichever system."""
    return re.split(r"[/\\]", place.rstrip("/\\"))[-1]


def _video(learner: Learner, folder: Path, path: Path) -> bool:
    """The run's last video, or a new one; none where the task does not render."""
    videos = sorted((folder / VIDEOS).glob("step-*.mp4"))
    if videos:
        shutil.copyfile(videos[-1], path)
        return True
    try:
        record(learner, path)
    except Exception:  # whatever a renderer does: the run is worth sharing without
        return False
    return True


def _upload(api: Any, repository: str, files: dict[str, Path], message: str, private: bool) -> str:
    from huggingface_hub import CommitOperationAdd

    operations = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        api.create_commit(repository, operations, commit_message=message)
    except Exception as error:  # the client's, or of the HTTP library that it is built on
        raise explain(error, f"{repository} could not be pushed (`hf auth login`?)") from error
    return f"{api.endpoint}/{repository}"
