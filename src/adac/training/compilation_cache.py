"""JAX's persistent compilation cache, on by default: the second start takes seconds less."""

import os
from pathlib import Path
from typing import Any

import jax


def enable() -> None:
    """In the user's cache folder, unless JAX has been told of another (or of none)."""
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        return
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home, as in some containers
        return
    config.update("jax_compilation_cache_dir", str(home / "adac" / "jax"))
    config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
