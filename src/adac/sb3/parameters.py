"""An agent's state as named tensors, which is how Stable-Baselines3 reads and sets parameters."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from adac.core.agent import AgentState
from adac.runs.checkpoint import Arrays, flatten, unflatten

Tensors = OrderedDict[str, torch.Tensor]
# The groups of `get_parameters`: what acts and is valued with, and what learning remembers.
POLICY, OPTIMIZERS = "policy", "optimizers"
_NETWORKS = tuple(
    f".{net}.{part}" for net in ("actor", "behaviour", "critic") for part in ("params", "target")
)


def group_of(name: str, array: NDArray[Any]) -> str:
    acts = name.startswith((*_NETWORKS, ".statistics")) and array.dtype == np.float32
    return POLICY if acts else OPTIMIZERS


def arrays_of(state: AgentState) -> Arrays:
    """Copies, because an update reuses the state's memory."""
    return {name: np.array(array) for name, array in flatten(state).items()}


def tensors(state: AgentState, group: str) -> Tensors:
    found = arrays_of(state).items()
    mine = ((n.lstrip("."), torch.as_tensor(a)) for n, a in found if group_of(n, a) == group)
    return OrderedDict(mine)


def with_tensors(
    state: AgentState, group: str, new: Mapping[str, Any], *, strict: bool
) -> AgentState:
    """The state with some of a group's tensors changed; what does not fit is a RuntimeError, as
    PyTorch's own `load_state_dict` has it."""
    arrays = arrays_of(state)
    own = {name.lstrip("."): name for name, a in arrays.items() if group_of(name, a) == group}
    missing, unknown = sorted(own.keys() - new.keys()), sorted(new.keys() - own.keys())
    if strict and (missing or unknown):
        raise RuntimeError(f"the parameters of '{group}' lack {missing} and have {unknown} besides")
    for name in new.keys() & own.keys():
        value = torch.as_tensor(new[name]).detach().cpu().numpy()
        like = arrays[own[name]]
        if value.shape != like.shape:
            raise RuntimeError(f"{name} is of the shape {value.shape}, not {like.shape}")
        arrays[own[name]] = value.astype(like.dtype)
    changed: AgentState = unflatten(state, arrays)
    return changed
