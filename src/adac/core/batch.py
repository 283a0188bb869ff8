"""What an update reads: a minibatch of transitions."""

from typing import NamedTuple

from jax import Array


class Batch(NamedTuple):
    obs: Array  # [B, o]
    action: Array  # [B, d], in [-1, 1]
    reward: Array  # [B]
    bonus: Array  # [B], the intrinsic reward stored at collection
    # [B], what is left of next_obs' value before γ: 0 after a termination, 1 otherwise (a time
    # limit bootstraps), γ^(n−1) after n steps of reward
    continues: Array
    next_obs: Array  # [B, o]


def batch_fields(obs_dim: int, action_dim: int) -> dict[str, tuple[int, ...]]:
    """The shape of one transition's part in each field of a `Batch`: what replay stores."""
    wide = {"obs": (obs_dim,), "action": (action_dim,), "next_obs": (obs_dim,)}
    return {name: wide.get(name, ()) for name in Batch._fields}
