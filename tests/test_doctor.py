"""`adac doctor`: each symptom is found in tables that have it, and in no others."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from adac.cli.doctor import warn
from adac.core import presets, settings
from adac.errors import UserError
from adac.runs import doctor
from adac.runs.doctor import Finding, Level, Tables, examine
from commands import adac

ROWS = 12
HEALTHY = {
    "episodes": 20, "episode_return": 300, "episode_length": 100, "q": 120, "spread": 0.3,
    "saturation_pi": 0.3,
}  # fmt: skip


def tables(agent: str = "adac-td3", config: dict[str, Any] | None = None, **cells: float) -> Tables:
    """A run whose returns rise from 100 to 400, but for these columns."""
    changed = settings.override(presets.make(agent), config or {})
    values = HEALTHY | cells
    metrics = [
        {"step": str(1_000 * n)} | {name: str(value) for name, value in values.items()}
        for n in range(1, ROWS + 1)
    ]
    evaluations = [
        {
            "step": str(1_000 * n), "mean_return": str(100 + 25 * n), "std_return": "40",
            "episodes": "10", "min_return": str(60 + 25 * n), "max_return": str(140 + 25 * n),
            "mean_length": "100",
        }
        for n in range(1, ROWS + 1)
    ]  # fmt: skip
    run = {"env_kwargs": {}, "agent": settings.to_json(changed)}
    return Tables(json.loads(json.dumps(run)), metrics, evaluations)


def one(found: list[Finding], subject: str) -> Finding:
    return next(finding for finding in found if finding.subject == subject)


def levels(found: list[Finding]) -> dict[str, Level]:
    return {finding.subject: finding.level for finding in found}


@pytest.mark.parametrize("agent", ["adac-td3", "td3", "sac", "paper-adac-ddpg"])
def test_a_healthy_run_has_no_symptom(agent: str) -> None:
    found = levels(examine(tables(agent)))
    assert set(found.values()) == {Level.fine}
    assert ("width of μ" in found) == agent.startswith(("adac", "paper-adac"))


def with_returns(run: Tables, value: str) -> Tables:
    """The same return in every episode."""
    names = ("mean_return", "min_return", "max_return")
    played = [row | dict.fromkeys(names, value) for row in run.evaluations]
    return run._replace(
        metrics=[row | {"episode_return": value} for row in run.metrics], evaluations=played
    )


SICK: dict[str, tuple[Tables, str, Level, str]] = {
    "stuck": (tables(saturation_pi=0.99), "actions of π", Level.wrong, "bound_penalty=0.1"),
    "nearly stuck": (
        tables(saturation_pi=0.96), "actions of π", Level.doubtful, "bound_penalty=0.1",
    ),
    "stuck sac": (
        tables("sac", saturation_pi=0.99), "actions of π", Level.wrong, "normalise_obs=true",
    ),
    "narrow": (tables(spread=0.01), "width of μ", Level.wrong, "beta_start=1 beta_end=1"),
    "optimistic": (tables(q=900), "size of Q", Level.wrong, "critic_lr=0.0001"),
    "optimistic ddpg": (tables("ddpg", q=900), "size of Q", Level.wrong, "critics=2"),
    "contaminated": (
        tables("td3-vime", q=900), "size of Q", Level.wrong, "lower eta",
    ),
    "no reward": (with_returns(tables(), "0"), "reward", Level.wrong, "intrinsic=rnd"),
    "only costs": (with_returns(tables(), "-50"), "reward", Level.wrong, "intrinsic=rnd"),
    "no reward, with a bonus": (
        with_returns(tables("adac-td3-vime"), "0"), "reward", Level.wrong, "eta=0.3",
    ),
    "novelty": (
        tables("adac-td3-vime", episode_bonus=4_400), "size of the bonus", Level.doubtful,
        "eta=0.01",
    ),
    "forgetful": (
        tables(config={"replay_size": 1_000}), "replay buffer", Level.doubtful,
        "replay_size=12000",
    ),
    "few episodes": (
        tables(config={"replay_size": 5_000}, episode_length=1_000), "replay buffer",
        Level.doubtful, "replay_size=12000",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SICK)
def test_each_symptom_is_found_with_its_remedy(name: str) -> None:
    run, symptom, level, remedy = SICK[name]
    finding = one(examine(run), symptom)
    assert finding.level is level
    assert remedy in finding.advice


@pytest.mark.parametrize(
    "name", [name for name in SICK if "reward" not in name and name != "only costs"]
)
def test_a_symptom_is_not_taken_for_another(name: str) -> None:
    run, symptom, _, _ = SICK[name]
    found = levels(examine(run))
    assert [one for one, level in found.items() if level is not Level.fine] == [symptom]


def test_doing_nothing_is_told_from_learning_under_costs() -> None:
    def played(*means: float) -> Tables:
        rows = [
            {"step": str(n), "mean_return": str(m), "min_return": str(m), "max_return": str(m)}
            for n, m in enumerate(means)
        ]
        return tables(episode_return=-1.0)._replace(evaluations=rows)

    idle = played(-40, -10, -1, -0.01, -0.01, -0.01)  # MountainCarContinuous without its flag
    pendulum = played(-1_600, -900, -400, -150, -150, -150)
    assert one(examine(idle), "reward").level is Level.doubtful
    assert one(examine(pendulum), "reward").level is Level.fine


def test_a_noisy_evaluation_names_as_many_episodes_as_it_needs() -> None:
    run = tables()
    flat = [row | {"mean_return": str(100 + n % 2)} for n, row in enumerate(run.evaluations)]
    steep = [row | {"std_return": "200"} for row in run.evaluations]
    finding = one(examine(run._replace(evaluations=steep)), "evaluations")
    assert finding.level is Level.doubtful  # 200/√10 = 63 of 275
    assert finding.advice == "--eval-episodes 53"  # 200/√53 is a tenth of 275
    assert (
        "--eval-episodes 100" in one(examine(run._replace(evaluations=flat)), "evaluations").advice
    )


@pytest.mark.parametrize("steps", [0, 2])
def test_too_few_rows_are_not_judged(steps: int) -> None:
    run = tables(saturation_pi=1.0, spread=0.0, q=1e9)
    short = run._replace(metrics=run.metrics[:steps], evaluations=run.evaluations[:steps])
    assert all(finding.level is Level.fine for finding in examine(short))


def test_returns_of_short_episodes_allow_values_of_endless_ones() -> None:
    """Cut off after 10 steps, a reward of 1 a step is worth 1/(1 − γ) = 100, not 10."""
    run = tables(episode_return=10, episode_length=10, q=95)._replace(evaluations=[])
    assert one(examine(run), "size of Q").level is Level.fine
    cut = run._replace(metrics=[row | {"q": "205"} for row in run.metrics])
    assert one(examine(cut), "size of Q").level is Level.wrong


def test_a_width_that_follows_a_bonus_may_be_wanted() -> None:
    found = one(examine(tables("adac-td3-vime", spread=0.01)), "width of μ")
    assert found.level is Level.doubtful


def test_values_in_other_units_and_rewards_that_are_not_wanted_are_not_judged() -> None:
    scaled = examine(tables(config={"reward_units": True}, q=1e6))
    assert "size of Q" not in levels(scaled)
    free = examine(with_returns(tables("adac-td3-vime", {"reward_free": True}), "0"))
    assert "reward" not in levels(free)


def test_soft_values_may_hold_the_entropy() -> None:
    soft = tables("sac", q=1_100, temperature=1.0)  # 2 · 400 + 8 ln 2 / (1 − γ)
    hard = tables("sac", q=1_100, temperature=0.01)
    assert one(examine(soft), "size of Q").level is Level.fine
    assert one(examine(hard), "size of Q").level is Level.wrong


def write(folder: Path, run: Tables) -> Path:
    folder.mkdir()
    named = {"format": "adac-run-1", "env": "X-v0", "agent_name": "a", "seed": 0, "num_envs": 1}
    (folder / "config.json").write_text(json.dumps(named | run.config))
    for name, rows in (("metrics", run.metrics), ("evaluations", run.evaluations)):
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_the_command_prints_each_finding_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sick = write(tmp_path / "sick", tables(spread=0.0))
    well = write(tmp_path / "well", tables())
    assert adac("doctor", sick, well) == 0
    out = capsys.readouterr().out
    assert "!! width of μ" in out
    assert "try --set beta_start=1 beta_end=1" in out
    assert "ok actions of π" in out.split(str(well))[1].replace("  ", " ")
    assert "!!" not in out.split(str(well))[1]
    assert adac("doctor", "--json", sick) == 0
    printed = json.loads(capsys.readouterr().out)[str(sick)]
    assert [Finding(*found.values()) for found in printed] == doctor.doctor(sick)


def test_no_run_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        doctor.doctor(tmp_path)


class Nothing(gymnasium.Env[Any, Any]):
    """A task that pays nothing."""

    observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample() * 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return action, 0.0, False, False, {}


def test_training_ends_with_what_is_clearly_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gymnasium.register("tests/Nothing-v0", Nothing, max_episode_steps=5)
    tiny = ("--agent", "td3", "--set", "actor_hidden=8", "critic_hidden=8", "batch_size=8")
    few = ("--steps", "60", "--log-every", "20", "--eval-every", "0", "--checkpoint-every", "0")
    assert adac("train", "tests/Nothing-v0", *few, *tiny, "--out", tmp_path / "a") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("reward: all of 12 episodes returned 0")
    assert last.endswith("try --agent adac-explore, or --set intrinsic=rnd")
    warn(write(tmp_path / "doubtful", tables(saturation_pi=0.96)))
    assert not capsys.readouterr().out
