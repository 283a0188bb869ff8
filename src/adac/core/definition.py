"""What an agent is: its parts and its numbers, all that is chosen before it learns."""

from dataclasses import dataclass
from typing import Any

from adac.core.bases import Base, Deterministic
from adac.core.critics import Critic, Scalar
from adac.core.explorers import Analogous, Explorer, Then, Uniform
from adac.core.fields import choices, part, setting
from adac.core.intrinsic import Intrinsic
from adac.core.networks import Networks
from adac.core.validation import at_least, between, copies, counts

PARTS: dict[str, Any] = {
    "base": Base, "explorer": Explorer, "intrinsic": Intrinsic | None, "networks": Networks,
    "critic": Critic,
}  # fmt: skip


@dataclass(frozen=True)
class Agent:
    """Everything that is chosen before learning. A new agent is a value of this class."""

    base: Base = part(Deterministic, "How the target policy π is evaluated and improved.")
    explorer: Explorer = part(Analogous, "How the agent acts while it learns.")
    intrinsic: Intrinsic | None = setting(None, "A bonus for what is not known yet; or none.")
    networks: Networks = part(lambda: Networks(latent=16), "What makes the networks.")
    critic: Critic = part(Scalar, "What the Q-networks' numbers mean, and their loss.")
    batch_size: int = setting(100, "Transitions in a minibatch.", choices(64, 128, 256, 512))
    replay_size: int = setting(1_000_000, "Transitions that the replay buffer holds.")
    warmup: int = setting(1_000, "Uniformly random steps before the explorer acts.")
    learn_after: int = setting(1, "Transitions collected before the first update.")
    updates_per_step: float = setting(1.0, "Updates per action, however often it is repeated.")
    n_steps: int = setting(
        1, "Steps of reward before a target bootstraps (n-step returns).", choices(1, 3, 5)
    )
    hindsight: int = setting(4, "On goal tasks, goals of hindsight (HER) per real one; 0 is none.")
    normalise_obs: bool = setting(False, "Running normalisation of the observations.")
    priority_alpha: float = setting(0.0, "Replay is drawn by |TD error|^α (PER); 0: uniformly.")
    priority_beta: float = setting(0.4, "How far the loss corrects for it at first; at the end, 1.")
    reward_free: bool = setting(False, "No critic sees the task's reward, only the bonus.")
    behaviour_critics: int = setting(0, "Critics of a bonus's stream; 0: as many as the task's.")
    reward_units: bool = setting(False, "Rewards are learned in units of their root mean square.")

    def __post_init__(self) -> None:
        for name, kind in PARTS.items():
            value, wanted = getattr(self, name), getattr(kind, "__name__", kind)
            if not isinstance(value, kind):
                raise ValueError(f"{name} must be of the type {wanted}, not {value!r}")
        counts(self, 1, "batch_size", "replay_size", "n_steps")
        at_least(
            self, 0, "warmup", "learn_after", "hindsight", "updates_per_step", "priority_alpha"
        )
        copies(self, 0, "behaviour_critics")
        between(self, 0, 1, "priority_beta")
        if self.explorer.uses_latent and not self.networks.latent:
            raise ValueError(f"{type(self.explorer).__name__} needs a latent: set latent to 16")
        if self.explorer.weighs and not (self.intrinsic and self.intrinsic.promises):
            name = type(self.explorer).__name__
            raise ValueError(f"{name} needs a model's bonus: set intrinsic to information-gain")
        if self.reward_free and self.intrinsic is None:
            raise ValueError("reward_free needs a bonus to learn from: set intrinsic to rnd")

    @property
    def streams(self) -> int:
        """How many reward streams get critics: the task's, and the behaviour's if it differs."""
        if not self.explorer.disentangled or self.intrinsic is None:
            return 1
        return 1 + (self.intrinsic.parts if self.explorer.each_bonus else 1)

    @property
    def critics(self) -> tuple[int, ...]:
        """How many critics each stream has."""
        more = (self.behaviour_critics or self.base.critics,) * (self.streams - 1)
        return self.base.critics, *more

    @property
    def behaviour(self) -> Explorer:
        """Who acts while learning: random actions until the warm-up is over, then the explorer."""
        return Then(Uniform(), self.explorer, self.warmup) if self.warmup else self.explorer
