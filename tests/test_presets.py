"""The named agents are what their descriptions promise, and baselines share a base."""

import dataclasses

import pytest

from adac.core import presets
from adac.core.bases import SAC, Deterministic
from adac.core.critics import Quantiles, Scalar
from adac.core.explorers import Analogous, GaussianNoise, OrnsteinUhlenbeck, OwnPolicy
from adac.core.networks import Networks
from adac.errors import UserError

ADAC = ["adac-td3", "adac-ddpg", "adac-sac", "adac-crossq"]
PAPER_ADAC = ["paper-adac-td3", "paper-adac-ddpg"]
DDPGS = ["adac-ddpg", "adac-ddpg-no-cotraining", "ddpg", "ddpg-gaussian-1.0", "ddpg-ou-0.2"]


@pytest.mark.parametrize("name", ["td3", "adac-td3", "adac-td3-no-cotraining"])
def test_td3_settings(name: str) -> None:
    """As TD3's authors have them today."""
    agent = presets.make(name)
    assert agent.base == Deterministic(
        actor_lr=3e-4,
        critic_lr=3e-4,
        discount=0.99,
        tau=5e-3,
        critics=2,
        policy_delay=2,
        target_noise=0.2,
        target_clip=0.5,
    )
    assert agent.batch_size == 256


@pytest.mark.parametrize("name", DDPGS)
def test_ddpg_is_td3_without_its_three_tricks(name: str) -> None:
    base = presets.make(name).base
    assert isinstance(base, Deterministic)
    assert (base.critics, base.policy_delay, base.target_noise) == (1, 1, 0.0)
    tricks = {"critics": 2, "policy_delay": 2, "target_noise": 0.2}
    assert dataclasses.replace(base, **tricks) == presets.make("td3").base


def test_sac_settings() -> None:
    agent = presets.make("sac")
    assert isinstance(agent.base, SAC)
    assert (agent.base.actor_lr, agent.base.critic_lr, agent.base.tau) == (3e-4, 3e-4, 5e-3)
    assert agent.base.target_entropy is None
    assert agent.base.policy_delay == 1
    assert agent.explorer == OwnPolicy()
    assert (agent.batch_size, agent.networks.critic_hidden) == (256, (256, 256))


@pytest.mark.parametrize(
    ("adac", "plain"),
    [
        ("adac-td3", "td3"),
        ("adac-ddpg", "ddpg"),
        ("adac-sac", "sac"),
        ("adac-crossq", "crossq-td3"),
        ("paper-adac-td3", "paper-td3"),
        ("paper-adac-ddpg", "paper-ddpg"),
    ],
)
def test_adac_differs_from_its_baseline_in_how_it_explores(adac: str, plain: str) -> None:
    """Base, critic, batch and as many units in as many layers: a comparison compares one thing."""
    one, other = presets.make(adac), presets.make(plain)
    assert isinstance(one.explorer, Analogous)
    assert (one.base, one.critic, one.batch_size) == (other.base, other.critic, other.batch_size)
    assert one.networks.critic_hidden == other.networks.critic_hidden
    assert (one.networks.latent, other.networks.latent) == (16, 0)


@pytest.mark.parametrize("name", ADAC)
def test_adac_is_the_robust_form_everywhere(name: str) -> None:
    agent = presets.make(name)
    assert agent.explorer == Analogous()
    sizes = agent.networks
    assert (*sizes.actor_hidden, *sizes.latent_hidden) == sizes.critic_hidden == (256, 256)


def test_what_the_robust_form_is() -> None:
    """What our ablation decided; docs/deviations.md has the reasons."""
    robust = Analogous()
    assert (robust.particles, robust.beta_start, robust.beta_end) == (8, 0.3, 0.3)
    assert (robust.space, robust.bandwidth, robust.log_det) == ("pre-squash", "median", True)
    assert (robust.optimisers, robust.behaviour_states, robust.other_particles) == ("one", 64, True)
    assert (robust.normalise_score, robust.score_floor) == (True, 1.0)
    assert robust.latent_correlation == (0.0, 0.95)
    assert robust.co_training


@pytest.mark.parametrize("base", ["td3", "ddpg"])
@pytest.mark.parametrize("prefix", ["adac", "paper-adac"])
def test_without_co_training_nothing_else_changes(prefix: str, base: str) -> None:
    agent, ablated = (presets.make(f"{prefix}-{base}{end}") for end in ("", "-no-cotraining"))
    assert isinstance(agent.explorer, Analogous)
    explorer = dataclasses.replace(agent.explorer, co_training=False)
    assert ablated == dataclasses.replace(agent, explorer=explorer)


# -- the paper's (Appendix E) --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper-td3", "paper-adac-td3", "paper-adac-td3-no-cotraining"])
def test_td3_as_published(name: str) -> None:
    agent = presets.make(name)
    assert agent.base == Deterministic(
        actor_lr=1e-3, critic_lr=1e-3, discount=0.99, tau=5e-3, critics=2, policy_delay=2,
        target_noise=0.2, target_clip=0.5,
    )  # fmt: skip
    assert agent.batch_size == 100


@pytest.mark.parametrize("name", ["paper-ddpg", "paper-adac-ddpg"])
def test_ddpg_as_published(name: str) -> None:
    agent = presets.make(name)
    assert agent.base == Deterministic(
        actor_lr=1e-4, critic_lr=1e-3, discount=0.99, tau=1e-3, critics=1, policy_delay=1,
        target_noise=0.0,
    )  # fmt: skip
    assert agent.batch_size == 64


@pytest.mark.parametrize("name", PAPER_ADAC)
def test_paper_agents_are_literal(name: str) -> None:
    agent = presets.make(name)
    explorer = agent.explorer
    assert isinstance(explorer, Analogous)
    assert (explorer.space, explorer.bandwidth) == ("action", "paper")
    assert explorer.action_noise is None  # d / K
    assert explorer.latent_correlation == 0.0
    assert (explorer.latent_colour, explorer.latent_repeat) == (None, 0)
    assert not explorer.normalise_score
    assert not explorer.log_det
    assert not explorer.other_particles
    assert (explorer.optimisers, explorer.behaviour_states) == ("two", 0)
    assert explorer.particles == 32
    assert (explorer.beta_start, explorer.beta_end, explorer.score_floor) == (2.0, 1.0, 0.0)
    assert explorer.behaviour_lr == (3e-4 if name.endswith("td3") else 1e-4)
    assert agent.networks == Networks(
        actor_hidden=(400, 300), critic_hidden=(400, 300), latent=16, latent_hidden=(100,)
    )
    assert agent.warmup == 0  # Algorithms 2 and 3 act with μ from t = 0


# -- variants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", presets.AGENTS)
def test_what_all_have(name: str) -> None:
    agent = presets.make(name)
    assert agent.replay_size == 1_000_000
    assert agent.n_steps == (3 if name == "adac-explore" else 1)
    assert presets.AGENTS[name][0]
    if isinstance(agent.explorer, Analogous):
        assert agent.streams == (1 if agent.intrinsic is None else 2)
    assert hash(agent) is not None


@pytest.mark.parametrize("bonus", ["vime", "rnd"])
@pytest.mark.parametrize("name", ["td3", "ddpg", "adac-td3", "adac-ddpg", "paper-adac-td3"])
def test_a_bonus_changes_nothing_else(name: str, bonus: str) -> None:
    agent = presets.make(f"{name}-{bonus}")
    assert dataclasses.replace(agent, intrinsic=None) == presets.make(name)


def test_noise_of_the_plain_agents() -> None:
    assert presets.make("td3").explorer == GaussianNoise(0.1)
    assert presets.make("ddpg").explorer == GaussianNoise(0.1)
    assert presets.make("ddpg-gaussian-1.0").explorer == GaussianNoise(1.0)
    assert presets.make("ddpg-ou-0.2").explorer == OrnsteinUhlenbeck(0.2)
    assert presets.make("ddpg-ou-1.0").explorer == OrnsteinUhlenbeck(1.0)
    assert presets.make("paper-ddpg").explorer == OrnsteinUhlenbeck(0.2)


def test_other_critics() -> None:
    assert presets.make("tqc") == dataclasses.replace(presets.make("sac"), critic=Quantiles())
    for name in ("crossq-td3", "crossq-sac", "adac-crossq"):
        agent = presets.make(name)
        assert agent.critic == Scalar(batch_renorm=True)
        assert not agent.critic.target_network
        assert (agent.base.adam_b1, agent.base.policy_delay) == (0.5, 3)


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UserError, match="no agent 'adac-td4'; did you mean adac-td3"):
        presets.make("adac-td4")
