"""An agent's state while it runs: a short list of arrays, and the calls that read and move it."""

from typing import Any

from jax import Array

from adac.core.agent import AgentState, Metrics
from adac.training.compiled import Late, Steps


class Live:
    def __init__(self, steps: Steps, key: Array):
        self.steps, self.layout = steps, steps.layout
        self.metrics: Metrics = {}  # what the latest updates reported
        self.arrays = steps.init(key)

    @property
    def state(self) -> AgentState:
        return self.steps.build(self.arrays)

    @state.setter
    def state(self, state: AgentState) -> None:
        self.arrays = self.steps.pack(state)

    def update(
        self, rows: Any, key: Array, count: Any, progress: Any, *, improve: bool, late: Late = ()
    ) -> None:
        """Asynchronous, as every call here: whoever reads a result waits for it."""
        moving, still = self.layout.moving[improve], self.layout.still[improve]
        new, metrics = self.steps.update(
            moving.of(self.arrays), still.of(self.arrays), rows, late, key, count, progress,
            improve=improve,
        )  # fmt: skip
        moving.put(self.arrays, new)
        self.metrics |= metrics

    def act(self, obs: Any, memory: Any, first: Any, key: Array, number: Any) -> tuple[Array, Any]:
        weights = self.layout.behaviour.of(self.arrays)
        return self.steps.act(weights, obs, memory, first, key, number)

    def greedy(self, obs: Any) -> Array:
        return self.steps.greedy(self.layout.target.of(self.arrays), obs)

    def bonus(self, obs: Any, action: Any, next_obs: Any) -> Array:
        return self.steps.bonus(self.layout.intrinsic.of(self.arrays), obs, action, next_obs)

    def observe(self, obs: Any) -> None:
        part = self.layout.statistics
        part.put(self.arrays, self.steps.observe(part.of(self.arrays), obs))

    def diagnose(self, rows: Any, recent: Any, key: Array, number: Any) -> Metrics:
        return self.steps.diagnose(self.arrays, rows, recent, key, number)
