"""The named agents: baselines as recommended today, the paper's exactly as it has them."""

import dataclasses

import pytest

from adac.core import presets
from adac.core.bases import SAC, Deterministic
from adac.core.explorers import Analogous, GaussianNoise, OrnsteinUhlenbeck
from adac.errors import UserError

WITH_A_BONUS = (
    *("-vime", "-rnd", "-disagreement", "-counts", "-ex2", "-icm"),
    *("maxinfo-sac", "adac-maxinfo", "mulex"),
)
PAPER_ADAC = [name for name in presets.AGENTS if name.startswith("paper-adac")]


@pytest.mark.parametrize("name", ["paper-td3", *(n for n in PAPER_ADAC if "td3" in n)])
def test_the_papers_td3(name: str) -> None:
    agent = presets.make(name)
    assert agent.base == Deterministic(
        actor_lr=1e-3,
        critic_lr=1e-3,
        discount=0.99,
        tau=5e-3,
        critics=2,
        policy_delay=2,
        target_noise=0.2,
        target_clip=0.5,
    )
    assert agent.batch_size == 100
    assert agent.networks.actor_hidden == agent.networks.critic_hidden == (400, 300)


@pytest.mark.parametrize("name", ["paper-ddpg", *(n for n in PAPER_ADAC if "ddpg" in n)])
def test_the_papers_ddpg(name: str) -> None:
    agent = presets.make(name)
    assert isinstance(agent.base, Deterministic)
    assert (agent.base.actor_lr, agent.base.critic_lr) == (1e-4, 1e-3)
    assert (agent.base.tau, agent.base.discount) == (1e-3, 0.99)
    assert (agent.base.critics, agent.base.policy_delay, agent.base.target_noise) == (1, 1, 0.0)
    assert agent.batch_size == 64


@pytest.mark.parametrize("name", PAPER_ADAC)
def test_the_papers_adac_acts_and_learns_from_the_first_step(name: str) -> None:
    agent = presets.make(name)
    explorer = agent.explorer
    assert isinstance(explorer, Analogous)
    assert (agent.warmup, agent.learn_after) == (0, 1)
    assert agent.behaviour == explorer
    assert explorer.behaviour_lr == (3e-4 if "td3" in name else 1e-4)
    assert (explorer.particles, explorer.beta_start, explorer.beta_end) == (32, 2.0, 1.0)
    assert explorer.optimisers == "two"  # Appendix B
    assert explorer.co_training == ("no-cotraining" not in name)
    assert (agent.networks.latent, agent.networks.latent_hidden) == (16, (100,))


@pytest.mark.parametrize(
    ("adac", "baseline"), [("adac-td3", "td3"), ("adac-ddpg", "ddpg"), ("adac-sac", "sac"),
                           ("adac-crossq", "crossq-td3")],
)  # fmt: skip
def test_adac_has_the_base_of_the_baseline_beside_it(adac: str, baseline: str) -> None:
    one, other = presets.make(adac), presets.make(baseline)
    assert one.base == other.base
    assert one.critic == other.critic
    same = ("batch_size", "warmup", "learn_after", "updates_per_step", "n_steps", "replay_size")
    assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
    layers = (*one.networks.actor_hidden, *one.networks.latent_hidden)
    assert layers == other.networks.actor_hidden
    assert one.networks.critic_hidden == other.networks.critic_hidden


@pytest.mark.parametrize("name", presets.AGENTS)
def test_what_all_have(name: str) -> None:
    agent = presets.make(name)
    assert agent.replay_size == 1_000_000
    assert (agent.intrinsic is not None) == name.endswith(WITH_A_BONUS)
    beside = 2 if "adac" in name and agent.intrinsic is not None else 1
    assert agent.streams == (3 if name == "mulex" else beside)
    assert presets.AGENTS[name][0]


@pytest.mark.parametrize("bonus", ["vime", "rnd"])
@pytest.mark.parametrize("name", ["td3", "ddpg", "adac-td3", "adac-ddpg"])
def test_a_bonus_changes_nothing_else(name: str, bonus: str) -> None:
    agent = presets.make(f"{name}-{bonus}")
    assert dataclasses.replace(agent, intrinsic=None) == presets.make(name)


@pytest.mark.parametrize("name", ["paper-adac-td3", "paper-adac-ddpg"])
def test_paper_agents_are_literal(name: str) -> None:
    explorer = presets.make(name).explorer
    assert isinstance(explorer, Analogous)
    assert (explorer.space, explorer.bandwidth) == ("action", "paper")
    assert explorer.action_noise is None  # d / K
    assert explorer.latent_correlation == 0.0
    assert not explorer.normalise_score
    assert not explorer.log_det


def test_noise_of_the_plain_agents() -> None:
    assert presets.make("td3").explorer == GaussianNoise(0.1)
    assert presets.make("ddpg").explorer == GaussianNoise(0.1)
    assert presets.make("ddpg-gaussian-1.0").explorer == GaussianNoise(1.0)
    assert presets.make("ddpg-ou-0.2").explorer == OrnsteinUhlenbeck(0.2)
    assert presets.make("ddpg-ou-1.0").explorer == OrnsteinUhlenbeck(1.0)
    assert presets.make("paper-ddpg").explorer == OrnsteinUhlenbeck(0.2)


def test_sac_settings() -> None:
    agent = presets.make("sac")
    assert isinstance(agent.base, SAC)
    assert (agent.base.actor_lr, agent.base.critic_lr, agent.base.tau) == (3e-4, 3e-4, 5e-3)
    assert agent.base.target_entropy is None
    assert agent.base.policy_delay == 1
    assert (agent.batch_size, agent.networks.critic_hidden) == (256, (256, 256))


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UserError, match="no agent 'adac-td4'; did you mean adac-td3"):
        presets.make("adac-td4")
