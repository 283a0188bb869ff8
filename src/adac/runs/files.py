"""Files that are whole or not there, and folders that one process at a time writes to.

A folder may come from a stranger, and a symbolic link in it could lead anywhere: none is followed.
"""

import contextlib
import errno
import io
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from adac.errors import RunError, UserError

_UNFINISHED = re.compile(r"\.adac-[0-9a-f]{16}\.tmp")
# Opening a pipe must not wait for its other end. Windows has neither flag, nor such links at hand.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def place(name: str, given: Any) -> Path:
    """A folder or a file; nothing is not the folder that one happens to be in."""
    if not isinstance(given, str | Path) or not str(given).strip():
        raise UserError(f"{name} must be the path of a folder or file, not {given!r}")
    return Path(given)


def no_follow(path: str, flags: int) -> int:
    """An `opener` for `open`: a symbolic link is an error."""
    return os.open(path, flags | _PLAIN, 0o666)


class NotPlainError(OSError):
    """Not a regular file of a size that can be meant."""


def read_plain(path: Path, most: int, size: int | None = None) -> bytes:
    """A regular file of at most `most` bytes, or of exactly `size`; looked at before it is read."""
    try:
        file = open(path, "rb", opener=no_follow)  # noqa: SIM115 (closed below)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPlainError(errno.ELOOP, "it is a symbolic link", str(path)) from None
        raise
    with file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise NotPlainError(errno.EINVAL, "it is not a regular file", str(path))
        if facts.st_size > most:
            raise NotPlainError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
        if size not in (None, facts.st_size):
            raise NotPlainError(errno.EINVAL, f"it does not have its {size:,} bytes", str(path))
        return file.read(facts.st_size)


def write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing, whenever the power goes; a link in its place is replaced."""
    beside = path.with_name(f".adac-{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb", opener=no_follow) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def forget_unfinished(folder: Path) -> None:
    """Delete what a kill left of `write_whole`; only whoever holds the folder's lock may."""
    for path in folder.iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink(missing_ok=True)


def files_below(folder: Path) -> Iterator[Path]:
    """Every file at any depth; folders that are links, or cannot be read, are passed over."""
    waiting = [folder]
    while waiting:  # a stranger's folders may lie deeper than Python recurses
        here = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(here / entry.name)
                else:
                    yield here / entry.name


def refuse_links(folder: Path) -> None:
    """A run that is somebody's gift must not decide what else of ours is read or written."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    if links:
        raise UserError(
            f"{links[0]} is a symbolic link, and adac follows none in the folders of runs: "
            "put a copy in its place, or remove it"
        )


_held: set[tuple[int, int, int]] = set()  # device and inode of a folder, and the thread


@contextlib.contextmanager
def locked(folder: Path, what: str = "run", patience: float = 60.0) -> Iterator[None]:
    """One process a folder at a time; `patience` in seconds, for one that is about to end.

    Who holds a folder may lock it again, as `train` does inside of `adac resume`.
    """
    facts = folder.stat()
    owner = (facts.st_dev, facts.st_ino, threading.get_ident())
    if owner in _held:
        yield
        return
    refuse_links(folder)
    with _lock_file(folder / ".lock") as file:
        _acquire(file, folder, what, patience)
        _held.add(owner)
        try:
            forget_unfinished(folder)
            yield
        finally:
            _held.discard(owner)


def _lock_file(path: Path) -> IO[str]:
    try:
        return open(path, "a+", opener=no_follow)
    except io.UnsupportedOperation:  # a pipe
        raise UserError(f"{path} is not a regular file: remove it") from None


def _acquire(file: IO[str], folder: Path, what: str, patience: float) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return  # a file system without locks
            if time.monotonic() >= end:
                raise RunError(f"another process is using the {what} in {folder}") from None
            time.sleep(0.2)
    facts = os.fstat(file.fileno())
    if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:  # a hard link is somebody's file too
        file.truncate(0)
        print(os.getpid(), file=file, flush=True)  # so that a person can find the process
