"""RL Zoo with adac's agents: `python -m adac.sb3.zoo train --algo adac --env Pendulum-v1`.

In a program of one's own, one line does it: `import adac.sb3.zoo; adac.sb3.zoo.register()`.
The Zoo takes `--conf-file adac.sb3.zoo` as a module with `hyperparams`.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

from adac.core.presets import AGENTS
from adac.errors import AdacError, missing_extra
from adac.sb3 import ADAC, agent_class

HYPERPARAMETERS = Path(__file__).parent / "hyperparams" / "adac.yml"
# Where the Zoo keeps its scripts: its own command imports those that plot whatever is asked of it,
# and these need packages that it does not install.
SCRIPTS = {
    "train": "rl_zoo3.train",
    "enjoy": "rl_zoo3.enjoy",
    "plot_train": "rl_zoo3.plots",
    "plot_from_file": "rl_zoo3.plots",
    "all_plots": "rl_zoo3.plots",
}


def register() -> list[str]:
    """Make `adac`, and every agent whose name the Zoo does not have, an algorithm of it."""
    try:
        from rl_zoo3 import ALGOS
    except ImportError:
        raise missing_extra("RL Zoo", "zoo") from None
    new = {"adac": ADAC} | {name: agent_class(name) for name in AGENTS if name not in ALGOS}
    ALGOS.update(new)
    return list(new)


def __getattr__(name: str) -> Any:
    if name != "hyperparams":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import yaml

    return yaml.safe_load(HYPERPARAMETERS.read_text("utf-8"))


def main() -> None:
    """The Zoo's own scripts, with adac's hyper-parameters where an agent of adac's is asked for."""
    try:
        names = register()
    except AdacError as error:
        sys.exit(str(error))
    script = sys.argv[1] if len(sys.argv) > 1 else ""
    if script not in SCRIPTS:
        sys.exit(f"say what to do: {', '.join(SCRIPTS)}")
    try:
        run = getattr(importlib.import_module(SCRIPTS[script]), script)
    except ModuleNotFoundError as error:
        sys.exit(f"the Zoo's {script} needs {error.name}: pip install 'rl_zoo3[plots]'")
    del sys.argv[1]
    words = set(sys.argv)
    if script == "train" and words & set(names) and not words & {"-conf", "--conf-file"}:
        sys.argv += ["--conf-file", str(HYPERPARAMETERS)]
    run()


if __name__ == "__main__":
    main()
