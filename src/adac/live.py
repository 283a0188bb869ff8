"""An agent's state while it runs: a flat list of arrays, and the calls that read and move it."""

from typing import Any

import jax
from jax import Array

from adac.agent import AgentState, Metrics
from adac.steps import Late, Leaves, Steps


class Live:
    def __init__(self, steps: Steps, key: Array):
        self.steps, self.layout = steps, steps.layout
        self.metrics: Metrics = {}  # what the latest updates reported
        self.state = steps.init(key)

    @property
    def state(self) -> AgentState:
        built: AgentState = self.layout.whole.build(self.leaves)
        return built

    @state.setter
    def state(self, state: AgentState) -> None:
        self.leaves: Leaves = jax.tree.leaves(state)

    def update(
        self, rows: Any, key: Array, count: Any, progress: Any, *, improve: bool, late: Late = ()
    ) -> None:
        """Asynchronous, as every call here: whoever reads a result waits for it."""
        moving, still = self.layout.moving[improve], self.layout.still[improve]
        moved, metrics = self.steps.update(
            moving.of(self.leaves), still.of(self.leaves), rows, late, key, count, progress,
            improve=improve,
        )  # fmt: skip
        moving.put(self.leaves, moved)
        self.metrics |= metrics

    def act(self, obs: Any, memory: Any, first: Any, key: Array, number: Any) -> tuple[Array, Any]:
        weights = self.layout.behaviour.of(self.leaves)
        return self.steps.act(weights, obs, memory, first, key, number)

    def greedy(self, obs: Any) -> Array:
        return self.steps.greedy(self.layout.target.of(self.leaves), obs)

    def bonus(self, obs: Any, action: Any, next_obs: Any) -> Array:
        return self.steps.bonus(self.layout.intrinsic.of(self.leaves), obs, action, next_obs)

    def observe(self, obs: Any) -> None:
        part = self.layout.statistics
        part.put(self.leaves, self.steps.observe(part.build(part.of(self.leaves)), obs))

    def diagnose(self, rows: Any, recent: Any, key: Array, number: Any) -> Metrics:
        return self.steps.diagnose(self.leaves, rows, recent, key, number)
