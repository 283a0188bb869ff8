"""The machine: what a result was made with, and folders for a while on it."""

import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from adac.runs.machine import cpu_fact, memory_bytes

PACKAGE = Path(__file__).resolve().parents[2]


def machine() -> dict[str, Any]:
    """CPU model, cores, memory and system; nothing that names the machine or its owner."""
    memory = memory_bytes()
    return {
        "cpu": cpu_fact("model name") or platform.processor() or "unknown",
        "instructions": _instructions(),
        "cores": os.cpu_count(),
        "memory_gb": None if memory is None else round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _instructions() -> list[str]:
    """The vector sets that XLA compiles for: with others the same seed ends in other bits."""
    flags = cpu_fact("flags") or cpu_fact("Features")
    return sorted(f for f in flags.split() if f.startswith(("avx", "fma", "amx", "sve", "asimd")))


def commit() -> str | None:
    """The commit of adac's own checkout, with "+changes" if its source differs from it."""
    top = _git("rev-parse", "--show-toplevel")
    if not top or Path(top) / "src" / "adac" != PACKAGE:
        return None  # installed elsewhere, perhaps inside somebody else's repository
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{head}+changes" if head and changed else head


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def scratch_folder(name: str) -> Path:
    """A temporary folder, with a short path as sockets want it; what dead processes left goes."""
    for left in Path(tempfile.gettempdir()).glob(f"{name}-*-*"):
        owner = left.name.removeprefix(f"{name}-").partition("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-"))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
