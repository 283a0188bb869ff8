"""What a program does while a run goes on: a function after every step, or an object for events."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adac.errors import UserError
from adac.training.evaluation import Evaluation

if TYPE_CHECKING:
    from adac.training.learner import Learner


class Callback:
    """Override what you need. `on_step` and `on_evaluation` end the training by returning False."""

    def on_start(self, learner: "Learner") -> None:
        """Before the first step of this call of `learn`."""

    def on_step(self, learner: "Learner") -> bool | None:
        """After every step of all environments, and the updates that were due before it."""
        return None

    def on_evaluation(self, learner: "Learner", evaluation: Evaluation) -> bool | None:
        """After an evaluation of π; `evaluation.summary()` is its row in evaluations.csv."""
        return None

    def on_end(self, learner: "Learner") -> None:
        """At the end, once all is saved; also after Ctrl-C, and where something failed."""


StepFunction = Callable[["Learner"], bool | None]
Callbacks = Callback | StepFunction | Sequence[Callback | StepFunction]


class Together(Callback):
    """Several, in their order; the training ends where one of them says so."""

    def __init__(self, parts: Sequence[Callback]):
        self.parts = parts

    def on_start(self, learner: "Learner") -> None:
        for part in self.parts:
            part.on_start(learner)

    def on_step(self, learner: "Learner") -> bool:
        return all([not _is_false(part.on_step(learner)) for part in self.parts])

    def on_evaluation(self, learner: "Learner", evaluation: Evaluation) -> bool:
        answers = [part.on_evaluation(learner, evaluation) for part in self.parts]
        return not any(map(_is_false, answers))

    def on_end(self, learner: "Learner") -> None:
        for part in self.parts:
            part.on_end(learner)


class _EveryStep(Callback):
    def __init__(self, function: StepFunction):
        self.function = function

    def on_step(self, learner: "Learner") -> bool | None:
        return self.function(learner)


def together(given: Callbacks | None) -> Together:
    """One callback of whatever was handed in: nothing, a function, an object, a list of them."""
    if given is None:
        return Together([])
    several = given if isinstance(given, list | tuple) else [given]
    return Together([_one(part) for part in several])


def _one(given: Any) -> Callback:
    if isinstance(given, Callback):
        return given
    if hasattr(given, "init_callback"):
        raise UserError(
            f"{type(given).__name__} is one of Stable-Baselines3's callbacks, which need its own "
            "classes: write an adac.Callback (docs/howto/callbacks.md)"
        )
    if isinstance(given, type) or not callable(given):
        raise UserError(
            "callback must be a function of the learner, an adac.Callback or a list of them, "
            f"not {given!r}"
        )
    return _EveryStep(given)


def _is_false(answer: Any) -> bool:
    """False, Python's or NumPy's; nothing and 0 are not an answer."""
    return isinstance(answer, bool | np.bool_) and not answer
