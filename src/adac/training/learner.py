"""Learner: an agent, its environments and its memory; what a program holds on to."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adac import envs
from adac.core import agent as core
from adac.core import settings
from adac.core.agent import Agent, AgentState
from adac.core.validation import named, whole
from adac.errors import UserError
from adac.runs.checkpoint import Contents, Store
from adac.runs.export.facts import Facts
from adac.runs.files import place
from adac.runs.folder import essence, read_config, require_essence, versions
from adac.training import best, data, transfer
from adac.training import compilation_cache as cache
from adac.training.answers import Env, Floats
from adac.training.behaviour import sample
from adac.training.bonus_gap import play_gap
from adac.training.callbacks import Callbacks
from adac.training.evaluation import Evaluation, evaluate
from adac.training.folders import Folders, of_ours, task_settings
from adac.training.inputs import answering, observations
from adac.training.loop import PREDICT, Loop
from adac.training.policy import TargetPolicy
from adac.training.replay import Replay
from adac.training.source import EnvSource, Tasks
from adac.training.train import Schedule, train

HISTORY = ("from", "changes", "data")  # of config.json: where a run comes from
EVAL_EVERY, CHECKPOINT_EVERY = 5_000, 10_000  # steps, where there is a folder


class Learner:
    """Train, predict, evaluate, save and load one agent on one task.

    `env` is a Gymnasium id, an environment, a function or class that makes one, or a list of them;
    `subprocesses` gives each of the `num_envs` a process of its own. `agent` is a name (`adac list
    agents`) or an Agent built by hand; `overrides` change its settings by name. `start_from` is
    the folder of a run whose weights, and unless told otherwise whose agent, this one begins with.
    """

    @answering
    def __init__(
        self,
        env: EnvSource,
        agent: str | Agent | None = None,
        *,
        seed: int = 0,
        num_envs: int = 1,
        subprocesses: bool = False,
        overrides: Mapping[str, Any] | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        eval_env: EnvSource | None = None,
        start_from: str | Path | None = None,
        with_optimisers: bool = False,
    ):
        cache.enable()
        seed = whole("seed", seed)
        if not 0 <= seed < 2**31:
            raise UserError(f"seed must be between 0 and {2**31 - 1}, not {seed}")
        self.tasks = Tasks(env, env_kwargs, eval_env, num_envs, subprocesses=subprocesses)
        origin = None if start_from is None else transfer.read_origin(start_from)
        self.agent_name, chosen = transfer.choose(agent, origin)
        self.label = self.agent_name  # its line in a legend
        changed = settings.override(chosen, named("overrides", overrides))
        self.loop = Loop(changed, self.tasks.training(seed), seed)
        self.history: dict[str, Any] = {}  # what config.json says of where the run comes from
        if origin is not None:
            transfer.start(self.loop, origin, optimisers=with_optimisers)
            self.history = {"from": origin.facts()}
        self.wall_seconds = 0.0
        self.evaluated = -1  # the step of the last evaluation
        self.best: TargetPolicy | None = None  # of the best evaluation, where it is kept
        self.folders = Folders()
        self._predictions = 0

    def __repr__(self) -> str:
        return f"<Learner {self.agent_name} on {self.env_id}, seed {self.seed}, step {self.step:,}>"

    @property
    def agent(self) -> Agent:
        return self.loop.agent

    @property
    def seed(self) -> int:
        return self.loop.seed

    @property
    def step(self) -> int:
        """Environment steps so far, over all environments."""
        return self.loop.step

    @property
    def updates(self) -> int:
        return self.loop.updates

    @property
    def state(self) -> AgentState:
        """Everything learned, as one value; a training step makes a new one."""
        return self.loop.state

    @property
    def replay(self) -> Replay:
        return self.loop.replay

    @property
    def obs_dim(self) -> int:
        return self.loop.obs_dim

    @property
    def action_dim(self) -> int:
        return self.loop.action_dim

    def diagnose(self) -> dict[str, float]:
        """Losses and values of the last update, μ's bias and spread, saturation."""
        return self.loop.diagnose()

    @property
    def env_id(self) -> str:
        """The task's id; the name of its class where it has none."""
        return self.tasks.source.id

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """What the task is made with."""
        return self.tasks.source.kwargs

    def make_env(self, **kwargs: Any) -> Env:
        """Another environment of the same task."""
        return self.tasks.source.make(**kwargs)

    @answering
    def learn(
        self,
        steps: int,
        *,
        out: str | Path | None = None,
        progress_bar: bool = False,
        eval_every: int | None = None,
        eval_episodes: int = 10,
        checkpoint_every: int | None = None,
        log_every: int = 1_000,
        stop_return: float | None = None,
        save_best: bool = False,
        video_every: int = 0,
        horizon: int | None = None,
        offline: int = 0,
        info_keywords: Sequence[str] = (),
        callback: Callbacks | None = None,
        tensorboard: bool = False,
        wandb: bool = False,
    ) -> "Learner":
        """Train for `steps` more environment steps.

        With `out`, a run folder is kept there, as by `adac train` and with its defaults: an
        evaluation every 5,000 steps where one is possible, a checkpoint every 10,000 and at the
        end, also where that is Ctrl-C or an exception; `save_best` keeps the best evaluation's
        policy in best/, `video_every` records the target policy into videos/. `callback` is a
        function that is called after every step and ends the training by returning False, a
        `Callback`, or a list of them. `info_keywords` are numbers of the task's `info` that become
        columns of the tables. `offline` updates are made first, from the data that `add` and
        `add_dataset` have brought. β and schedules of learning rates end after `horizon` steps,
        which is the end of this call unless told otherwise; of several calls, name the whole.
        """
        if checkpoint_every is None:
            checkpoint_every = 0 if out is None else CHECKPOINT_EVERY
        if eval_every is None:
            eval_every = EVAL_EVERY if out is not None and self.tasks.evaluable else 0
        keywords: Any = (info_keywords,) if isinstance(info_keywords, str) else info_keywords
        offline = self.loop.offline + whole("offline", offline)
        schedule = Schedule(
            eval_every, eval_episodes, checkpoint_every, log_every, stop_return, save_best,
            keywords, offline, video_every,
        )  # fmt: skip
        train(
            self,
            self.step + whole("steps", steps),
            schedule,
            out=out,
            progress_bar=progress_bar,
            horizon=horizon,
            callback=callback,
            tensorboard=tensorboard,
            wandb=wandb,
        )
        return self

    def add(
        self,
        obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        next_obs: Any,
        terminated: NDArray[Any],
        truncated: NDArray[Any] | None = None,
    ) -> None:
        """Put transitions from elsewhere into the replay buffer: arrays [n, ...], in order.

        Observations and actions are the task's own. Consecutive rows belong to one episode until
        `terminated` or `truncated` is true.
        """
        columns = obs, action, reward, next_obs, terminated, truncated
        data.add(self.loop, data.Columns(*columns))

    def add_dataset(self, source: Any) -> "Learner":
        """Put the transitions of a Minari dataset (or `minari:NAME`), of another run's folder or of
        an .npz file into the replay buffer; config.json will name them."""
        name = data.add_from(self.loop, source)
        self.history["data"] = [*self.history.get("data", []), name]
        return self

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        *,
        online: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Actions in the task's units for one of its observations or a batch of them, and `state`.

        deterministic=True is the target policy π, False the behaviour policy μ, whose correlated ξ
        is carried by `state` from call to call. π acts with the target weights, which follow those
        that learn; `online` takes the latter: better in runs of a few hundred updates, as noisy as
        the last minibatch in long ones. The signature is Stable-Baselines3's.
        """
        obs, several = observations(observation, self.loop.environments.observation_space)
        if deterministic:
            action = self.online_policy(obs) if online else self.policy(obs)
        else:
            action, state = self._sample(obs, state, episode_start)
        scaled = self.loop.environments.scaling.to_task(action)
        return (scaled if several else scaled[0]), state

    def _sample(
        self, obs: Floats, memory: Any, episode_start: NDArray[Any] | None
    ) -> tuple[Floats, Any]:
        self._predictions += 1
        key = self.loop.keys[PREDICT]
        return sample(self.loop.running, obs, memory, episode_start, key, self._predictions)

    def policy(self, obs: Floats) -> Floats:
        """The target policy π, [n, o] → [n, d] in [-1, 1]."""
        return np.asarray(self.loop.running.greedy(obs))

    def online_policy(self, obs: Floats) -> Floats:
        """The same with the weights that learn, which the target's follow slowly."""
        return np.asarray(self.loop.running.online(obs))

    @property
    def infos(self) -> Sequence[Mapping[str, Any]]:
        """What each environment said in `info` at the latest step."""
        return self.loop.environments.infos

    def target_policy(self) -> TargetPolicy:
        """π alone, as it is now, to `save` in a small file; see docs/export.md."""
        space = self.loop.environments.observation_space
        facts = Facts(self.env_id, self.agent_name, self.seed, self.step, not envs.is_vector(space))
        policy = core.target_policy(self.agent, self.state)
        return TargetPolicy.of(self.agent, policy, self.loop.environments.scaling, facts, space)

    def evaluate(
        self,
        episodes: int = 10,
        *,
        seed: int | None = None,
        online: bool = False,
        salt: int = 0,
        stop: Callable[[], bool] | None = None,
    ) -> Evaluation:
        """Returns of π, without disturbing the training; `online` as in `predict`."""
        episodes = whole("episodes", episodes)
        seed = self.seed if seed is None else whole("seed", seed)
        lanes, words = self.tasks.evaluation(episodes), self.loop.environments.keywords
        policy = self.online_policy if online else self.policy
        return evaluate(
            policy, lanes, episodes, seed, salt=salt, name=self.env_id, stop=stop, keywords=words
        )

    def bonus_gap(
        self, episodes: int = 3, *, salt: int = 0, stop: Callable[[], bool] | None = None
    ) -> dict[str, float]:
        """Discounted bonus of μ's episodes minus π's, on the same starts (docs/intrinsic.md)."""
        lanes = self.tasks.evaluation(episodes)
        return play_gap(self.loop, self.policy, lanes, episodes, salt=salt, stop=stop)

    def config(self) -> dict[str, Any]:
        """Everything needed to repeat the run."""
        return {
            "format": "adac-run-1",
            "env": self.env_id,
            "env_kwargs": self.env_kwargs,
            **({} if self.tasks.source.told else {"env_object": True}),
            **({"env_factory": True} if self.tasks.source.is_factory else {}),
            **({"subprocesses": True} if self.tasks.subprocesses else {}),
            "agent_name": self.agent_name,
            "label": self.label,
            "agent": settings.to_json(self.agent),
            "seed": self.seed,
            "num_envs": self.loop.environments.num_envs,
            **self.history,
            "versions": versions(),
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """The whole run: weights, optimisers, replay buffer, random states, unfinished episodes.

        A folder that holds another run is refused, unless you say `overwrite=True`.
        """
        folder = place("folder", folder)
        with self.folders.written(folder, self.config(), overwrite=overwrite) as store:
            self.save_to(store, self.folders.vouched(folder))
        best.put(folder, self.best)

    def save_to(self, store: Store, tables: Mapping[str, Any]) -> None:
        self.loop.require_finite()
        arrays, facts = self.loop.snapshot()
        facts |= {"wall_seconds": self.wall_seconds, "evaluated": self.evaluated}
        facts |= {"config": essence(self.config()), "tables": dict(tables)}
        arrays, facts = best.pack(self.best, arrays, facts)
        store.save(self.step, arrays, facts, self.replay)

    @classmethod
    @answering
    def load(
        cls,
        folder: str | Path,
        *,
        env: EnvSource | None = None,
        agent: Agent | None = None,
        eval_env: EnvSource | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        with_replay: bool = True,
    ) -> "Learner":
        """The run as it was saved; the rest only where the folder cannot be believed or name it.

        Of `agent` the classes are taken, the settings are the run's. `env_kwargs` that name files
        must be given again. Without its replay buffer, a run that learns on first fills a new one.
        `overrides` change settings from here on, if what is stored stays as it is; config.json will
        say so.
        """
        folder = place("folder", folder)
        config = read_config(folder)
        then = settings.from_json(config["agent"], like=agent)
        learner = cls(
            config["env"] if env is None else env,
            then,
            overrides=overrides,
            seed=config["seed"],
            num_envs=config["num_envs"],
            subprocesses=config.get("subprocesses", False),
            env_kwargs=task_settings(folder, config, env_kwargs, given=env is not None),
            eval_env=eval_env,
        )
        learner.agent_name = config["agent_name"]
        learner.label = config.get("label", learner.agent_name)
        if overrides:
            transfer.require_same_state(then, overrides, learner.loop)
        buffer = learner.replay if with_replay else None
        contents = learner.folders.store(folder).load(buffer, learner.loop.state_bytes())
        require_essence(folder, config, contents.facts.get("config"))
        with of_ours(folder, contents.step):
            learner._restore(contents, with_replay)
            learner.folders.vouch(folder, contents.facts.get("tables", {}))
        learner.history = {name: config[name] for name in HISTORY if name in config}
        if overrides:
            note = {"step": learner.step, "settings": dict(overrides)}
            learner.history["changes"] = [*config.get("changes", []), note]
        return learner

    def _restore(self, contents: Contents, with_replay: bool) -> None:
        facts = contents.facts
        if facts["world"]["steps"] != contents.step:
            raise ValueError(f"its environments are at step {facts['world']['steps']}")
        notes = self.loop.restore(contents.arrays, facts, with_replay=with_replay)
        self.wall_seconds = float(facts["wall_seconds"])
        self.evaluated = int(facts["evaluated"])
        self.best = best.unpack(contents.arrays, facts)
        for note in [*contents.warnings, *notes]:
            warnings.warn(note, stacklevel=3)

    def close(self) -> None:
        self.loop.environments.close()
        self.tasks.close()
