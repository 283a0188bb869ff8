"""Videos of the target policy while a run goes on: videos/step-….mp4 in its folder."""

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from adac.errors import AdacError
from adac.runs.files import refuse_links
from adac.runs.video import VIDEOS, Video
from adac.training.evaluation import evaluate

if TYPE_CHECKING:
    from adac.training.learner import Learner


def require_renderable(learner: "Learner", folder: Path) -> None:
    """Said before hours of training, not after: the extra is there, and the task renders."""
    env = learner.make_env(render_mode="rgb_array")
    try:
        Video.require(folder / VIDEOS / "first.mp4")
        env.reset(seed=0)
        env.render()
    finally:
        env.close()


def record(learner: "Learner", path: Path, episodes: int = 1) -> None:
    """Episodes of π on an environment of its own; the run is not disturbed.

    The file appears when it is whole.
    """
    env = learner.make_env(render_mode="rgb_array")
    beside = path.with_name(f".{path.name}")
    video = Video(beside, env)
    try:
        evaluate(
            learner.policy,
            env,
            episodes,
            learner.seed,
            salt=learner.step,
            name=learner.env_id,
            frame=video.add,
        )
    finally:
        video.close()
        env.close()
    os.replace(beside, path)


def record_run(learner: "Learner", folder: Path) -> None:
    """At this step; a video that fails costs a warning, not the run."""
    try:
        refuse_links(folder / VIDEOS)
        record(learner, folder / VIDEOS / f"step-{learner.step:09}.mp4")
    except (AdacError, OSError) as error:
        warnings.warn(f"no video at step {learner.step:,}: {error}", stacklevel=2)
