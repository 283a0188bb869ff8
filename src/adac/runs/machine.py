"""What this machine is: its processor, and how much memory there is."""

import os
import platform
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


def processor() -> str:
    """Cores and model; nothing that names the machine or its owner."""
    model = cpu_fact("model name") or platform.processor() or platform.machine() or "unknown"
    return f"{os.cpu_count()} × {model}"


def cpu_fact(wanted: str) -> str:
    """Of the first core, where Linux tells."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == wanted:
                return value.strip()
    return ""
