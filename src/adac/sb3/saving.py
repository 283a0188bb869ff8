"""A model to a file and back."""

import warnings
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import stable_baselines3
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.utils import check_for_correct_spaces

from adac.core import settings
from adac.errors import UserError
from adac.runs.checkpoint import Arrays, unflatten
from adac.runs.folder import versions
from adac.sb3 import files
from adac.sb3.arguments import MIRRORED, at_first
from adac.sb3.observations import Edge
from adac.sb3.plain import NotEncodableError, decode, encode
from adac.training.behaviour import fresh_memory

if TYPE_CHECKING:
    from adac.sb3.algorithm import Algorithm

# Attributes of a model that its file keeps.
ATTRIBUTES = (
    *MIRRORED, "policy_kwargs", "train_freq", "gradient_steps", "action_noise", "verbose", "seed",
    "tensorboard_log", "optimize_memory_usage", "replay_buffer_class", "replay_buffer_kwargs",
    "use_sde", "sde_sample_freq", "use_sde_at_warmup", "n_envs", "num_timesteps", "start_time",
    "ep_info_buffer", "ep_success_buffer", "_total_timesteps", "_num_timesteps_at_start",
    "_episode_num", "_n_updates", "_current_progress_remaining", "_stats_window_size",
)  # fmt: skip
COUNTED = (
    "num_timesteps", "_total_timesteps", "_num_timesteps_at_start", "_episode_num", "_n_updates",
    "_stats_window_size", "verbose", "buffer_size", "learning_starts", "batch_size",
    "n_steps",
)  # fmt: skip
MOST_VEC = 2**16  # environments of a VecEnv, each with what its explorer remembers
SEEN = ("_last_obs", "_last_original_obs", "_last_episode_starts")  # where the environments stood


def save(model: "Algorithm", path: files.FilePath, exclude: frozenset[str]) -> None:
    attributes = {}
    for name in ATTRIBUTES:
        if name in exclude or not hasattr(model, name):
            continue
        attributes[name] = _plain(name, getattr(model, name))
    facts = {
        "agent": settings.to_json(model.agent),
        "attributes": attributes,
        "seed": model.policy.seed,
        "acted": model.acting.number,
        "versions": {**versions(), "stable_baselines3": stable_baselines3.__version__},
        **files.spaces_of(model),
    }
    arrays = files.flat({"agent": model.policy.running.state, "memory": model.acting.memory})
    for name in SEEN:
        if name not in exclude:
            arrays |= _seen(name, getattr(model, name))
    files.write(path, facts, arrays, suffix="zip")


def _plain(name: str, value: Any) -> Any:
    if name == "policy_kwargs":
        return _plain_kwargs(value)
    try:
        return encode(value)
    except NotEncodableError as error:
        warnings.warn(
            f"{name} is a {error}, which the file cannot hold: pass it again, load(…, {name}=…)",
            stacklevel=4,
        )
        return at_first(value) if name == "learning_rate" else None


def _plain_kwargs(policy_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Without classes, whose part in the agent is settled."""
    found = {}
    for name, value in policy_kwargs.items():
        try:
            found[name] = encode(value)
        except NotEncodableError:
            continue
    return found


def _seen(name: str, value: Any) -> Arrays:
    if isinstance(value, dict):
        return {f"{name}.{key}": np.asarray(part) for key, part in value.items()}
    return {} if value is None else {name: np.asarray(value)}


def _was_seen(model: "Algorithm", arrays: Arrays) -> dict[str, Any]:
    """Where the environments stood; all None where that is not of these, and they are reset."""
    found: dict[str, Any] = {}
    for name in SEEN:
        parts = {k[len(name) + 1 :]: v for k, v in arrays.items() if k.startswith(f"{name}.")}
        found[name] = parts or arrays.get(name)
    fits = np.shape(found["_last_episode_starts"]) == (model.n_envs,)
    for name in ("_last_obs", "_last_original_obs"):
        if found[name] is not None:
            fits = fits and _fits(model, found[name])
    return found if fits else dict.fromkeys(SEEN)


def _fits(model: "Algorithm", observations: Any) -> bool:
    try:
        rows, several = model.policy.edge(observations)
    except (UserError, KeyError, ValueError):
        return False
    return several and len(rows) == model.n_envs and bool(np.isfinite(rows).all())


def load(
    cls: type["Algorithm"],
    path: files.FilePath,
    env: Any,
    device: Any,
    custom_objects: Mapping[str, Any],
    force_reset: bool,
    kwargs: Mapping[str, Any],
) -> "Algorithm":
    facts, arrays = files.read(path, suffix="zip")
    files.require_facts(facts, "agent", "attributes", "seed", "acted", *files.SPACES)
    stored = _attributes(facts)
    _refuse_place(stored, {**custom_objects, **kwargs})
    stored |= {name: custom_objects[name] for name in stored.keys() & custom_objects.keys()}
    _require_same_networks(stored, kwargs)
    observation_space, action_space = files.read_spaces(facts)
    if env is not None:
        env = cls._wrap_env(env, int(stored.get("verbose") == 1))
        check_for_correct_spaces(env, observation_space, action_space)
        stored["n_envs"] = env.num_envs
    agent = settings.from_json(facts["agent"])
    begun = {"agent": agent, "gradient_steps": 1, "device": device}  # the stored ones follow
    model = cls("MultiInputPolicy", env, **begun, _init_setup_model=False)
    model.observation_space, model.action_space = observation_space, action_space
    for name, value in {**stored, **kwargs}.items():
        setattr(model, name, value)
    _require_fitting(model, arrays)
    try:
        _set_up(model, facts)
    except Exception as error:  # settings of any kind, which Stable-Baselines3 does not look at
        said = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"the file's settings, or those given with it, fit no model: {said}") \
            from error  # fmt: skip
    _restore(model, arrays, keep_place=env is None or not force_reset)
    return model


def _set_up(model: "Algorithm", facts: Mapping[str, Any]) -> None:
    model._setup_model()
    seed = files.counted(facts, "seed", files.MOST_SEED)
    model.policy.begin(model.agent, seed, scheduled=model._scheduled)
    model.acting = type(model.acting)(model.policy, model.n_envs)
    model.acting.number = files.counted(facts, "acted", files.MOST_COUNTED)


def _attributes(facts: Mapping[str, Any]) -> dict[str, Any]:
    given = facts.get("attributes")
    if not isinstance(given, dict) or not given.keys() <= set(ATTRIBUTES):
        raise UserError("the file's settings are not those of a model")
    stored = {name: decode(value) for name, value in given.items()}
    for name in stored:
        if not _is_one(name, stored[name]):
            raise UserError(f"the file's {name} is {stored[name]!r}, which no model has")
    return stored


def _is_one(name: str, value: Any) -> bool:
    """Of what Stable-Baselines3 believes without a look, until it trips over it in `learn`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "n_envs":
        return number and isinstance(value, int) and 1 <= value <= MOST_VEC
    if name in COUNTED:
        return number and isinstance(value, int) and 0 <= value <= files.MOST_COUNTED
    if name == "gradient_steps":
        return number and isinstance(value, int) and -1 <= value <= files.MOST_COUNTED
    if name == "_current_progress_remaining":
        return number and -files.MOST_COUNTED <= value <= 1.0  # a last step may go past the end
    if name == "start_time":
        return number and 0 <= value < 2**63
    if name == "action_noise":
        return value is None or isinstance(value, ActionNoise)
    if name == "ep_success_buffer":
        return value is None or isinstance(value, deque)
    if name == "ep_info_buffer":
        return value is None or (isinstance(value, deque) and all(map(_is_episode, value)))
    return True


def _is_episode(info: Any) -> bool:
    return isinstance(info, dict) and {"r", "l"} <= info.keys()


def _refuse_place(stored: dict[str, Any], given: Mapping[str, Any]) -> None:
    """A file may come from anybody: where others are written is not its to choose."""
    place = stored.get("tensorboard_log")
    if place is not None:
        stored["tensorboard_log"] = None
    if place is not None and "tensorboard_log" not in given:
        warnings.warn(
            f"the model was logged to {str(place)!r}, and a file does not choose where others go: "
            "to log there again, load(…, tensorboard_log=…)",
            stacklevel=4,
        )


def _require_same_networks(stored: Mapping[str, Any], kwargs: Mapping[str, Any]) -> None:
    wanted = kwargs.get("policy_kwargs")
    if wanted is not None and decode(_plain_kwargs(wanted)) != stored.get("policy_kwargs"):
        raise ValueError(
            f"policy_kwargs are {wanted}, but the file's are {stored.get('policy_kwargs')}: its "
            "networks cannot be others"
        )


def _require_fitting(model: "Algorithm", arrays: Arrays) -> None:
    size = Edge(model.observation_space).size
    files.require_state(model.agent, size, model.action_space, arrays)


def _restore(model: "Algorithm", arrays: Arrays, *, keep_place: bool) -> None:
    policy, acting = model.policy, model.acting
    policy.running.state = files.unflat(policy.running.state, arrays)
    explorer = policy.agent.behaviour.at(model.num_timesteps)
    fresh = fresh_memory(policy.running, explorer, model.n_envs)
    try:
        memory = unflatten({"memory": fresh}, arrays)["memory"]
    except UserError:  # of other environments, or of who acted before
        memory = None
    if keep_place:
        for name, seen in _was_seen(model, arrays).items():
            setattr(model, name, seen)
        if memory is not None:
            acting.restore(memory, model.num_timesteps)


def set_state(model: "Algorithm", path: files.FilePath) -> None:
    """A file's weights and optimisers into a model that is there."""
    _, arrays = files.read(path, suffix="zip")
    policy = model.policy
    files.require_state(model.agent, policy.edge.size, model.action_space, arrays)
    policy.running.state = files.unflat(policy.running.state, arrays)
