"""The model card: what the run is, its curve, its last evaluation, its settings, how to use it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adac.runs.csv_table import number_in
from adac.runs.export.facts import harmless
from adac.runs.folder import flatten


def card(
    repository: str,
    config: Mapping[str, Any],
    step: int,
    evaluations: Sequence[Mapping[str, str]],
    files: Sequence[str],
) -> str:
    env, agent = harmless(str(config["env"])), harmless(str(config["agent_name"]))
    last = evaluations[-1] if evaluations else {}
    parts = [
        _front(env, agent, last),
        f"# {agent} on {env}",
        f"A run of adac: the agent `{agent}` on `{env}`, seed {config['seed']}, "
        f"after {step:,} environment steps.",
    ]
    if last:
        parts.append(_scores(last))
    if "curve.png" in files:
        parts.append("![Learning curve of the target policy](curve.png)")
    if "replay.mp4" in files:
        parts.append("`replay.mp4` shows an episode of the target policy.")
    parts += [_usage(repository), "## Settings", _settings(config)]
    return "\n\n".join(parts) + "\n"


def _front(env: str, agent: str, last: Mapping[str, str]) -> str:
    """What the hub reads of a card: YAML, whose texts are JSON's."""
    facts: dict[str, Any] = {
        "library_name": "adac",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["reinforcement-learning", "continuous-control", "adac", env, agent],
    }
    mean, std = number_in(last, "mean_return"), number_in(last, "std_return")
    if mean is not None and std is not None:
        metric = {"type": "mean_reward", "name": "mean_reward", "value": f"{mean:.2f} ± {std:.2f}"}
        task = {"type": "reinforcement-learning", "name": "reinforcement-learning"}
        result = {"task": task, "dataset": {"name": env, "type": env}, "metrics": [metric]}
        facts["model-index"] = [{"name": agent, "results": [result]}]
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    return "\n".join(["---", *lines, "---"])


def _scores(last: Mapping[str, str]) -> str:
    names = {
        "step": "step",
        "episodes": "episodes",
        "mean_return": "mean return",
        "std_return": "standard deviation",
        "min_return": "lowest",
        "max_return": "highest",
    }
    found = {title: number_in(last, name) for name, title in names.items()}
    shown = {title: value for title, value in found.items() if value is not None}
    return _table([list(shown), [f"{value:,.6g}" for value in shown.values()]])


def _usage(repository: str) -> str:
    name = repository.split("/")[1]
    return f"""```shell
pip install 'adac[hub]'
adac pull {repository}            # into {name}/
adac eval {name} --video {name}.mp4
```

```python
import adac

policy = adac.Policy.load("{name}/policy.safetensors")
action, _ = policy.predict(obs)
```"""


def _settings(config: Mapping[str, Any]) -> str:
    flat = flatten({"num_envs": config["num_envs"], **config["agent"]})
    flat |= flatten(config["env_kwargs"], "env_kwargs.")
    rows = [[harmless(name), f"`{harmless(json.dumps(value))}`"] for name, value in flat.items()]
    return _table([["setting", "value"], *rows])


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *body])
