"""What stands between the layers of policies and critics, by name: for JAX and for NumPy.

gelu is the tanh approximation x·σ(1.5957691 x + 0.0713548 x³), which needs no erf where a policy
goes.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Activation = Literal["relu", "tanh", "elu", "silu", "gelu"]
NAMES: tuple[Activation, ...] = ("relu", "tanh", "elu", "silu", "gelu")  # files count them: append
GELU = (1.5957691, 0.0713548)  # 2√(2/π), and that times 0.044715

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jax.numpy.tanh,
    "elu": jax.nn.elu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
}


def _gate(x: Floats) -> Any:
    """The logistic function, which never overflows in this form."""
    return (1 + np.tanh(x / 2)) / 2


PLAIN: Mapping[str, Callable[[Floats], Any]] = {
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x * _gate(x),
    "gelu": lambda x: x * _gate(x * (GELU[0] + GELU[1] * x * x)),
}
