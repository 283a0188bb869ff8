"""Videos of episodes."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from adac.errors import UserError, missing_extra

Env = gymnasium.Env[Any, Any]


class Video:
    """Frames to an .mp4 or .gif file, at the task's own speed."""

    def __init__(self, path: Path, env: Env):
        try:
            import imageio.v2 as imageio
        except ImportError:
            raise missing_extra("a video", "video") from None
        if path.suffix not in (".mp4", ".gif"):
            raise UserError(f"a video is written as .mp4 or .gif, not '{path.suffix}'")
        path.parent.mkdir(parents=True, exist_ok=True)
        fps = float(env.metadata.get("render_fps") or 30)
        options: dict[str, Any] = {"fps": fps}
        if path.suffix == ".mp4":
            options |= {"macro_block_size": 2, "codec": "libx264", "quality": 7}
        else:
            options = {"duration": 1000 / min(fps, 50.0), "loop": 0}
        self._writer = imageio.get_writer(path, **options)

    def add(self, frame: Any) -> None:
        if frame is None:
            raise UserError("this task does not render to arrays, so it can not be filmed")
        with warnings.catch_warnings():
            # The encoder is another program: JAX's warning of a fork does not concern it.
            warnings.filterwarnings("ignore", ".*os.fork", RuntimeWarning)
            self._writer.append_data(np.asarray(frame, np.uint8))

    def close(self) -> None:
        self._writer.close()
