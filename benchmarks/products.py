"""How fast XLA multiplies matrices of the sizes that an update has, next to a large product.

python benchmarks/products.py                     all threads
taskset -c 0 env NPROC=1 python benchmarks/products.py    one

GFLOP/s, the median of interleaved rounds: XLA as it comes, with the options that `compiled.py`
compiles an update with, and in bfloat16 with those. Products of a td3 update have 100 rows, those
of the particles' Q-gradients 100 K.
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from adac.training.compiled import SMALL_PRODUCTS

ROUNDS = 9
WORK = 1.5e9  # floating-point operations between two looks at the clock
SIZES = {
    "100 rows, 400 → 300": (100, 400, 300),
    "100 rows, gradient of the weights": (400, 100, 300),
    "K = 8, 400 → 300": (800, 400, 300),
    "K = 32, 400 → 300": (3_200, 400, 300),
    "256 rows, 256 → 256": (256, 256, 256),
    "2048 × 2048 × 2048": (2_048, 2_048, 2_048),
}


def rounded(x: Array, y: Array) -> Array:
    half = jnp.matmul(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16))
    return half.astype(jnp.float32)


def compiled(x: Array, y: Array) -> dict[str, Callable[[Array, Array], Array]]:
    ways = {
        "as it comes": jax.jit(jnp.matmul),
        "our options": jax.jit(jnp.matmul, compiler_options=SMALL_PRODUCTS),
        "bfloat16": jax.jit(rounded, compiler_options=SMALL_PRODUCTS),
    }
    return {name: function.lower(x, y).compile() for name, function in ways.items()}


def speeds(rows: int, inner: int, columns: int) -> dict[str, float]:
    x = jax.random.normal(jax.random.key(0), (rows, inner))
    y = jax.random.normal(jax.random.key(1), (inner, columns))
    operations, ways = 2.0 * rows * inner * columns, compiled(x, y)
    repeats = max(2, round(WORK / operations))
    seen: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name, multiply in ways.items():
            began = time.perf_counter()
            for _ in range(repeats):
                product = multiply(x, y)
            product.block_until_ready()
            seen[name].append(operations * repeats / (time.perf_counter() - began) / 1e9)
    return {name: statistics.median(values[1:]) for name, values in seen.items()}


def main() -> None:
    for label, size in SIZES.items():
        found = speeds(*size)
        print(f"{label:36s}" + "".join(f"  {name} {speed:6.1f}" for name, speed in found.items()))


if __name__ == "__main__":
    main()
