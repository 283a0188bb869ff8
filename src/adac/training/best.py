"""The policy of the best evaluation: part of a run's state, and a file in its folder.

A checkpoint carries it, so a run that goes on from an older one finds the best it had then; the
file is written from it, for others to read.
"""

import contextlib
from pathlib import Path
from typing import Any

from adac.runs.checkpoint import Arrays
from adac.runs.export.arrays import from_arrays, to_arrays
from adac.runs.export.policy_file import read_facts
from adac.runs.files import refuse_links
from adac.runs.folder import BEST
from adac.training.policy import TargetPolicy

PREFIX = "best."


def improves(best: TargetPolicy | None, mean_return: float) -> bool:
    """Of two that are as good, the first stays."""
    if best is None or best.facts.mean_return is None:
        return True
    return mean_return > best.facts.mean_return


def put(folder: Path, best: TargetPolicy | None) -> None:
    """Into the run's folder; one that the run does not know of is not its own."""
    path = folder / BEST
    refuse_links(folder)
    if best is not None:
        best.save(path)
        return
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # where a user has put something else beside it
        path.parent.rmdir()


def pack(
    best: TargetPolicy | None, arrays: Arrays, facts: dict[str, Any]
) -> tuple[Arrays, dict[str, Any]]:
    """What a checkpoint holds, with the best policy where there is one."""
    if best is None:
        return arrays, facts
    own = {f"{PREFIX}{name}": value for name, value in to_arrays(best.plain).items()}
    return arrays | own, facts | {"best": best.facts.to_json()}


def unpack(arrays: Arrays, facts: dict[str, Any]) -> TargetPolicy | None:
    if facts.get("best") is None:
        return None
    own = {k.removeprefix(PREFIX): v for k, v in arrays.items() if k.startswith(PREFIX)}
    return TargetPolicy(from_arrays(own), read_facts(facts["best"]))
