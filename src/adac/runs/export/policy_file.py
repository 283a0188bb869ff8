"""A policy as one small safetensors file with its facts in the header; nothing in it runs code."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from adac.core.plain import PlainPolicy
from adac.errors import UserError
from adac.runs.export.arrays import Arrays, from_arrays, to_arrays
from adac.runs.export.facts import Facts, write
from adac.runs.files import read_plain

FORMAT = "adac-policy-1"
ACTIVE = "adac-policy-2"  # with an activation, which a reader of the first would overlook
MOST_BYTES = 2**30
KINDS: dict[str, type | tuple[type, ...]] = {
    "env": str, "agent": str, "seed": int, "step": int, "flattened": bool,
    "mean_return": (int, float),
}  # fmt: skip


def write_policy(policy: PlainPolicy, facts: Facts, path: Path) -> None:
    arrays = to_arrays(policy)
    form = ACTIVE if "activation" in arrays else FORMAT
    about = {"format": form, "crc": _checksum(arrays), "facts": facts.to_json()}
    about["about"] = facts.lines(policy)
    write(path, safetensors.numpy.save(arrays, {"adac": json.dumps(about)}))


def read_policy(path: Path) -> tuple[PlainPolicy, Facts]:
    try:
        data = read_plain(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    try:
        arrays = dict(safetensors.numpy.load(data))
        length = int.from_bytes(data[:8], "little")
        about = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["adac"])
        if about["format"] not in (FORMAT, ACTIVE):
            raise UserError(f"{path} has the format {about['format']!r}, not {FORMAT} or {ACTIVE}")
        if about["crc"] != _checksum(arrays):
            raise ValueError("its numbers are not what was written")
        return from_arrays(arrays), read_facts(about["facts"])
    except (
        SafetensorError,
        KeyError,
        ValueError,
        TypeError,
        RecursionError,
        AttributeError,
    ) as error:
        raise UserError(f"{path} is damaged or not a policy of adac's: {error}") from None


def read_facts(given: Mapping[str, Any]) -> Facts:
    """ValueError or KeyError where they are not a policy's."""
    for name, kind in KINDS.items():
        value = given.get(name)
        if name == "mean_return" and value is None:
            continue
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"its {name} is {value!r}")
    return Facts(**{name: given.get(name) for name in KINDS})  # type: ignore[arg-type]


def _checksum(arrays: Arrays) -> int:
    crc = 0
    for name in sorted(arrays):
        crc = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), crc)
    return crc
