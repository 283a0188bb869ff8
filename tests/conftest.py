"""Strict by default: warnings are errors, and a random key is used once."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("unhurried")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins without it
jax.config.update("jax_debug_key_reuse", True)

MANY_MAPPINGS = 20_000


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "error")
    compiling = {
        # Compiling a tiny network well takes far longer than running it badly. XLA's older emitters
        # of fusions would be faster still, but round in another way in each program.
        "jax_disable_most_optimizations": True,
        # What another test, process or run compiled is found again; the user's own is left alone.
        "jax_compilation_cache_dir": str(config.rootpath / ".pytest_cache" / "jax"),
        # However small: a program of one operation takes 30 ms to compile and 3 ms to find.
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    for name, value in compiling.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # for the processes that tests start


@pytest.fixture(autouse=True, scope="module")
def _few_programs() -> Iterator[None]:
    """Compiled programs are let go when they are many: Linux allows a process 65,530 mappings.

    Not sooner, because the next module needs the same small ones, as those that make networks.
    """
    yield
    if _mappings() > MANY_MAPPINGS:
        jax.clear_caches()


def _mappings() -> int:
    """Of memory, of this process; 0 where the system does not tell."""
    maps = Path("/proc/self/maps")
    return maps.read_bytes().count(b"\n") if maps.exists() else 0


@pytest.fixture
def strict_dtypes() -> Iterator[None]:
    """No silent change of dtype; not for all tests, because optax raises floats to int counts.

    Rank promotion cannot be refused: everything here takes any leading axes, so a bias or a K × K
    mask meets a batch by design. The accident that this would hide, [B] against [B, 1], is what
    `test_no_outer_product_over_the_batch` looks for in the whole update.
    """
    with jax.numpy_dtype_promotion("strict"):
        yield
