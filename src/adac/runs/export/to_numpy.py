"""A policy as one .npz of plain arrays; docs/export.md has the loader, of NumPy alone."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from adac.core.plain import PlainPolicy
from adac.runs.export.arrays import to_arrays
from adac.runs.export.facts import Facts, write


def write_numpy(policy: PlainPolicy, facts: Facts, path: Path) -> None:
    arrays: dict[str, Any] = to_arrays(policy)
    about = json.dumps(facts.to_json() | {"about": facts.lines(policy)})
    file = io.BytesIO()
    np.savez(file, **arrays, facts=np.array(about))
    write(path, file.getvalue())
