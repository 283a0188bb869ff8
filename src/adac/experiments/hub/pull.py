"""`adac pull`: a stranger's run, as safe as any other: known files only, bounded, and looked at."""

import os
import shutil
from pathlib import Path
from typing import Any

from adac.core import settings
from adac.errors import AdacError, RunError, UserError
from adac.experiments.hub.files import (
    MOST_BYTES,
    MOST_FILES,
    OURS,
    POLICY,
    connect,
    explain,
    require_name,
)
from adac.experiments.sweeps.provenance import scratch_folder
from adac.runs.checkpoint import Store
from adac.runs.export.policy_file import read_policy
from adac.runs.folder import read_config, require_essence


def pull(repository: str, out: Path, *, revision: str | None = None) -> list[str]:
    """Into `out`, which must not be there; returns the names of its files.

    Nothing of it is run, and nothing is there before all of it has been looked at.
    """
    require_name(repository)
    if os.path.lexists(out):
        raise UserError(f"{out} is there already: choose another --out")
    api = connect()
    scratch = scratch_folder("adac-pull")
    try:
        names = _download(api, repository, revision, scratch)
        require_run(scratch / "run")
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(scratch / "run", out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return names


def _download(api: Any, repository: str, revision: str | None, scratch: Path) -> list[str]:
    try:
        info = api.model_info(repository, revision=revision, files_metadata=True)
        names = _wanted(repository, info.siblings or [])
        for name in names:
            api.hf_hub_download(
                repository, name, revision=info.sha, local_dir=scratch / "downloaded"
            )
    except AdacError:
        raise
    except Exception as error:  # the client's, or of the HTTP library that it is built on
        raise explain(error, f"{repository} could not be pulled") from error
    for name in names:
        path = scratch / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(scratch / "downloaded" / name, path)
    return names


def _wanted(repository: str, siblings: list[Any]) -> list[str]:
    """Files that a run has; whatever else lies there is not fetched."""
    found = [one for one in siblings if OURS.fullmatch(one.rfilename)]
    names = sorted({one.rfilename for one in found})
    if "config.json" not in names:
        raise UserError(f"{repository} is not a run of adac: it has no config.json")
    if len(names) > MOST_FILES or sum(one.size or 0 for one in found) > MOST_BYTES:
        raise UserError(f"{repository} has more files or bytes than a run of adac")
    return names


def require_run(folder: Path) -> None:
    """The checks of every run folder, before it is given to anybody."""
    if sum(path.lstat().st_size for path in folder.rglob("*")) > MOST_BYTES:
        raise RunError("it is larger than the hub said")
    config = read_config(folder)
    settings.from_json(config["agent"])
    contents = Store(folder / "checkpoint").load(None)
    require_essence(folder, config, contents.facts.get("config"))
    if (folder / POLICY).exists():
        read_policy(folder / POLICY)
