"""Strict by default: warnings are errors, and a random key is used once."""

from collections.abc import Iterator

import jax
import pytest

jax.config.update("jax_debug_key_reuse", True)
# Compiling a tiny network well takes far longer than running it badly.
jax.config.update("jax_disable_most_optimizations", True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "error")


@pytest.fixture
def strict_dtypes() -> Iterator[None]:
    """No silent change of dtype; not for all tests, because optax raises floats to int counts.

    Rank promotion can not be refused: everything here takes any leading axes, so a bias or a K × K
    mask meets a batch by design. The accident that this would hide, [B] against [B, 1], is what
    `test_no_outer_product_over_the_batch` looks for in the whole update.
    """
    with jax.numpy_dtype_promotion("strict"):
        yield
