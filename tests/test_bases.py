"""TD targets by hand, one for each base, and the densities behind them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from adac.core.agent import Agent, AgentState
from adac.core.bases import SAC, Base, Deterministic
from adac.core.batch import Batch
from adac.core.explorers import Analogous, GaussianNoise, OwnPolicy
from helpers import (
    DDPG,
    TD3,
    MadeUp,
    linear_actor,
    linear_critic,
    linear_sizes,
    start,
    td_targets,
    tiny,
)

GAMMA = 0.9
ROWS = 4
REWARD = np.array([1.0, -2.0, 0.5, 3.0])
CONTINUES = np.array([1.0, 1.0, 0.0, 1.0])  # the third row terminates
NEXT = np.array([[0.5, -1.0, 0.25, 1.0], [1.0, 0, 0, 0], [2.0, 2.0, 2.0, 2.0], [0, 0, -1.0, 0.5]])
POLICY = np.array([[0.5], [0.25], [-1.0], [0.3]])  # π(s) = tanh(s · POLICY + 0.1)
ONE = ((0.1, -0.2, 0.3, 0.4), (0.7,), 0.2)  # Q(s, a) = s · first + a · second + third
OTHER = ((0.3, 0.1, -0.5, 0.2), (-0.6,), 0.9)


def value(critic: tuple[ArrayLike, ArrayLike, float], action: NDArray[np.float64]) -> NDArray:
    return NEXT @ np.asarray(critic[0]) + action @ np.asarray(critic[1]) + critic[2]


def batch(bonus: ArrayLike = (0.0,) * ROWS) -> Batch:
    columns = np.eye(ROWS), np.zeros((ROWS, 1)), REWARD, np.asarray(bonus), CONTINUES, NEXT
    return Batch(*(jnp.asarray(column, jnp.float32) for column in columns))


def known(
    agent: Agent, *critics: tuple[ArrayLike, ArrayLike, float], outputs: int = 1
) -> AgentState:
    """A state whose target critics and whose π are written above; all else is random."""
    state = start(agent, obs_dim=ROWS, action_dim=1)
    actor = linear_actor(
        state.actor.params, np.hstack([POLICY] + [0 * POLICY] * (outputs - 1)),
        np.array([0.1, -0.5][:outputs]),
    )  # fmt: skip
    members = tuple(
        linear_critic(like, *numbers)
        for like, numbers in zip(state.critic.params[0], critics, strict=True)
    )
    net = state.actor._replace(params=actor)
    if agent.base.target_actor:
        wrong = linear_actor(actor, -3.0 * POLICY, np.ones(1))  # only the target weights count
        net = net._replace(target=actor, params=wrong)
    return state._replace(
        actor=net, critic=state.critic._replace(target=(members,) * agent.streams)
    )


def linear(base: Base, **parts: object) -> Agent:
    base = dataclasses.replace(base, discount=GAMMA)
    return tiny(base, networks=linear_sizes(ROWS), **({"explorer": GaussianNoise()} | parts))


def test_ddpg_target() -> None:
    agent = linear(DDPG)
    pi = np.tanh(NEXT @ POLICY + 0.1)
    wanted = REWARD + GAMMA * CONTINUES * value(ONE, pi)
    np.testing.assert_allclose(td_targets(agent, known(agent, ONE), batch())[0], wanted, 1e-4)


def test_td3_target_is_the_lower_of_two() -> None:
    agent = linear(dataclasses.replace(TD3, target_noise=0.0))
    pi = np.tanh(NEXT @ POLICY + 0.1)
    first, second = value(ONE, pi), value(OTHER, pi)
    assert (first < second).any()
    assert (first > second).any()
    wanted = REWARD + GAMMA * CONTINUES * np.minimum(first, second)
    found = td_targets(agent, known(agent, ONE, OTHER), batch())[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_td3_target_is_smoothed_with_noise_of_its_own_in_each_row() -> None:
    """With Q(s, a) = a the target shows the smoothed action itself."""
    agent = linear(TD3)
    shown = ((0.0,) * ROWS, (1.0,), 0.0)
    found = td_targets(agent, known(agent, shown, shown), batch())[0]
    lasting = CONTINUES == 1
    noise = ((found - REWARD) / GAMMA)[lasting] - np.tanh(NEXT @ POLICY + 0.1)[lasting, 0]
    assert (np.abs(noise) < 0.5 + 1e-5).all()
    assert len(np.unique(noise.round(4))) == lasting.sum()
    again = td_targets(agent, known(agent, shown, shown), batch(), key=1)[0]
    assert (np.abs(again - found)[lasting] > 1e-4).all()


def test_both_critics_of_adac_bootstrap_through_one_smoothed_action() -> None:
    """Critic bounding (Eq. 5): y′ − y is the bonus and γ times the target critics' gap."""
    bonus = np.array([0.5, 1.5, 2.5, 0.0])
    sizes = dataclasses.replace(linear_sizes(ROWS), latent=0)
    agent = linear(TD3, explorer=GaussianNoise(), intrinsic=MadeUp())
    state = known(agent, ONE, OTHER)
    plain = td_targets(agent, state, batch())[0]
    np.testing.assert_allclose(td_targets(agent, state, batch(bonus))[0] - plain, bonus, atol=1e-4)
    agent = dataclasses.replace(
        agent, explorer=Analogous(particles=2), networks=dataclasses.replace(sizes, latent=2)
    )
    template = start(agent, obs_dim=ROWS, action_dim=1)
    for apart in (0.0, 2.0):
        streams = tuple(
            tuple(
                linear_critic(c, obs, action, bias + apart * stream)
                for c, (obs, action, bias) in zip(row, (ONE, OTHER), strict=True)
            )
            for stream, row in enumerate(template.critic.params)
        )
        state = template._replace(critic=template.critic._replace(target=streams))
        task, behaviour = td_targets(agent, state, batch(bonus))
        wanted = bonus + GAMMA * CONTINUES * apart
        np.testing.assert_allclose(behaviour - task, wanted, atol=1e-4)


def log_density(action: NDArray, mean: NDArray, log_std: float) -> NDArray:
    """Of tanh(u), u ~ N(mean, std²), by the change of variables in float64."""
    u = np.arctanh(action)
    normal = -0.5 * ((u - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    return normal - np.log1p(-(action**2))


def test_sac_target_has_the_entropy() -> None:
    """Q(s, a) = 0 shows α log π, Q(s, a) = a then shows the action; both must fit one density."""
    agent = linear(SAC(initial_temperature=0.3), explorer=OwnPolicy())
    nothing, shown = ((0.0,) * ROWS, (0.0,), 0.0), ((0.0,) * ROWS, (1.0,), 0.0)
    entropy = td_targets(agent, known(agent, nothing, nothing, outputs=2), batch())[0]
    both = td_targets(agent, known(agent, shown, shown, outputs=2), batch())[0]
    np.testing.assert_allclose(entropy[2], REWARD[2], rtol=1e-5)
    lasting = CONTINUES == 1
    action = ((both - entropy) / GAMMA)[lasting]
    log_prob = -((entropy - REWARD) / GAMMA / 0.3)[lasting]
    wanted = log_density(action, (NEXT @ POLICY + 0.1)[lasting, 0], -0.5)
    np.testing.assert_allclose(log_prob, wanted, rtol=1e-3, atol=1e-3)
    found = td_targets(agent, known(agent, ONE, OTHER, outputs=2), batch())[0]
    full = np.zeros((ROWS, 1))
    full[lasting, 0] = action
    lower = np.minimum(value(ONE, full), value(OTHER, full))
    np.testing.assert_allclose(found, entropy + GAMMA * CONTINUES * lower, rtol=1e-3)


# -- the parts -----------------------------------------------------------------------------------


def test_smoothing_noise_is_clipped_and_so_is_the_action() -> None:
    raw = jnp.arctanh(jnp.linspace(-0.9, 0.9, 4000)).reshape(-1, 1)
    mild = Deterministic(target_noise=0.2, target_clip=0.5)
    action, extra = mild.next_action(raw, (), jax.random.key(0))
    noise = np.asarray(action - jnp.tanh(raw))
    assert extra == 0.0
    inner = noise[1500:2500]  # where the bounds are out of reach
    np.testing.assert_allclose(inner.std(), 0.2, rtol=0.1)
    assert abs(inner.mean()) < 0.02
    strong = Deterministic(target_noise=9.0, target_clip=0.5)
    wild, _ = strong.next_action(raw, (), jax.random.key(1))
    noise = np.asarray(wild - jnp.tanh(raw))
    assert np.abs(noise).max() < 0.5 + 1e-6
    assert (np.abs(noise[1500:2500]) > 0.5 - 1e-6).mean() > 0.9
    assert np.abs(wild).max() == 1.0


def test_sac_density_integrates_to_one() -> None:
    """The samples themselves are the grid."""
    base = SAC(initial_temperature=1.0)
    for mean, log_std in ((0.3, -0.5), (-1.5, 0.2)):
        raw = jnp.tile(jnp.array([[mean, log_std]]), (20_000, 1))
        action, entropy = base.next_action(raw, base.init_aux(), jax.random.key(1))
        order = np.argsort(action[:, 0])
        grid, log_prob = np.asarray(action)[order, 0], -np.asarray(entropy)[order]
        assert abs(np.trapezoid(np.exp(log_prob), grid) - 1.0) < 0.01
        inside = np.abs(grid) < 0.99
        wanted = log_density(grid[inside].astype(float), np.float64(mean), log_std)
        np.testing.assert_allclose(log_prob[inside], wanted, atol=0.01)


def test_sac_log_prob_adds_up_over_dimensions_and_is_finite_at_the_bound() -> None:
    base = SAC(initial_temperature=1.0)
    raw = jnp.array([[20.0, -20.0, 0.0, 0.0]])
    action, entropy = base.next_action(raw, base.init_aux(), jax.random.key(2))
    assert action.shape == (1, 2)
    assert entropy.shape == (1,)
    assert np.isfinite(entropy).all()


def test_sac_actor_loss_is_the_soft_value_on_the_lower_critic() -> None:
    base = SAC(initial_temperature=0.5)
    raw = jnp.array([[0.3, -0.5], [-1.0, 0.1], [0.0, -1.0]])
    qs = [lambda a: 2.0 * a[:, 0], lambda a: -a[:, 0]]
    loss, log_prob = base.actor_loss(raw, qs, base.init_aux(), jax.random.key(3))
    action, entropy = base.next_action(raw, base.init_aux(), jax.random.key(3))
    lower = np.minimum(2.0 * action[:, 0], -action[:, 0])
    np.testing.assert_allclose(loss, np.mean(-entropy - lower), rtol=1e-5)
    np.testing.assert_allclose(log_prob, np.mean(-entropy / 0.5), rtol=1e-5)


@pytest.mark.parametrize(("entropy", "direction"), [(-5.0, 1), (-2.0, 0), (3.0, -1)])
def test_temperature_rises_when_entropy_is_below_its_target(entropy: float, direction: int) -> None:
    base = SAC(initial_temperature=0.2)
    before = base.init_aux()
    np.testing.assert_allclose(jnp.exp(before.log_alpha), 0.2, rtol=1e-6)
    after = base.improve_aux(before, jnp.float32(-entropy), 2)  # target entropy: −2
    assert np.sign(after.log_alpha - before.log_alpha) == direction


def test_target_entropy_can_be_set() -> None:
    base = SAC(target_entropy=-7.0)
    after = base.improve_aux(base.init_aux(), jnp.float32(6.0), 2)
    assert after.log_alpha < base.init_aux().log_alpha


def test_deterministic_actor_loss_is_the_first_critic_alone() -> None:
    raw = jnp.array([[0.5], [-0.2]])
    qs = [lambda a: 3.0 * a[:, 0], lambda a: -100.0 * a[:, 0]]
    loss, _ = TD3.actor_loss(raw, qs, (), jax.random.key(0))
    np.testing.assert_allclose(loss, -3.0 * np.mean(np.tanh(raw)), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "setting", "words"),
    [
        (Deterministic, {"discount": 1.5}, "discount must be between 0 and 1, not 1.5"),
        (Deterministic, {"tau": -0.1}, "tau must be between 0 and 1, not -0.1"),
        (Deterministic, {"critics": 0}, "critics must be between 1 and 100, not 0"),
        (Deterministic, {"policy_delay": 0}, "policy_delay must be at least 1, not 0"),
        (Deterministic, {"target_noise": -1.0}, "target_noise must be at least 0, not -1"),
        (Deterministic, {"actor_lr": float("nan")}, "actor_lr must be a number, not nan"),
        (SAC, {"initial_temperature": 0.0}, "initial_temperature must be above 0"),
    ],
)
def test_settings_out_of_range_are_refused(
    kind: type[Base], setting: dict[str, float], words: str
) -> None:
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        kind(**setting)


@pytest.mark.parametrize("u", [0.5, 3.0])
def test_the_bound_penalty_leads_a_saturated_policy_back_and_leaves_others_alone(u: float) -> None:
    """Q = 40 a drives outward in every state; the penalty counts only beyond |u| = 1."""
    raw = jnp.full((4, 1), u)
    plain, held = TD3, dataclasses.replace(TD3, bound_penalty=0.1)

    def slope(base: Base) -> NDArray:
        loss = lambda r: base.actor_loss(r, [lambda a: 40.0 * a[:, 0]], (), jax.random.key(0))[0]  # noqa: E731
        return np.asarray(jax.grad(loss)(raw))

    assert (slope(plain) < 0).all()  # descent goes outward
    if u < 1.0:
        np.testing.assert_allclose(slope(held), slope(plain) / 40.0, rtol=1e-5)
    else:
        assert (slope(held) > 0).all()


def test_the_bound_penalty_does_not_depend_on_the_scale_of_rewards() -> None:
    raw, held = jnp.array([[0.3], [1.5], [-2.5]]), dataclasses.replace(TD3, bound_penalty=0.1)

    def slope(scale: float) -> NDArray:
        q = lambda a: scale * jnp.array([1.0, -2.0, 0.5]) * a[:, 0]  # noqa: E731
        return np.asarray(
            jax.grad(lambda r: held.actor_loss(r, [q], (), jax.random.key(0))[0])(raw)
        )

    np.testing.assert_allclose(slope(1e3), slope(1e-2), rtol=1e-4)
