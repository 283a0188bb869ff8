"""Settings as JSON and by name: everything comes back, nothing else gets in."""

import ast
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adac.core import presets, settings
from adac.core.agent import Agent
from adac.core.bases import SAC
from adac.core.critics import Scalar
from adac.core.explorers import (
    Analogous,
    GaussianNoise,
    Mixture,
    OrnsteinUhlenbeck,
    Then,
    Uniform,
)
from adac.core.fields import sentence
from adac.core.intrinsic import Vime
from adac.core.synonyms import SYNONYMS
from adac.errors import UserError

PARTS = {"base", "explorer", "intrinsic", "networks", "critic"}


def message(call: Any, *arguments: Any) -> str:
    """The one line that a mistake is explained with."""
    with pytest.raises(UserError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert text
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", presets.AGENTS)
def test_every_preset_survives_json(name: str) -> None:
    agent = presets.make(name)
    text = json.dumps(settings.to_json(agent), allow_nan=False)
    again = settings.from_json(json.loads(text))
    assert again == agent
    assert hash(again) == hash(agent)  # lists have become tuples again: agents are jit's keys


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("particles", "8", 8),
        ("explorer.particles", 8, 8),
        ("discount", "0.9", 0.9),
        ("base.discount", 1, 1.0),
        ("actor_hidden", "64,32", (64, 32)),
        ("networks.actor_hidden", [64, 32], (64, 32)),
        ("co_training", "false", False),
        ("co_training", True, True),
        ("action_noise", "none", None),
        ("action_noise", None, None),
        ("action_noise", "0.3", 0.3),
        ("latent_correlation", "0.9", 0.9),
        ("latent_correlation", "0,0.95", (0.0, 0.95)),
        ("latent_correlation", [0, 0.95], (0.0, 0.95)),
        ("space", "action", "action"),
        ("replay_size", "1e5", 100_000),
        ("batch_size", 64.0, 64),
        ("normalise_obs", "yes", True),
    ],
)
def test_override(name: str, value: Any, wanted: Any) -> None:
    before = Agent()
    after = settings.override(before, {name: value})
    found = settings.names(after)[name.rpartition(".")[2]]
    assert found == wanted
    assert type(found) is type(wanted)
    others = {k: v for k, v in settings.names(after).items() if k != name.rpartition(".")[2]}
    assert others.items() <= settings.names(before).items()
    assert hash(after) is not None


def test_override_several_and_none() -> None:
    agent = settings.override(Agent(), {"particles": 8, "tau": 0.1})
    assert isinstance(agent.explorer, Analogous)
    assert (agent.explorer.particles, agent.base.tau) == (8, 0.1)
    assert settings.override(agent, {}) == agent


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("particles", "many", "particles must be a whole number, not 'many'"),
        ("particles", 2.5, "particles must be a whole number, not '2.5'"),
        ("particles", True, "particles must be a whole number, not 'True'"),
        ("particles", "inf", "particles must be a whole number, not 'inf'"),
        ("particles", "", "particles must be a whole number, not ''"),
        ("particles", None, "particles must be a whole number, not 'None'"),
        ("particles", 0, "particles must be at least 1, not 0"),
        ("discount", "1.5", "discount must be between 0 and 1, not 1.5"),
        ("discount", "nan", "discount must be a number, not nan"),
        ("discount", [0.9], "discount must be a number, not '[0.9]'"),
        ("latent_correlation", None, "latent_correlation must be a number, not 'None'"),
        ("latent_correlation", "0,much", "latent_correlation must be a number, not 'much'"),
        ("latent_correlation", "0,1", "latent_correlation must be at least 0 and below 1"),
        ("co_training", "perhaps", "co_training must be true or false, not 'perhaps'"),
        ("space", "sphere", "space must be one of pre-squash, action, not 'sphere'"),
        ("actor_hidden", "64,wide", "actor_hidden must be a whole number, not 'wide'"),
        ("batch_size", -1, "batch_size must be at least 1, not -1"),
        ("latent", 0, "Analogous needs a latent"),
        ("warmup", -5, "warmup"),
        ("partcles", 8, "did you mean particles"),
        ("train_freq", 4, "here it is updates_per_step (an update in every k steps"),
        ("quantiles", 9, "no setting 'quantiles': it belongs to critic=Quantiles"),
        ("ent_coef", 0.1, "no setting 'ent_coef': it belongs to base=SAC"),
        ("use_sde", True, "here it is the explorer: explorer=state-dependent-noise"),
        ("base.particles", 8, "no setting 'base.particles'"),
        ("explorer", "os.system", "there is no explorer 'os.system'"),
        ("intrinsic", "x", "there is no intrinsic 'x'; did you mean"),
        ("explorer", "Explorer", "there is no explorer 'Explorer'"),
        ("explorer", "mixture", "the explorer 'mixture' needs settings"),
        ("explorer", 3, "explorer must be of the type Explorer, not 3"),
        ("base", None, "base must be of the type Base, not None"),
        ("__class__", "x", "no setting '__class__'"),
        ("explorer.__init__", "x", "no setting"),
    ],
)
def test_bad_override_is_one_sentence(name: str, value: Any, words: str) -> None:
    assert words in message(settings.override, Agent(), {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("beta_start", "nan"),
        ("behaviour_lr", "nan"),
        ("beta_start", "inf"),
        ("updates_per_step", "nan"),
        ("actor_lr", "inf"),
        ("actor_hidden", "0"),
        ("actor_hidden", "-4,3"),
        ("latent", "-1"),
        ("actor_hidden", 64),
    ],
)
def test_value_that_can_not_work_is_refused(name: str, value: Any) -> None:
    message(settings.override, Agent(), {name: value})


def test_a_setting_of_another_explorer_is_not_known() -> None:
    agent = Agent(explorer=GaussianNoise())
    assert "no setting 'particles'" in message(settings.override, agent, {"particles": 8})


def test_two_settings_of_one_name_do_not_exist() -> None:
    """Else a short name would be ambiguous; of parts that are made of parts too."""

    def fields(part: Any) -> Iterator[tuple[str, Any]]:
        for f in dataclasses.fields(part):
            value = getattr(part, f.name)
            yield f.name, value
            yield from fields(value) if dataclasses.is_dataclass(value) else ()

    for name in presets.AGENTS:
        agent = presets.make(name)
        found = list(fields(agent))
        assert len(found) == len({field for field, _ in found}), name
        plain = {field for field, value in found if not dataclasses.is_dataclass(value)} - PARTS
        assert settings.names(agent).keys() == plain


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "os.system"}, "'os.system' of this agent is not known"),
        ({"kind": "__import__"}, "not known"),
        ({"kind": None}, "not known"),
        ({"unheard_of": 1}, "Analogous has no setting 'unheard_of'"),
        ({"particles": "__import__('os')"}, "particles must be a whole number"),
        ({"particles": 0}, "particles must be at least 1"),
        ({"space": "sphere"}, "space must be one of"),
    ],
)
def test_foreign_json_is_refused(change: dict[str, Any], words: str) -> None:
    data = settings.to_json(Agent())
    data["explorer"] |= change
    assert words in message(settings.from_json, data)


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"explorer": "Analogous"},
        {"base": 3},
        {"base": settings.to_json(Agent())["explorer"]},
    ],
    ids=["unknown", "text", "number", "misplaced"],
)
def test_json_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    message(settings.from_json, settings.to_json(Agent()) | change)


def test_a_stored_agent_without_a_younger_setting_does_what_it_did() -> None:
    """The default of score_floor is 1, but an agent stored before it existed had none."""
    stored = settings.to_json(Agent())
    del stored["explorer"]["score_floor"], stored["base"]["bound_penalty"]
    del stored["networks"]["activation"], stored["base"]["lr_schedule"]
    explorer = settings.from_json(stored).explorer
    assert isinstance(explorer, Analogous)
    assert (Analogous().score_floor, explorer.score_floor) == (1.0, 0.0)


# -- every setting explains itself ---------------------------------------------------------------


def own_kinds() -> list[type[Any]]:
    found = [kind for part in sorted(PARTS) for kind in settings.kinds(part).values()]
    return [Agent, *(kind for kind in found if kind.__module__.startswith("adac."))]


@pytest.mark.parametrize("kind", own_kinds(), ids=lambda kind: kind.__name__)
def test_every_setting_has_a_sentence(kind: type[Any]) -> None:
    for field in dataclasses.fields(kind):
        words = sentence(field)
        assert words.endswith("."), f"{kind.__name__}.{field.name}: {words!r}"
        symbol = not words[1].isalpha()  # β, or n
        assert words[0].isupper() or symbol or not words[0].isascii()


def test_all_parts_of_the_library_are_found() -> None:
    ours = {
        part: {k for k, v in settings.kinds(part).items() if v.__module__.startswith("adac.")}
        for part in PARTS
    }
    assert ours == {
        "base": {"Deterministic", "SAC"},
        "explorer": {
            "Analogous", "ColouredNoise", "GaussianNoise", "GoalExploration", "Interleaved",
            "MaxInfo", "Mixture",
            "Mulex", "Optimistic", "OrnsteinUhlenbeck", "OwnPolicy", "ParameterNoise",
            "RepeatedNoise", "StateDependentNoise", "Then", "Uniform",
        },
        "intrinsic": {"Counts", "Ex2", "Icm", "InformationGain", "Rnd", "Sum", "Vime"},
        "networks": {"Networks"},
        "critic": {"Quantiles", "Scalar", "SoftValue"},
    }  # fmt: skip


@pytest.mark.parametrize("name", presets.AGENTS)
def test_the_description_of_an_agent_has_all_of_its_settings(name: str) -> None:
    agent = presets.make(name)
    described = settings.describe(agent)
    assert all(line.sentence for line in described)
    owners = {("", "Agent"): agent}  # and every part, with the parts that it is made of
    waiting = [(part, getattr(agent, part)) for part in PARTS if getattr(agent, part) is not None]
    while waiting:
        part, owner = waiting.pop()
        owners[part, type(owner).__name__] = owner
        inside = (getattr(owner, f.name) for f in dataclasses.fields(owner))
        waiting += [(part, one) for one in inside if dataclasses.is_dataclass(one)]
    for line in described:
        assert getattr(owners[line.part, line.kind], line.name) == line.value
    owned = sum(len(dataclasses.fields(owner)) for owner in owners.values())
    inner = len(owners) - 1 - sum(getattr(agent, part) is not None for part in PARTS)
    assert len(described) == owned - len(PARTS) - inner


# -- parts by name -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["GaussianNoise", "gaussian-noise", "gaussian_noise", "gaussiannoise", "Gaussian Noise"]
)
def test_a_part_is_named_as_one_types_it(name: str) -> None:
    assert settings.named("explorer", name) == GaussianNoise()
    assert settings.override(Agent(), {"explorer": name}).explorer == GaussianNoise()


def test_a_whole_agent_can_be_put_together_by_names() -> None:
    agent = settings.override(
        presets.make("td3"),
        {"base": "sac", "explorer": "analogous", "intrinsic": "vime", "critic": "scalar"},
    )
    assert (agent.base, agent.explorer, agent.intrinsic) == (SAC(), Analogous(), Vime())
    assert (agent.critic, agent.networks.latent) == (Scalar(), settings.LATENT)
    plain = settings.override(agent, {"intrinsic": "none", "explorer": "ornstein-uhlenbeck"})
    assert plain.intrinsic is None
    assert plain.explorer == OrnsteinUhlenbeck()


def test_settings_of_a_part_may_stand_before_its_name() -> None:
    for given in (
        {"explorer": "gaussian-noise", "noise": "0.3"},
        {"noise": "0.3", "explorer": "gaussian-noise"},
    ):
        assert settings.override(Agent(), given).explorer == GaussianNoise(0.3)


def test_a_misspelled_part_is_answered_with_near_ones() -> None:
    assert "did you mean gaussiannoise" in message(settings.named, "explorer", "gausian-noise")


@pytest.mark.parametrize("word", SYNONYMS)
def test_others_words_mean_settings_that_exist(word: str) -> None:
    """Of Stable-Baselines3, CleanRL and most papers; never one of our own."""
    agents = [presets.make(name) for name in ("td3", "sac", "adac-td3")]
    ours = [names for agent in agents if SYNONYMS[word] in (names := settings.names(agent))]
    assert ours
    for agent in agents:
        assert word not in settings.names(agent)


@pytest.mark.parametrize(
    ("agent", "given", "wanted"),
    [
        ("td3", {"gamma": 0.9}, {"discount": 0.9}),
        ("td3", {"base.gamma": 0.9}, {"discount": 0.9}),
        ("td3", {"learning_starts": "5e3"}, {"warmup": 5_000, "learn_after": 5_000}),
        ("td3", {"buffer_size": 1e5}, {"replay_size": 100_000}),
        ("sac", {"ent_coef": "0.2"}, {"initial_temperature": 0.2}),
        ("td3", {"learning_rate": 1e-4}, {"actor_lr": 1e-4, "critic_lr": 1e-4}),
        ("td3", {"lr": 1e-4}, {"actor_lr": 1e-4, "critic_lr": 1e-4}),
        ("td3", {"net_arch": "64,64"}, {"actor_hidden": (64, 64), "critic_hidden": (64, 64)}),
        ("td3", {"exploration_noise": 0.2}, {"noise": 0.2}),
        ("td3", {"start_timesteps": 5_000}, {"warmup": 5_000, "learn_after": 5_000}),
        ("td3", {"hidden_sizes": [64, 64]}, {"actor_hidden": (64, 64), "critic_hidden": (64, 64)}),
        ("td3", {"q_lr": 1e-4, "policy_lr": 1e-5}, {"critic_lr": 1e-4, "actor_lr": 1e-5}),
        ("td3", {"activation_fn": "Tanh"}, {"activation": "tanh"}),
        ("sac", {"grad_clip": "0.5"}, {"max_grad_norm": 0.5}),
    ],
)  # fmt: skip
def test_others_words_are_understood(
    agent: str, given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    one, other = (settings.override(presets.make(agent), words) for words in (given, wanted))
    assert one == other != presets.make(agent)


# -- what is made of parts -----------------------------------------------------------------------

NESTED = Then(Uniform(), Mixture((OrnsteinUhlenbeck(0.3), Analogous(particles=3))), 70)


def test_nested_explorers_survive_json() -> None:
    agent = Agent(explorer=NESTED)
    again = settings.from_json(json.loads(json.dumps(settings.to_json(agent))))
    assert again == agent
    assert hash(again) == hash(agent)


@pytest.mark.parametrize(
    "change",
    [
        {"first": "Uniform"},
        {"first": {"kind": "Vime"}},
        {"then": {"kind": "os.system", "command": "true"}},
        {"then": None},
        {"then": {"kind": "Mixture", "explorers": "abc"}},
        {"then": {"kind": "Mixture", "explorers": []}},
        {"then": {"kind": "Mixture", "explorers": [{"kind": "Uniform"}, 3]}},
        {"first": {"kind": "Explorer"}},
        {"first": {"kind": "_Composed"}},
        {"after": "soon"},
    ],
)
def test_a_nested_explorer_from_a_stranger_is_refused(change: dict[str, Any]) -> None:
    data = settings.to_json(Agent(explorer=NESTED))
    data["explorer"] |= change
    message(settings.from_json, data)


@pytest.mark.parametrize(
    "kind", ["this.Zen", "this", "adac.core.explorers.Uniform", "__import__('this')"]
)
def test_a_stranger_s_settings_import_nothing(kind: str) -> None:
    """`kind` is looked up among classes that are there already."""
    data = settings.to_json(Agent()) | {"explorer": {"kind": kind}}
    before = set(sys.modules)
    assert "import the module that defines it" in message(settings.from_json, data)
    assert set(sys.modules) == before


def test_settings_know_no_way_to_run_text() -> None:
    tree = ast.parse(Path(settings.__file__).read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not used & {"eval", "exec", "compile", "__import__", "importlib", "pickle"}
