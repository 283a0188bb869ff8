"""How much memory there is, so that what can not fit is said before it is asked for."""

import os
from pathlib import Path

_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def memory_bytes() -> int | None:
    """Of this machine, or of the container if that has less; None where nobody tells."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(whole, int(_CONTAINER.read_text()))
    except (OSError, ValueError):
        return whole
