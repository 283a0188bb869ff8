"""RL Zoo with adac's agents: `python -m adac.sb3.zoo train --algo adac --env Pendulum-v1`.

In a program of one's own, one line does it: `import adac.sb3.zoo; adac.sb3.zoo.register()`.
"""

import sys
from pathlib import Path

from adac.core.presets import AGENTS
from adac.errors import AdacError, missing_extra
from adac.sb3 import ADAC, agent_class

HYPERPARAMETERS = Path(__file__).parent / "hyperparams" / "adac.yml"


def register() -> list[str]:
    """Make `adac`, and every agent whose name the Zoo does not have, an algorithm of it."""
    try:
        from rl_zoo3 import ALGOS
    except ImportError:
        raise missing_extra("RL Zoo", "zoo") from None
    new = {"adac": ADAC} | {name: agent_class(name) for name in AGENTS if name not in ALGOS}
    ALGOS.update(new)
    return list(new)


def main() -> None:
    """The Zoo's own command, with adac's hyper-parameters where an agent of adac's is asked for."""
    try:
        names = register()
    except AdacError as error:
        sys.exit(str(error))
    from rl_zoo3.cli import main as zoo

    words = set(sys.argv)
    if "train" in words and words & set(names) and not words & {"-conf", "--conf-file"}:
        sys.argv += ["--conf-file", str(HYPERPARAMETERS)]
    if len(sys.argv) < 2:
        sys.exit("say what to do: train, enjoy, plot_train, plot_from_file or all_plots")
    zoo()


if __name__ == "__main__":
    main()
