"""A small model that the tests share, and what they compare."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adac.sb3 import ADAC, TD3, Algorithm

SMALL: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [8]}, "batch_size": 8, "buffer_size": 200, "seed": 0,
}  # fmt: skip


def td3(env: Any = "Pendulum-v1", **kwargs: Any) -> TD3:
    return TD3("MlpPolicy", env, **(SMALL | {"learning_starts": 20} | kwargs))


def adac(env: Any = "Pendulum-v1", **kwargs: Any) -> ADAC:
    return ADAC("MlpPolicy", env, **(SMALL | {"learning_starts": 20, "particles": 4} | kwargs))


def weights(model: Algorithm) -> dict[str, NDArray[Any]]:
    groups = model.get_parameters().values()
    return {name: tensor.numpy().copy() for group in groups for name, tensor in group.items()}


def assert_same(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
