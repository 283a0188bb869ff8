"""What of a run goes to the hub, and what of a stranger's repository may come from it."""

import os
import re
from pathlib import Path
from typing import Any

from adac.errors import RunError, UserError, missing_extra
from adac.runs.checkpoint import Store

README, CURVE, VIDEO, POLICY = "README.md", "curve.png", "replay.mp4", "policy.safetensors"
CONFIG = "config.json"
TABLES = (
    "metrics.csv",
    "evaluations.csv",
    "snapshots.csv",
    "rollouts.csv",
    "visits.csv",
    "done.json",
)
# The replay buffer stays at home: it is gigabytes, and nobody needs it to run or judge a policy.
OURS = re.compile(
    r"config\.json|(metrics|evaluations|snapshots|rollouts|visits)\.csv|done\.json"
    r"|README\.md|curve\.png|replay\.mp4|policy\.safetensors|best/policy\.safetensors"
    r"|checkpoint/step-[0-9]{12,20}\.(json|safetensors)"
)
MOST_FILES, MOST_BYTES = 64, 2**31
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


def connect() -> Any:
    """The hub's client, at HF_ENDPOINT if that is set; its token is the user's own."""
    try:
        import huggingface_hub
    except ImportError:
        raise missing_extra("the Hugging Face hub", "hub") from None
    return huggingface_hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"))


def require_name(repository: str) -> None:
    if not REPOSITORY.fullmatch(repository):
        raise UserError(f"a repository of the hub is USER/NAME, not '{repository}'")


def explain(error: Exception, what: str) -> RunError:
    """The hub's errors are long; their first line says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[0] if lines else type(error).__name__
    return RunError(f"{what}: {reason}")


def weights(folder: Path) -> list[Path]:
    """The newest checkpoint without its replay buffer: a manifest, and the file that it names."""
    step = Store(folder / "checkpoint").last_step()
    if step is None:
        raise UserError(f"{folder} has no checkpoint to push")
    return [folder / "checkpoint" / f"step-{step:012}.{kind}" for kind in ("json", "safetensors")]
