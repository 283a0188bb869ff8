"""Observations of any space become vectors, with Gymnasium's own tools."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from adac import envs
from adac.errors import UserError

SPACES: dict[str, spaces.Space[Any]] = {
    "vector": spaces.Box(-1, 1, (3,)),
    "matrix": spaces.Box(-1, 1, (2, 3)),
    "number": spaces.Box(-1, 1, ()),
    "discrete": spaces.Discrete(5, start=2),
    "bits": spaces.MultiBinary(4),
    "several": spaces.MultiDiscrete([3, 2]),
    "tuple": spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Discrete(3))),
    "dict": spaces.Dict(
        {"b": spaces.Box(-1, 1, (2,)), "a": spaces.Dict({"c": spaces.MultiBinary(2)})}
    ),
}


def batched(space: spaces.Space[Any], items: list[Any]) -> Any:
    return concatenate(space, items, create_empty_array(space, len(items)))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_one_and_a_batch_are_what_gymnasium_flattens(name: str, count: int) -> None:
    space = SPACES[name]
    space.seed(0)
    items = [space.sample() for _ in range(count)]
    expected = np.stack([spaces.flatten(space, item) for item in items]).astype(np.float32)
    rows, several = envs.vectors(space, batched(space, items))
    assert several
    np.testing.assert_array_equal(rows, expected)
    one, several = envs.vectors(space, items[0])
    assert not several
    np.testing.assert_array_equal(one, expected[:1])
    assert one.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("vector", np.zeros(4)),
        ("vector", np.zeros((2, 2, 3))),
        ("vector", "three"),
        ("matrix", np.zeros(6)),
        ("discrete", np.zeros((2, 2), int)),
        ("dict", {"b": np.zeros(2)}),
        ("dict", {"b": np.zeros((4, 2)), "a": {"c": np.zeros((3, 2))}}),
        ("dict", np.zeros(4)),
        ("tuple", (np.zeros(2),)),
    ],
)
def test_what_is_no_observation_is_one_sentence(name: str, wrong: Any) -> None:
    with pytest.raises(UserError, match="an observation of this task is") as caught:
        envs.vectors(SPACES[name], wrong)
    assert "\n" not in str(caught.value)


IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (IMAGE, "pictures"),
        (spaces.Dict({"camera": IMAGE, "joints": spaces.Box(-1, 1, (2,))}), "pictures"),
        (spaces.Tuple((spaces.Discrete(2), spaces.Dict({"camera": IMAGE}))), "pictures"),
        (spaces.Sequence(spaces.Discrete(2)), "not of one size"),
    ],
)
def test_pictures_and_what_has_no_size_are_refused(space: spaces.Space[Any], words: str) -> None:
    with pytest.raises(UserError, match=f"^Task .*{words}"):
        envs.require_flattenable(space, "Task")


def test_a_vector_is_left_alone() -> None:
    env = gymnasium.make("MountainCarContinuous-v0")
    assert envs.flattened(env) is env
