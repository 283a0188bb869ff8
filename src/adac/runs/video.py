"""Videos of episodes."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adac.errors import UserError, missing_extra

Env = gymnasium.Env[Any, Any]


VIDEOS = "videos"  # of a run folder: those that were taken while it was trained


class Video:
    """Frames to an .mp4 or .gif file, at the task's own speed."""

    @staticmethod
    def require(path: Path) -> Any:
        """imageio, where such a video can be written."""
        try:
            import imageio.v2 as imageio
        except ImportError:
            raise missing_extra("a video", "video") from None
        if path.suffix not in (".mp4", ".gif"):
            raise UserError(f"a video is written as .mp4 or .gif, not '{path.suffix}'")
        return imageio

    def __init__(self, path: Path, env: Env):
        imageio = self.require(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        fps = float(env.metadata.get("render_fps") or 30)
        options: dict[str, Any] = {"fps": fps}
        if path.suffix == ".mp4":
            options |= {"macro_block_size": 2, "codec": "libx264", "quality": 7}
        else:
            options = {"duration": 1000 / min(fps, 50.0), "loop": 0}
        self._writer = imageio.get_writer(path, **options)

    def add(self, frame: Any, episode: int, so_far: float) -> None:
        """A picture of an episode, with its number and its return so far above it."""
        if frame is None:
            raise UserError("this task does not render to arrays: no video can be made of it")
        with warnings.catch_warnings():
            # The encoder is another program: JAX's warning of a fork does not concern it.
            warnings.filterwarnings("ignore", ".*os.fork", RuntimeWarning)
            captioned = caption(
                np.asarray(frame, np.uint8), f"episode {episode}, return {so_far:,.1f}"
            )
            self._writer.append_data(captioned)

    def close(self) -> None:
        self._writer.close()


def caption(frame: NDArray[np.uint8], text: str) -> NDArray[np.uint8]:
    """The frame with a line of text on a strip above it, where no player puts its buttons."""
    from PIL import Image, ImageDraw, ImageFont  # what imageio itself needs

    height, width = frame.shape[:2]
    size = max(height // 24, 10)
    strip = Image.new("RGB", (width, 2 * size), "#16181d")
    font = ImageFont.load_default(size)
    ImageDraw.Draw(strip).text((size, size), text, "white", font, anchor="lm")
    return np.concatenate([np.asarray(strip), frame[..., :3]])
