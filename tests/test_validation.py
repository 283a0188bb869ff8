"""Settings of a wrong type: one sentence from every part, and nothing that JAX would choke on."""

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pytest

from adac.core import agent, bases, critics, explorers, intrinsic, networks
from adac.core.bases import SAC, Deterministic
from adac.core.explorers import Analogous
from adac.core.intrinsic import Rnd
from adac.core.networks import Networks
from adac.core.validation import counts


def concrete(kind: Any) -> bool:
    """A part that can be built without an argument."""
    is_part = isinstance(kind, type) and dataclasses.is_dataclass(kind)
    if not is_part or getattr(kind, "__abstractmethods__", None):
        return False
    given = (f.default is not f.default_factory for f in dataclasses.fields(kind))  # both MISSING
    return all(given)


MODULES = (agent, bases, critics, explorers, intrinsic, networks)
FOUND = [getattr(m, name) for m in MODULES for name in dir(m)]
PARTS = list(dict.fromkeys(kind for kind in FOUND if concrete(kind)))
NEVER = [
    "x", "1e-3", b"x", [True], {}, {"a": 1}, set(), object(), 1j, np.array("x"), float("nan"), int,
    [[1]], ["a"],
]  # fmt: skip
NUMBERS = [None, -1, 2.5, 10**400, True, float("inf"), np.float32(1.5), np.int64(3), [1], (), ""]


@pytest.mark.parametrize("kind", PARTS)
def test_a_wrong_type_is_one_sentence_that_names_the_setting(kind: Any) -> None:
    for field in dataclasses.fields(kind):
        for value in NEVER:
            with pytest.raises(ValueError, match=rf"{field.name} must"):
                kind(**{field.name: value})


@pytest.mark.parametrize("kind", PARTS)
def test_what_is_accepted_can_be_hashed_and_anything_else_is_said(kind: Any) -> None:
    for field in dataclasses.fields(kind):
        for value in NUMBERS:
            with contextlib.suppress(ValueError):
                hash(kind(**{field.name: value}))


def test_there_are_parts_to_be_tested() -> None:
    assert {Deterministic, SAC, Networks, Analogous, Rnd, agent.Agent} <= set(PARTS)


def test_what_is_meant_is_made_so() -> None:
    made = Networks(actor_hidden=[8, np.int64(9)], latent=1e1)  # type: ignore[arg-type]
    assert (made.actor_hidden, made.latent) == ((8, 9), 10)
    assert type(made.actor_hidden[1]) is type(made.latent) is int
    same = Networks((8, 9), latent=10)
    assert made == same
    assert hash(made) == hash(same)
    assert type(Deterministic(tau=np.float64(0.5)).tau) is float
    assert SAC(target_entropy=None).target_entropy is None
    mixed = Analogous(latent_correlation=[0.0, 0.9])  # type: ignore[arg-type]
    assert mixed.latent_correlation == (0.0, 0.9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Networks(actor_hidden=256), "actor_hidden must be a list of whole numbers"),
        (lambda: Deterministic(actor_lr="1e-3"), "actor_lr must be a number, not '1e-3'"),
        (lambda: Rnd(eta=float("inf")), "eta must be at least 0, not inf"),
        (lambda: Rnd(model_features=2.5), "model_features must be a whole number"),
        (lambda: Analogous(space=[]), "space must be one of"),
        (lambda: SAC(target_entropy="auto"), "target_entropy must be a number or None"),
    ],
)
def test_sentences(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@dataclasses.dataclass(frozen=True)
class Own:
    """A part of somebody else, with an annotation that means nothing here."""

    size: "NoSuchType" = 3  # type: ignore[name-defined]  # noqa: F821

    def __post_init__(self) -> None:
        counts(self, 1, "size")


def test_a_class_of_one_s_own_may_use_any_types() -> None:
    assert Own().size == 3
