"""docs/reference, written from the code: command line, settings, agents, metrics, run folders.

python tools/reference.py          writes the pages anew

A command, an option, an agent, a column or an entry without a sentence is an error.
tests/tools/test_reference.py fails where a page is older than the code.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from adac.cli.main import app
from adac.core import settings, synonyms
from adac.core.agent import PARTS, Agent
from adac.core.fields import sentence
from adac.core.presets import AGENTS, DEFAULT, make
from adac.core.settings import to_json
from adac.runs.csv_table import EVALUATION_COLUMNS, GAP_COLUMNS
from adac.runs.folder import CONFIG, PLAN
from adac.training.compiled import Program, metric_names
from adac.training.train import LEADING

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- written by tools/reference.py -->"

COLUMNS = {
    "step": "Environment steps so far, over all environments.",
    "episodes": "Episodes that have ended; in evaluations.csv, episodes of this evaluation.",
    "episode_return": "Mean return of the training episodes that ended since the last row.",
    "episode_length": "Their mean length in environment steps.",
    "episode_bonus": "Their mean sum of intrinsic rewards.",
    "steps_per_second": "Environment steps per second since the last row.",
    "coverage": "Cells of the state space that were visited. A maze has its own cells; elsewhere "
    "the grid is fitted to the first states.",
    "success_rate": "Share of these episodes whose last `info` says `is_success` or `success`; "
    "empty where the task has neither. A keyword of `--info` is a column "
    "`info_KEYWORD`, its mean at the episodes' ends.",
    "critic_loss": "Loss of all critics together, of the last minibatch.",
    "actor_loss": "Loss of the target policy π.",
    "behaviour_loss": "Loss that trains the behaviour policy μ.",
    "q": "Mean value of the task critic on the last minibatch.",
    "q_behaviour": "Mean value of the behaviour critic, which sees the bonus too.",
    "temperature": "SAC's temperature α.",
    "beta": "β, the weight of μ's entropy.",
    "entropy_mu": "Estimate of μ's entropy, where β is tuned to reach one.",
    "bias": "Distance between μ's mean action and π's action (Figure 3 of the paper).",
    "spread": "Standard deviation of μ within a state, before the action noise.",
    "saturation_pi": "Share of π's actions beyond 0.98 of their bound. Near 1 is a collapse.",
    "saturation_mu": "The same of μ.",
    "bonus": "Mean bonus of the last minibatch.",
    "reward_unit": "What the task's rewards are divided by, with `reward_units`.",
    "behaviour_unit": "The same for the behaviour's, bonus included.",
    "bonus_scale": "What the raw novelty is divided by.",
    "bonus_mu": "Bonus that μ's recent actions are expected to bring.",
    "bonus_pi": "Bonus that π's actions would be expected to bring in the same states.",
    "bonus_gap": "bonus_mu − bonus_pi.",
    "model_loss": "Loss of the intrinsic reward's own model.",
    "model_kl": "VIME: divergence of the model's weights from their prior.",
    "inverse_loss": "ICM: loss of the inverse model.",
    "cells_visited": "Counts: share of the cells that were visited.",
    "curiosity": "Weight of the information gain, where it is tuned.",
    "gain": "Information gain that the actions are expected to bring.",
    "gain_std": "Its standard deviation over the minibatch.",
    "gain_over_slow": "How much more gain than the slowly following copy of the policy expects.",
    "policy_distance": "Distance between the policy with noisy weights and the one without.",
    "weight_noise": "σ of the noise on the weights.",
    "mean_return": "Mean return of the target policy π over the episodes of an evaluation.",
    "std_return": "Standard deviation over these episodes.",
    "min_return": "The lowest of them.",
    "max_return": "The highest of them.",
    "mean_length": "Their mean length in environment steps.",
    "wall_seconds": "Seconds of training so far, over all resumes.",
    "episode_bonus_mu": "Discounted bonus of episodes that μ plays.",
    "episode_bonus_pi": "Discounted bonus of episodes that π plays from the same starts.",
    "episode_bonus_gap": "episode_bonus_mu − episode_bonus_pi.",
}

ENTRIES = {
    "format": "`adac-run-1`. Another format is refused.",
    "env": "The Gymnasium id.",
    "env_kwargs": "What the environment is made with.",
    "env_object": "True where the environment was given as an object: give it to `load` again.",
    "env_factory": "True where a function or class made it: give that to `load` again.",
    "subprocesses": "True where each environment has a process of its own.",
    "info_keywords": "Keywords of the task's `info` that are columns of the tables.",
    "from": "The run whose weights this one began with.",
    "changes": "Settings that were changed on the way, and at which step.",
    "data": "Where transitions came from that the run did not collect.",
    "offline": "Updates from them alone, before the first step.",
    "agent": "Every setting of the agent. `kind` is the class of a part.",
    "agent_name": "The named agent, or `custom`.",
    "label": "Its line in a legend.",
    "seed": "The run's seed. Every random number comes from it.",
    "num_envs": "Environments side by side.",
    "versions": "Python, adac, JAX and the simulators that the run was started with.",
    "steps": "Environment steps that the run is to take.",
    "horizon": "Steps over which β is annealed and learning rates fall.",
    "eval_every": "Steps between evaluations; 0 is never.",
    "eval_episodes": "Episodes of an evaluation.",
    "checkpoint_every": "Steps between checkpoints; 0 is only at the end.",
    "log_every": "Steps between rows of metrics.csv.",
    "save_best": "True where the policy of the best evaluation is kept.",
    "video_every": "Steps between videos of the target policy; 0 is none.",
    "stop_return": "The run ends when an evaluation's mean return reaches this.",
}


FILES = {
    "config.json": "Task, agent, seed and schedule: everything needed to repeat the run.",
    "metrics.csv": "[Losses and diagnostics](metrics.md#metricscsv), every `log_every` steps.",
    "evaluations.csv": "[Returns of π](metrics.md#evaluationscsv), every `eval_every` steps.",
    "checkpoint/step-….json": "A manifest: the files of one checkpoint, with lengths and "
    "checksums. The newest two are kept.",
    "checkpoint/*.safetensors": "Weights, optimisers, unfinished episodes; the replay buffer in "
    "segments.",
    "done.json": "A trial of a sweep is finished. Names the commit that it was run from.",
    "videos/step-….mp4": "An episode of π, every `video_every` steps.",
    "failure.txt": "Why the last attempt at a trial of a sweep failed.",
}


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |"
                     for row in lines)  # fmt: skip


# The command line ------------------------------------------------------------------------------


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its full name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word in inner:
        yield from commands(inner[word], f"{name} {word}")


def command_page() -> str:
    parts = [
        "# The command line",
        NOTE,
        "`adac COMMAND --help` prints the same. `adac --debug COMMAND …` shows the traceback of a "
        "failure. The exit code is 0 when all is well.",
    ]
    for name, command in commands(typer.main.get_command(app), "adac"):
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
        line = " ".join([name, *(_metavar(p) for p in arguments), *(["[OPTIONS]"] * bool(options))])
        rows = [(_choices(p), "required" if p.required else "", _help(name, p)) for p in arguments]
        rows += [(" ".join(f"`{o}`" for o in p.opts), _default(p), _help(name, p)) for p in options]
        text = command.help.strip().split("\n\n")[0] if command.help else ""
        if not text:
            raise SystemExit(f"{name} has no help")
        parts += [f"## {name}", text.replace("\n", " "), f"```text\n{line}\n```"]
        if rows:
            parts.append(table(("option", "default", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _choices(parameter: Any) -> str:
    return " or ".join(f"`{one}`" for one in _metavar(parameter).split("|"))


def _help(command: str, parameter: Any) -> str:
    if not getattr(parameter, "help", None):
        raise SystemExit(f"{command}: {parameter.name} has no help")
    return str(parameter.help).replace("\n", " ")


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    if option.required:
        return "required"
    if option.default is None or option.is_flag:
        return ""
    return f"`{option.default}`"


# Agents ----------------------------------------------------------------------------------------


def agent_page() -> str:
    rows = []
    for name, (text, build) in AGENTS.items():
        kinds = {part: value["kind"] for part, value in to_json(build()).items()
                 if isinstance(value, dict)}  # fmt: skip
        mark = f"**`{name}`**" if name == DEFAULT else f"`{name}`"
        parts = (f"`{kinds[part]}`" if part in kinds else "–"
                 for part in ("base", "explorer", "intrinsic", "critic"))  # fmt: skip
        rows.append((mark, text, *parts))
    parts_ = [
        "# Agents",
        NOTE,
        "Each name is one value of base × explorer × intrinsic × critic. `--agent NAME` and "
        '`adac.Learner(env, "NAME")` take it; `--set` changes any part or setting of it. '
        f"The default is `{DEFAULT}`. [Settings](settings.md) has every setting.",
        table(("name", "what it is", "base", "explorer", "intrinsic", "critic"), rows),
        "## The parts",
        "Every combination is an agent: `--set explorer=ColouredNoise intrinsic=Rnd`. Dashes and "
        "small letters will do (`coloured-noise`), and bonuses add up (`counts+rnd`).",
    ]
    for part in ("base", "explorer", "intrinsic", "critic"):
        kinds_ = sorted(settings.kinds(part).items())
        kinds_ = [(name, kind) for name, kind in kinds_ if kind.__module__.startswith("adac.")]
        rows = [(f"`{name}`", _first_sentence(kind)) for name, kind in kinds_]
        parts_ += [f"### {part}", table(("name", "what it is"), rows)]
    return "\n\n".join(parts_) + "\n"


def _first_sentence(kind: type[Any]) -> str:
    if not kind.__doc__ or kind.__doc__.startswith(f"{kind.__name__}("):
        raise SystemExit(f"{kind.__name__} has no sentence")
    return kind.__doc__.strip().split("\n\n")[0].replace("\n", " ").replace("  ", " ")


# Metrics ---------------------------------------------------------------------------------------


def looked_at() -> Iterator[Agent]:
    """Agents that together report every column."""
    small = {"batch_size": 4}
    yield from (
        settings.override(make(name), small) for name in ("td3", "adac-sac", "adac-explore")
    )
    for part in ("explorer", "intrinsic"):
        for name, kind in settings.kinds(part).items():
            if not kind.__module__.startswith("adac.") or name in ("Then", "Mixture", "Sum"):
                continue  # made of others, whose columns they have
            start = make("adac-td3" if part == "intrinsic" else "td3")
            yield settings.override(start, {part: name} | small)


def metrics_page() -> str:
    reported: set[str] = set()
    for agent in looked_at():
        reported |= set(metric_names(Program(agent, 3, 1)))
    own = [*LEADING, "episode_bonus", *(n for n in COLUMNS if n in reported)]
    without = sorted(reported - COLUMNS.keys())
    if without:
        raise SystemExit(f"tools/reference.py has no sentence for {', '.join(without)}")
    evaluated = [*EVALUATION_COLUMNS, *GAP_COLUMNS]
    return "\n\n".join([
        "# Metrics",
        NOTE,
        "A run has the columns that its agent reports. TensorBoard and Weights & Biases have the "
        "same names after `train/` and `eval/`. `adac plot RUN -o FILE --metric NAME` draws any.",
        "## metrics.csv",
        "One row every `log_every` steps.",
        table(("column", "meaning"), [(f"`{name}`", COLUMNS[name]) for name in own]),
        "Bonuses that add up report each column once per bonus, with its name before it. Where β "
        f"is tuned there is also `entropy_mu`: {COLUMNS['entropy_mu'][0].lower()}"
        f"{COLUMNS['entropy_mu'][1:]}",
        "## evaluations.csv",
        "One row every `eval_every` steps. The target policy π plays, without noise, on "
        "environments of its own. The last three columns are there with an intrinsic reward.",
        table(("column", "meaning"), [(f"`{name}`", COLUMNS[name]) for name in evaluated]),
    ]) + "\n"  # fmt: skip


# Run folders -----------------------------------------------------------------------------------


def folder_page() -> str:
    names = ["format", *dict.fromkeys([*CONFIG, *PLAN]), "versions"]
    missing = sorted(set(names) ^ ENTRIES.keys())
    if missing:
        raise SystemExit(f"tools/reference.py and config.json differ in {', '.join(missing)}")
    return "\n\n".join([
        "# Run folders",
        NOTE,
        "A run is a folder. It holds JSON, CSV and safetensors: reading one runs no code.",
        table(("file", "what it holds"), [(f"`{name}`", text) for name, text in FILES.items()]),
        "## config.json",
        table(("entry", "meaning"), [(f"`{name}`", ENTRIES[name]) for name in names]),
        "The checkpoint carries a copy of task, agent and seed under its checksum. A `config.json` "
        "that was edited is refused. It also carries a checksum over the rows of each table: where "
        "one was changed, `adac resume` says so and goes on.",
    ]) + "\n"  # fmt: skip


def settings_page() -> str:
    """Every class that a part can be, with its settings."""
    agents_own = [f for f in dataclasses.fields(Agent) if f.name not in PARTS]
    lines = [
        "# Settings\n",
        "`--set NAME=VALUE` and `overrides={...}` take any of these; `adac list settings AGENT` "
        "shows an agent's own values. A part is chosen whole by its class or alias: "
        "`--set explorer=pink`.\n",
        "## The agent's own\n",
        _fields(agents_own),
    ]
    for part in PARTS:
        lines.append(f"\n## {part}\n")
        for name, kind in sorted(settings.kinds(part).items()):
            if not kind.__module__.startswith("adac."):
                continue  # somebody's own, imported beside this
            aliases = ", ".join(f"`{alias}`" for alias in getattr(kind, "aliases", ()))
            lines.append(
                f"### {name}\n\n{_first_sentence(kind)}{aliases and f' Alias: {aliases}.'}\n"
            )
            lines.append(_fields(dataclasses.fields(kind)))
    words = {word: (name,) for word, name in synonyms.SYNONYMS.items()} | synonyms.SEVERAL
    rows = [(f"`{word}`", ", ".join(f"`{n}`" for n in words[word])) for word in sorted(words)]
    lines += [
        "\n## Names from elsewhere\n",
        "What Stable-Baselines3, CleanRL and most papers call them is understood too.\n",
        table(("theirs", "ours"), rows),
    ]
    return "\n".join(lines)


def _fields(fields: Any) -> str:
    rows = [(f"`{f.name}`", f"`{_value(f)}`", sentence(f)) for f in fields]
    return table(("setting", "default", "meaning"), rows) + "\n" if rows else "No settings.\n"


def _value(field: Any) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return type(field.default_factory()).__name__
    return "to be given" if field.default is dataclasses.MISSING else settings.typed(field.default)


PAGES = {
    "settings.md": settings_page,
    "command-line.md": command_page,
    "agents.md": agent_page,
    "metrics.md": metrics_page,
    "run-folder.md": folder_page,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, write in PAGES.items():
        (FOLDER / name).write_text(write(), encoding="utf-8")
