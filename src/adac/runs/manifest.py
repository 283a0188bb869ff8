"""Manifests: what a checkpoint consists of, in JSON with a checksum over all of it."""

import json
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from adac.errors import RunError
from adac.runs.files import NotPlainError, read_plain

FORMAT = "adac-checkpoint-1"
OWN_NAME = re.compile(
    r"step-[0-9]{12,}\.(json|safetensors)|replay-[0-9]{5,}-[0-9]{12,}\.safetensors"
)
MOST_BYTES = 2**26  # of a manifest: its longest part is a line for each 16,384 transitions


class DamagedError(Exception):
    """A manifest or one of its files is not what was written."""


class File(NamedTuple):
    name: str
    size: int
    crc: int


class Manifest(NamedTuple):
    step: int
    facts: dict[str, Any]
    state: File
    replay: list[File]
    inserted: int | None  # transitions ever stored; None without a replay buffer

    def encode(self) -> bytes:
        body = {"format": FORMAT} | self._asdict()
        whole = {"body": body, "crc": _checksum(body)}
        return json.dumps(whole, sort_keys=True).encode()


def step_of(manifest: Path) -> int:
    return int(manifest.stem.removeprefix("step-"))


def read_manifest(path: Path) -> Manifest:
    try:
        whole = json.loads(read_part(path, MOST_BYTES))
        body = whole["body"]
        if _checksum(body) != whole["crc"]:
            raise DamagedError("its manifest is not what was written")
        if body["format"] != FORMAT:
            raise DamagedError(f"its format is {body['format']!r}, this version reads {FORMAT}")
        manifest = _manifest(body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError(f"its manifest cannot be read: {error}") from None
    if manifest.step != step_of(path):
        raise DamagedError(f"its manifest is that of step {manifest.step}")
    return manifest


def read_part(path: Path, most: int, size: int | None = None) -> bytes:
    """One file of a checkpoint. What cannot be read now may be good, so it is not passed over."""
    try:
        return read_plain(path, most, size)
    except (FileNotFoundError, IsADirectoryError, NotPlainError) as error:
        raise DamagedError(f"{path.name}: {error.strerror}") from None
    except OSError as error:
        raise RunError(
            f"{path} cannot be read ({error.strerror}): fix that and try again, or move the "
            "checkpoint's step-….json away to go back to the one before"
        ) from error


def _checksum(body: Any) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def _manifest(body: dict[str, Any]) -> Manifest:
    facts, replay = body["facts"], body["replay"]
    if not isinstance(facts, dict) or not isinstance(replay, list):
        raise ValueError("its parts are of the wrong kind")
    # Until inserted had a place of its own, it stood among the facts.
    inserted = body.get("inserted", facts.get("inserted") if replay else None)
    return Manifest(
        _count(body["step"]),
        facts,
        _file(body["state"]),
        [_file(one) for one in replay],
        None if inserted is None else _count(inserted),
    )


def _file(fields: Any) -> File:
    name, size, crc = fields
    if not isinstance(name, str) or not OWN_NAME.fullmatch(name):
        raise DamagedError(f"it names a file that is no checkpoint's: {name!r}")
    return File(name, _count(size), _count(crc))


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value
