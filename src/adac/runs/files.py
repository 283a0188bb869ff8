"""Files that are whole or not there, and folders that one process at a time writes to."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from adac.errors import RunError


def write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing, whenever the power goes."""
    beside = path.with_name(f"{path.name}.tmp")
    with open(beside, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


@contextlib.contextmanager
def locked(folder: Path, what: str = "run", patience: float = 60.0) -> Iterator[None]:
    """One process a folder at a time; `patience` in seconds, for one that is about to end."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with open(folder / ".lock", "a+") as file:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    raise RunError(f"another process is at the {what} in {folder}") from None
                time.sleep(0.2)
        file.truncate(0)
        print(os.getpid(), file=file, flush=True)  # so that a person can find the process
        yield
