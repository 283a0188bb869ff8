"""A policy as named arrays, and back; the names are those that docs/export.md documents."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adac.core.activations import NAMES
from adac.core.plain import Layer, PlainPolicy

Arrays = dict[str, NDArray[Any]]


def to_arrays(policy: PlainPolicy) -> Arrays:
    clip = np.array([policy.clip], np.float32)
    arrays: Arrays = {"mean": policy.mean, "std": policy.std, "clip": clip}
    for number, layer in enumerate(policy.layers):
        arrays |= {f"weight{number}": layer.weight, f"bias{number}": layer.bias}
    if policy.activation != "relu":  # else as files were before there was a choice
        arrays["activation"] = np.array([NAMES.index(policy.activation)], np.float32)
    return arrays | {"low": policy.low, "high": policy.high}


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> PlainPolicy:
    """KeyError or ValueError where the arrays are not a policy's."""
    count = sum(name.startswith("weight") for name in arrays)
    layers = [(arrays[f"weight{n}"], arrays[f"bias{n}"]) for n in range(count)]
    mean, std, low, high = (arrays[name] for name in ("mean", "std", "low", "high"))
    for array in arrays.values():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ValueError("not all of it is finite numbers in single precision")
    sizes = [mean.shape, *(bias.shape for _, bias in layers)]
    pairs = pairwise(sizes)
    shapes = [weight.shape for weight, _ in layers]
    if (
        not layers
        or shapes != [(*i, *o) for i, o in pairs]
        or any(len(size) != 1 for size in sizes)
    ):
        raise ValueError("its layers do not fit together")
    if std.shape != mean.shape or {low.shape, high.shape} != {sizes[-1]}:
        raise ValueError("its normalisation or bounds do not fit its layers")
    clip = float(arrays["clip"].reshape(1)[0])
    number = float(arrays["activation"].reshape(1)[0]) if "activation" in arrays else 0.0
    if number not in range(len(NAMES)):
        raise ValueError("its activation is not one of adac's")
    made = tuple(Layer(w, b) for w, b in layers)
    return PlainPolicy(mean, std, clip, made, low, high, NAMES[int(number)])
