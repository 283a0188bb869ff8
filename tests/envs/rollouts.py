"""A trajectory as bytes: equal only if every number of it is."""

import hashlib
from typing import Any

import gymnasium
import numpy as np


def fingerprint(env: gymnasium.Env[Any, Any], seed: int, steps: int) -> str:
    """Of observations, rewards and ends under seeded random actions, over resets without a seed."""
    digest = hashlib.sha256()
    actions = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    digest.update(observation.tobytes())
    for _ in range(steps):
        action = actions.uniform(env.action_space.low, env.action_space.high)
        observation, reward, terminated, truncated, _ = env.step(action.astype(np.float32))
        digest.update(observation.tobytes() + np.float64(reward).tobytes())
        digest.update(bytes([terminated, truncated]))
        if terminated or truncated:
            observation, _ = env.reset()
            digest.update(observation.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    # Another process's account: what importing adac loads, its trajectories, what these load.
    import json
    import sys

    from adac import envs

    steps, *ids = sys.argv[1:]
    at_import = sorted(sys.modules)
    prints = {task_id: fingerprint(envs.make(task_id), seed=3, steps=int(steps)) for task_id in ids}
    print(json.dumps({"at_import": at_import, "prints": prints, "at_end": sorted(sys.modules)}))
