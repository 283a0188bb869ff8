"""`adac eval` and `adac export`: what is done with a policy that has been learned."""

import json
from pathlib import Path
from typing import Annotated

import typer

from adac.cli.options import Modules, import_modules
from adac.errors import UserError

RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]


def register(app: typer.Typer) -> None:
    app.command("eval")(evaluate)
    app.command()(export)


def evaluate(
    folder: RunFolder,
    modules: Modules = None,
    episodes: Annotated[int, typer.Option(help="Episodes to play.")] = 10,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the episodes.", show_default="the run's")
    ] = None,
    video: Annotated[
        Path | None,
        typer.Option(help="Write a video of the episodes, as .mp4 or .gif.", metavar="FILE"),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="The policy of the best evaluation, not the last.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate the target policy of a run: the last one, or with --best the best."""
    from adac.runs.video import Video
    from adac.training.evaluation import evaluate as run_episodes
    from adac.training.learner import Learner
    from adac.training.policy import TargetPolicy

    import_modules(modules)
    learner = Learner.load(folder, with_replay=False)
    kept = TargetPolicy.load(folder, best=True) if best else None
    step = kept.facts.step if kept else learner.step
    env = learner.make_env(**({"render_mode": "rgb_array"} if video else {}))
    recording = Video(video, env) if video else None
    used = learner.seed if seed is None else seed
    result = run_episodes(
        kept.plain.squashed if kept else learner.policy,
        env,
        episodes,
        used,
        name=learner.env_id,
        frame=recording.add if recording else None,
    )
    if recording:
        recording.close()
    env.close()
    learner.close()
    facts = {"env": learner.env_id, "agent": learner.agent_name, "step": step, "seed": used}
    if as_json:
        print(json.dumps(facts | result.summary() | {"returns": result.returns.tolist()}))
        return
    summary = result.summary()
    said = f"{summary['mean_return']:.1f}"
    if episodes > 1:
        said += f" ± {summary['std_return']:.1f} over {episodes} episodes "
        said += f"(from {summary['min_return']:.1f} to {summary['max_return']:.1f})"
    else:
        said += " over 1 episode"
    print(f"{learner.agent_name} on {learner.env_id} at step {step:,}: {said}")
    if video:
        print(f"video: {video}")


def _target(help: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar="FILE", help=help, show_default=False)
    return option


def export(
    source: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run folder, or a file of --policy.")
    ],
    modules: Modules = None,
    onnx: Annotated[Path | None, _target("An ONNX graph: .onnx.")] = None,
    numpy: Annotated[Path | None, _target("Arrays for NumPy alone: .npz.")] = None,
    c: Annotated[Path | None, _target("One file of C without dependencies: .c or .h.")] = None,
    policy: Annotated[Path | None, _target("What adac.Policy.load reads: .safetensors.")] = None,
    best: Annotated[
        bool, typer.Option("--best", help="The policy of the best evaluation, not the last.")
    ] = False,
) -> None:
    """Write the target policy of a run for a robot, a browser or another program."""
    from adac.runs.export.policy_file import write_policy
    from adac.runs.export.to_c import write_c
    from adac.runs.export.to_numpy import write_numpy
    from adac.runs.export.to_onnx import write_onnx
    from adac.training.policy import TargetPolicy

    asked = {write_onnx: onnx, write_numpy: numpy, write_c: c, write_policy: policy}
    wanted = [(write, file) for write, file in asked.items() if file is not None]
    if not wanted:
        raise UserError("say what to write: --onnx, --numpy, --c or --policy, each with a FILE")
    import_modules(modules)
    found = TargetPolicy.load(source, best=best)
    for write, file in wanted:
        write(found.plain, found.facts, file)
        print(f"{file}: {file.stat().st_size:,} bytes")
