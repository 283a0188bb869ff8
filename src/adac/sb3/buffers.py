"""A replay buffer of Stable-Baselines3's as a safe file, and minibatches of it as rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adac.errors import UserError
from adac.runs.checkpoint import Arrays
from adac.sb3 import files
from adac.sb3.observations import Edge
from adac.sb3.plain import NotEncodableError, decode, encode
from adac.training.compiled import Program
from adac.training.replay import Rows

INFOS = "infos"  # a HER buffer's, one dictionary a transition
# Numbers that change while a buffer is filled; sizes are the constructor's.
COUNTERS = ("pos", "full")


def rows_of(sample: Any, edge: Edge, program: Program, discount: float) -> Rows:
    """A minibatch as an update reads it. An n-step return's last discount is in `continues`."""
    count = len(sample.rewards)
    continues = 1.0 - sample.dones.cpu().numpy()
    if getattr(sample, "discounts", None) is not None:
        continues = continues * sample.discounts.cpu().numpy() / discount
    return program.rows.pack(
        {
            "obs": edge.of_buffer(sample.observations),
            "action": sample.actions.cpu().numpy().reshape(count, program.action_dim),
            "reward": sample.rewards.cpu().numpy(),
            "bonus": np.zeros(count, np.float32),
            "continues": continues,
            "next_obs": edge.of_buffer(sample.next_observations),
            "ahead": np.zeros(count, np.float32),
        }
    )


def save(path: files.FilePath, buffer: Any) -> None:
    arrays = {name: array[: _filled(buffer, array)] for name, array in _arrays(buffer).items()}
    facts = {name: encode(getattr(buffer, name)) for name in COUNTERS}
    facts |= {"buffer": type(buffer).__name__, "size": buffer.buffer_size}
    if getattr(buffer, "copy_info_dict", False):
        try:
            facts[INFOS] = encode(buffer.infos[: buffer.size()].tolist())
        except NotEncodableError as error:
            raise UserError(f"an info with a {error} in it cannot be saved") from None
    files.write(path, facts, arrays, suffix="pkl")


def load(path: files.FilePath, buffer: Any) -> None:
    """Fill a buffer that is made for the same spaces."""
    facts, arrays = files.read(path, suffix="pkl")
    own = _arrays(buffer)
    described = (facts.get("buffer"), facts.get("size"))
    if described != (type(buffer).__name__, buffer.buffer_size) or own.keys() != arrays.keys():
        raise UserError(
            f"the file holds a {described[0]} of {described[1]} steps, not a "
            f"{type(buffer).__name__} of {buffer.buffer_size}: make the model with the buffer's "
            "arguments"
        )
    position, full = facts.get("pos"), facts.get("full")
    if type(position) is not int or type(full) is not bool or not 0 <= position < described[1]:
        raise UserError("the file's transitions are not as many as it says")
    buffer.pos, buffer.full = position, full
    for name, array in own.items():
        found = arrays[name]
        if found.shape != array[: _filled(buffer, array)].shape or found.dtype != array.dtype:
            raise UserError(f"{name} in the file is of another size than the environment's")
        if not np.isfinite(found).all():
            raise UserError(f"{name} in the file holds numbers that are not finite")
        array[: len(found)] = found
    if getattr(buffer, "copy_info_dict", False):
        _put_infos(buffer, decode(facts.get(INFOS)))


def _put_infos(buffer: Any, infos: Any) -> None:
    rows = infos if isinstance(infos, list) else []
    good = all(isinstance(r, list) and len(r) == buffer.n_envs for r in rows)
    if len(rows) != buffer.size() or not good:
        raise UserError("the file's infos are not those of its transitions")
    for place, row in enumerate(rows):
        buffer.infos[place] = row


def _filled(buffer: Any, array: NDArray[Any]) -> int:
    """Rows worth writing, and one more, where `optimize_memory_usage` keeps the last next_obs; all
    of what has no row for each step."""
    each = len(array) == buffer.buffer_size
    return min(buffer.size() + 1, len(array)) if each else len(array)


def _arrays(buffer: Any) -> Arrays:
    """Every array of a buffer, those of a Dict by `name.key`."""
    found: Arrays = {}
    for name, value in vars(buffer).items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            found[name] = value
        elif isinstance(value, dict):
            found |= {f"{name}.{k}": v for k, v in value.items() if isinstance(v, np.ndarray)}
    return found
