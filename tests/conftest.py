"""Strict by default: warnings are errors, and a random key is used once."""

import signal
from collections.abc import Iterator

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("unhurried")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins without it
jax.config.update("jax_debug_key_reuse", True)
# Compiling a tiny network well takes far longer than running it badly.
jax.config.update("jax_disable_most_optimizations", True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "error")
    # Programs that an earlier run compiled are found again, and the user's own are left alone.
    jax.config.update("jax_compilation_cache_dir", str(config.rootpath / ".pytest_cache" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


@pytest.fixture(autouse=True, scope="module")
def _few_programs() -> Iterator[None]:
    """Compiled programs are let go with their module: Linux allows a process 65,530 mappings."""
    yield
    jax.clear_caches()


@pytest.fixture
def strict_dtypes() -> Iterator[None]:
    """No silent change of dtype; not for all tests, because optax raises floats to int counts.

    Rank promotion cannot be refused: everything here takes any leading axes, so a bias or a K × K
    mask meets a batch by design. The accident that this would hide, [B] against [B, 1], is what
    `test_no_outer_product_over_the_batch` looks for in the whole update.
    """
    with jax.numpy_dtype_promotion("strict"):
        yield
