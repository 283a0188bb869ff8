"""What ADAC promises of its one `update`: reduction, isolation, and nothing left untrained."""

import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from adac.core import agent as core
from adac.core.agent import Agent
from adac.core.bases import SAC, Base
from adac.core.batch import Batch
from adac.core.critics import Critic
from adac.core.diagnose import diagnose
from adac.core.explorers import Analogous, Explorer, GaussianNoise, OrnsteinUhlenbeck, OwnPolicy
from adac.core.intrinsic import Intrinsic
from adac.core.normalise import empty, normalise, observe
from adac.training.compiled import act
from adac.training.learner import Learner
from helpers import (
    ACTION,
    ADAC,
    BASES,
    BATCH,
    DDPG,
    OBS,
    TD3,
    TINY,
    TOY_AGENT,
    MadeUp,
    TerminalReward,
    assert_same_bits,
    first_moment,
    leaves,
    random_batch,
    run,
    start,
    step,
    tiny,
    unmoved,
    with_base,
)

SEPARATE = dataclasses.replace(ADAC, co_training=False)
TWO = dataclasses.replace(ADAC, optimisers="two")  # one for J_π, one for J_μ (Appendix B)
STILL = dataclasses.replace(TWO, behaviour_lr=0.0)


def batches(count: int, bonus: float = 1.0) -> list[Batch]:
    drawn = [random_batch(seed) for seed in range(count)]
    return [batch._replace(bonus=bonus * batch.bonus) for batch in drawn]


# -- reduction -----------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [TD3, DDPG], ids=["td3", "ddpg"])
def test_adac_that_never_learns_its_behaviour_is_its_base(base: Base) -> None:
    """Parameter for parameter and bit for bit, on the same network f(s, ξ)."""
    adac, plain = tiny(base, STILL), tiny(base, GaussianNoise())
    one, other = (run(agent, start(agent), batches(6)) for agent in (adac, plain))
    for mine, theirs in ((one.actor, other.actor), (one.critic, other.critic)):
        assert_same_bits(mine.params, theirs.params)
        assert_same_bits(mine.target, theirs.target)
        assert_same_bits(mine.opts[0], theirs.opts[0])


# -- isolation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.0, 1e6])
@pytest.mark.parametrize("explorer", [ADAC, TWO], ids=["one optimiser", "two"])
def test_a_bonus_moves_the_behaviour_side_and_nothing_else(
    explorer: Explorer, factor: float
) -> None:
    agent = tiny(explorer=explorer, intrinsic=MadeUp())
    (quiet,), (loud,) = batches(1), batches(1, factor)
    before = run(agent, start(agent), batches(4))  # Adam's first step would forget magnitudes
    one, metrics = step(agent, before, quiet)
    other, loud_metrics = step(agent, before, loud)
    assert_same_bits(one.critic.params[0], other.critic.params[0])
    assert_same_bits(one.critic.target[0], other.critic.target[0])
    assert_same_bits(first_moment(one.critic.opts[0])[0], first_moment(other.critic.opts[0])[0])
    if explorer is TWO:
        assert_same_bits(one.actor.opts[0], other.actor.opts[0])  # π's own gradient
    assert metrics["q"] == loud_metrics["q"]
    assert metrics["actor_loss"] == loud_metrics["actor_loss"]
    behaviour = first_moment(one.critic.opts[0])[1], first_moment(other.critic.opts[0])[1]
    assert not unmoved(*behaviour)
    assert not unmoved(first_moment(one.actor.opts[-1]), first_moment(other.actor.opts[-1]))


def test_without_co_training_the_task_side_never_hears_of_the_bonus() -> None:
    agent = tiny(explorer=SEPARATE, intrinsic=MadeUp())
    ends = [run(agent, start(agent), batches(50, bonus)) for bonus in (0.0, 1.0, 1e6)]
    for other in ends[1:]:
        assert_same_bits(ends[0].actor, other.actor)
        assert_same_bits(ends[0].critic.params[0], other.critic.params[0])
        assert_same_bits(ends[0].critic.target[0], other.critic.target[0])
        assert not unmoved(ends[0].critic.params[1], other.critic.params[1])
        assert isinstance(ends[0].behaviour, core.Net)
        assert isinstance(other.behaviour, core.Net)
        assert not unmoved(ends[0].behaviour.params, other.behaviour.params)


def test_fewer_critics_for_the_bonus_leave_the_task_side_as_it_is() -> None:
    agent = tiny(explorer=SEPARATE, intrinsic=MadeUp())
    fewer = dataclasses.replace(agent, behaviour_critics=1)
    ends = [run(one, start(one), batches(5)) for one in (agent, fewer)]
    assert [len(members) for members in ends[1].critic.params] == [2, 1]
    assert_same_bits(ends[0].critic.params[0], ends[1].critic.params[0])
    assert_same_bits(ends[0].actor, ends[1].actor)
    assert not unmoved(ends[0].critic.params[1][0], ends[1].critic.params[1][0])  # a lone target


def test_a_plain_explorer_lets_the_bonus_into_its_only_critic() -> None:
    """The contaminated baseline of the paper: it should be contaminated."""
    agent = tiny(explorer=GaussianNoise(), intrinsic=MadeUp())
    assert agent.streams == 1
    (quiet,), (loud,) = batches(1), batches(1, 5.0)
    one, _ = step(agent, start(agent), quiet)
    other, _ = step(agent, start(agent), loud)
    assert not unmoved(first_moment(one.critic.opts[0]), first_moment(other.critic.opts[0]))


def test_without_intrinsic_reward_a_stored_bonus_is_ignored() -> None:
    agent = tiny(explorer=STILL)
    one, _ = step(agent, start(agent), batches(1, 0.0)[0])
    other, _ = step(agent, start(agent), batches(1, 7.0)[0])
    assert_same_bits(one, other)


def test_a_fresh_bonus_replaces_the_stored_one() -> None:
    agent = tiny(intrinsic=MadeUp(fresh_bonus=True, scale=2.0))
    (batch,) = batches(1, 1e6)
    _, metrics = step(agent, start(agent), batch, improve=False)
    wanted = 2.0 * (np.sum(batch.next_obs**2, -1) + np.sum(batch.action**2, -1)).mean()
    np.testing.assert_allclose(metrics["bonus"], wanted, rtol=1e-5)


# -- nothing left untrained ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent",
    [
        tiny(intrinsic=MadeUp()),
        tiny(explorer=TWO, intrinsic=MadeUp()),
        tiny(explorer=SEPARATE, intrinsic=MadeUp()),
        tiny(SAC(), OwnPolicy()),
    ],
    ids=["one optimiser", "two", "separate", "sac"],
)
def test_every_leaf_moves(agent: Agent) -> None:
    """Of every stream, member and network, online and target: no critic is forgotten."""
    before = start(agent)
    after = run(agent, before, batches(6))
    explorer = agent.explorer
    co_trained = explorer.trained and not explorer.separate
    deaf = [name for name in leaves(before) if _never_sees_xi(name, co_trained)]
    deaf = [] if explorer.joins_the_base else deaf  # one optimiser hears of both losses
    assert sorted(unmoved(before, after)) == sorted(deaf)
    assert agent.streams == len(after.critic.params) == (1 if agent.intrinsic is None else 2)
    assert len(after.critic.params[-1]) == agent.base.critics


def _never_sees_xi(name: str, co_trained: bool) -> bool:
    """π's own gradient at the weights of ξ is zero; without co-training nothing else moves them."""
    own = ".actor.opts[0]" if co_trained else ".actor"
    return name.startswith(own) and name.endswith(".joint.second")


def test_between_policy_updates_only_critics_move() -> None:
    agent = tiny(intrinsic=MadeUp())
    before = run(agent, start(agent), batches(2))
    after, metrics = step(agent, before, batches(1)[0], improve=False)
    assert_same_bits(before.actor, after.actor)
    assert_same_bits(before.critic.target, after.critic.target)
    assert not unmoved(before.critic.params, after.critic.params)
    assert "actor_loss" not in metrics


def test_targets_follow_by_tau() -> None:
    agent = tiny(intrinsic=MadeUp())
    before = run(agent, start(agent), batches(2))
    after, _ = step(agent, before, batches(1)[0])
    for old, new in ((before.actor, after.actor), (before.critic, after.critic)):
        blend = jax.tree.map(lambda t, p: 0.995 * t + 0.005 * p, old.target, new.params)
        for name, wanted in leaves(blend).items():
            np.testing.assert_allclose(leaves(new.target)[name], wanted, rtol=1e-5, atol=1e-7)


def test_streams_and_members_start_apart() -> None:
    state = start(tiny(intrinsic=MadeUp()))
    critics = [critic for members in state.critic.params for critic in members]
    for one, other in itertools.combinations(critics, 2):
        assert not unmoved(one, other)
    assert_same_bits(state.critic.params, state.critic.target)
    assert_same_bits(state.actor.params, state.actor.target)


# -- every cell of the table ---------------------------------------------------------------------

EXPLORERS: dict[str, Explorer] = {
    "gaussian": GaussianNoise(),
    "ou": OrnsteinUhlenbeck(),
    "own": OwnPolicy(),
    "analogous": Analogous(particles=3),
    "paper": Analogous.paper(particles=3),
    "separate": Analogous(particles=3, co_training=False, latent_correlation=0.9),
}
INTRINSICS = {"none": None, "stored": MadeUp(), "fresh": MadeUp(fresh_bonus=True)}
CELLS = [
    pytest.param(BASES[b], EXPLORERS[e], INTRINSICS[i], id=f"{b}-{e}-{i}")
    for b, e, i in itertools.product(BASES, EXPLORERS, INTRINSICS)
]
# Each base, explorer and intrinsic reward at least once, in company it does not have above.
SOME = ["ddpg-ou-fresh", "ddpg-paper-stored", "td3-own-none", "sac-analogous-fresh"]


@pytest.mark.parametrize(("base", "explorer", "intrinsic"), CELLS)
def test_every_cell_keeps_the_shape_of_its_state(
    base: Base, explorer: Explorer, intrinsic: Any
) -> None:
    """Shapes, dtypes and structure of the state are the same after a step: nothing recompiles."""
    agent = tiny(base, explorer, intrinsic, normalise_obs=True)

    def once(key: jax.Array, batch: Batch) -> tuple[Any, Any]:
        init_key, update_key = jax.random.split(key)
        state = core.init(agent, OBS, ACTION, init_key)
        return state, core.update(agent, state, batch, update_key, jnp.float32(0), improve=True)[0]

    before, after = jax.eval_shape(once, jax.random.key(0), random_batch())
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert (old.shape, old.dtype, old.weak_type) == (new.shape, new.dtype, new.weak_type)


def check_cell(base: Base, explorer: Explorer, intrinsic: Any) -> None:
    agent = tiny(base, explorer, intrinsic, normalise_obs=True)
    state, metrics = step(agent, start(agent), random_batch())
    for name, value in leaves((state, metrics)).items():
        assert np.isfinite(value).all(), name


@pytest.mark.parametrize(("base", "explorer", "intrinsic"), [c for c in CELLS if c.id in SOME])
def test_some_cells_take_a_finite_step(base: Base, explorer: Explorer, intrinsic: Any) -> None:
    check_cell(base, explorer, intrinsic)


@pytest.mark.slow
@pytest.mark.parametrize(("base", "explorer", "intrinsic"), [c for c in CELLS if c.id not in SOME])
def test_every_cell_takes_a_finite_step(base: Base, explorer: Explorer, intrinsic: Any) -> None:
    check_cell(base, explorer, intrinsic)


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_no_outer_product_over_the_batch(base: Base) -> None:
    """[B] against [B, 1] would be [B, B]: nothing on the way has the batch's prime size twice."""
    prime = 31
    agent = dataclasses.replace(tiny(base, intrinsic=MadeUp()), normalise_obs=True)
    trace = jax.make_jaxpr(
        lambda state, batch, key: core.update(
            agent, state, batch, key, jnp.float32(0), improve=True
        )
    )(start(agent), random_batch(count=prime), jax.random.key(0))
    shapes = {var.aval.shape for eqn in _equations(trace.jaxpr) for var in eqn.outvars}
    assert (prime,) in shapes
    assert not [shape for shape in shapes if shape.count(prime) > 1]


def _equations(jaxpr: Any) -> Any:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner)


# -- one program ---------------------------------------------------------------------------------


def test_update_compiles_exactly_twice() -> None:
    learner = Learner(TerminalReward(), TOY_AGENT)
    for _ in range(TOY_AGENT.warmup + 21):
        learner.loop.advance()
    assert learner.updates == 20
    program = learner.loop.running.program
    assert program.update._cache_size() == 2
    assert program.verb(act)._cache_size() == 2  # the warm-up's explorer and the agent's own
    learner.close()


def test_the_learner_improves_its_policy_every_dth_update() -> None:
    delay = 3
    agent = with_base(tiny(explorer=GaussianNoise()), policy_delay=delay)
    agent = dataclasses.replace(agent, warmup=2, learn_after=2)
    learner = Learner(TerminalReward(), agent)
    moved = []
    for _ in range(9):
        before = leaves(learner.state.actor.params)
        learner.loop.advance()
        moved.append(
            any((before[k] != v).any() for k, v in leaves(learner.state.actor.params).items())
        )
    wanted = [learned > 0 and learned % delay == 0 for learned in range(-2, 7)]
    assert moved == wanted
    learner.close()


def test_seeds_under_vmap_agree_with_a_loop() -> None:
    agent, batch = tiny(intrinsic=MadeUp()), random_batch()
    progress = jnp.float32(0.5)

    @jax.jit
    @jax.vmap
    def updated(state: core.AgentState, seed: jax.Array) -> core.AgentState:
        key = jax.random.key(seed)
        return core.update(agent, state, batch, key, progress, improve=True)[0]

    seeds = jnp.arange(3)
    init = jax.vmap(lambda seed: core.init(agent, OBS, ACTION, jax.random.key(seed)))
    together = leaves(updated(init(seeds), seeds))
    for seed in range(3):
        alone, _ = step(agent, start(agent, seed), batch, seed)
        for name, value in leaves(alone).items():
            np.testing.assert_allclose(together[name][seed], value, rtol=1e-4, atol=1e-6)


# -- acting --------------------------------------------------------------------------------------


def test_pi_does_not_depend_on_the_weights_of_xi() -> None:
    agent = tiny()
    state = start(agent)
    obs = random_batch().obs
    changed = eqx.tree_at(lambda f: f.joint.second, state.actor.target, jnp.full((16, 16), 9.0))
    other = state._replace(actor=state.actor._replace(target=changed))
    np.testing.assert_array_equal(core.greedy(agent, state, obs), core.greedy(agent, other, obs))


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_evaluation_uses_the_target_weights_where_there_are_any(base: Base) -> None:
    agent = tiny(base)
    state = start(agent)
    other = state._replace(actor=state.actor._replace(params=start(agent, seed=1).actor.params))
    obs = random_batch().obs
    same = np.array_equal(core.greedy(agent, state, obs), core.greedy(agent, other, obs))
    assert same == base.target_actor


def test_behaviour_uses_its_own_network_without_co_training() -> None:
    agent = tiny(explorer=dataclasses.replace(SEPARATE, action_noise=0.0))
    state = start(agent)
    wild = start(agent, seed=1).actor.params
    obs, first = random_batch().obs, jnp.ones(BATCH, bool)

    memory = core.init_memory(agent, BATCH, OBS, ACTION)

    def act(state: core.AgentState) -> Any:
        return core.act(agent, state, obs, memory, first, jax.random.key(0))[0]

    assert isinstance(state.behaviour, core.Net)
    pi_changed = state._replace(actor=state.actor._replace(params=wild))
    mu_changed = state._replace(behaviour=state.behaviour._replace(params=wild))
    np.testing.assert_array_equal(act(state), act(pi_changed))
    assert not np.array_equal(act(state), act(mu_changed))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_diagnosis_sees_collapse(noise: float) -> None:
    """Whatever noise is added to f(s, ξ) afterwards: f itself is what collapses."""
    agent = tiny(explorer=Analogous(particles=4, action_noise=noise))
    state = start(agent)
    stuck = jax.tree.map(jnp.zeros_like, state.actor.params)
    stuck = eqx.tree_at(lambda f: f.head[-1].bias, stuck, jnp.full(2, 5.0))
    collapsed = state._replace(actor=state.actor._replace(params=stuck))
    batch = random_batch()
    healthy = diagnose(agent, state, batch.obs, batch, jax.random.key(0))
    ill = diagnose(agent, collapsed, batch.obs, batch, jax.random.key(0))
    assert healthy["saturation_pi"] == healthy["saturation_mu"] == 0.0
    assert healthy["spread"] > 0.01
    assert healthy["bias"] > 0.0
    assert ill["saturation_pi"] == ill["saturation_mu"] == 1.0
    np.testing.assert_allclose([ill["spread"], ill["bias"]], 0.0, atol=1e-6)


@pytest.mark.parametrize("kind", [Base, Critic, Explorer, Intrinsic])
def test_an_interface_is_no_agent(kind: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_analogous_needs_a_latent() -> None:
    with pytest.raises(ValueError, match="Analogous needs a latent: set latent to 16"):
        Agent(networks=dataclasses.replace(TINY, latent=0))


# -- which rate, which critic, which observations ------------------------------------------------


def test_every_learning_rate_moves_its_own_weights_only() -> None:
    for name, still, moving in (
        ("actor_lr", lambda s: s.actor.params, lambda s: s.critic.params),
        ("critic_lr", lambda s: s.critic.params, lambda s: s.actor.params),
        ("temperature_lr", lambda s: s.aux.log_alpha, lambda s: s.actor.params),
    ):
        base = dataclasses.replace(SAC(), **{name: 0.0})
        agent = tiny(base, OwnPolicy(), networks=dataclasses.replace(TINY, latent=0))
        before = start(agent)
        after, _ = step(agent, before, random_batch())
        assert_same_bits(still(before), still(after))
        assert not unmoved(moving(before), moving(after))


def test_td3_improves_on_its_first_critic_as_it_is_now() -> None:
    agent, batch = tiny(TD3, GaussianNoise()), random_batch()
    before = run(agent, start(agent), batches(20))
    after, metrics = step(agent, before, batch)
    q = agent.critic.at(after.critic.params[0][0], batch.obs)
    value = q(jnp.tanh(before.actor.params(batch.obs)))
    np.testing.assert_allclose(metrics["actor_loss"], -value.mean(), rtol=1e-5)


def test_sac_improves_on_the_lower_of_its_critics_as_they_are_now() -> None:
    """One that values every action 100 lower decides alone."""
    agent, batch = tiny(SAC(critic_lr=0.0), OwnPolicy()), random_batch()
    state = start(agent)
    ((first, second),) = state.critic.params
    low = eqx.tree_at(lambda c: c.body[-1].bias, second, second.body[-1].bias - 100.0)
    losses = {}
    for name, members in {"same": (first, second), "low": (first, low)}.items():
        critic = state.critic._replace(params=(members,))
        _, metrics = step(agent, state._replace(critic=critic), batch)
        losses[name] = float(metrics["actor_loss"])
    assert losses["low"] - losses["same"] == pytest.approx(100.0, abs=1.0)


def test_mu_learns_on_the_critic_as_it_is_now() -> None:
    """The gradient that reaches μ's optimiser is that of the online critic, moved just before."""
    agent, batch = tiny(TD3, SEPARATE), random_batch()
    before = start(agent)
    far = jax.tree.map(lambda leaf: 3.0 * leaf, before.critic.target)
    one, _ = step(agent, before, batch)
    other, _ = step(agent, before._replace(critic=before.critic._replace(target=far)), batch)
    still = dataclasses.replace(agent, base=dataclasses.replace(TD3, critic_lr=0.0))
    fixed, _ = step(still, before, batch)
    far_fixed, _ = step(still, before._replace(critic=before.critic._replace(target=far)), batch)
    assert_same_bits(fixed.behaviour, far_fixed.behaviour)  # the targets alone do not reach μ
    assert unmoved(one.behaviour, other.behaviour) != list(leaves(one.behaviour))


def test_whoever_normalises_sees_normalised_observations_everywhere() -> None:
    agent = tiny(TD3, ADAC, normalise_obs=True)
    plain = dataclasses.replace(agent, normalise_obs=False)
    statistics = observe(empty(OBS), 5.0 + 3.0 * random_batch(7, 64).obs)
    state = start(agent)._replace(statistics=statistics)
    bare = state._replace(statistics=())
    raw = random_batch(3)
    batch = raw._replace(obs=5.0 + 3.0 * raw.obs, next_obs=5.0 + 3.0 * raw.next_obs)
    seen = batch._replace(
        obs=normalise(statistics, batch.obs), next_obs=normalise(statistics, batch.next_obs)
    )
    np.testing.assert_array_equal(
        core.greedy(agent, state, batch.obs), core.greedy(plain, bare, seen.obs)
    )
    memory = core.init_memory(agent, BATCH, OBS, ACTION)
    first = jnp.ones(BATCH, bool)
    np.testing.assert_array_equal(
        core.act(agent, state, batch.obs, memory, first, jax.random.key(0))[0],
        core.act(plain, bare, seen.obs, memory, first, jax.random.key(0))[0],
    )
    one, _ = step(agent, state, batch)
    other, _ = step(plain, bare, seen)
    np.testing.assert_allclose(
        first_moment(one.critic.opts[0])[0][0].joint.first.weight,
        first_moment(other.critic.opts[0])[0][0].joint.first.weight,
        rtol=1e-4,
        atol=1e-7,
    )


def test_the_learner_keeps_statistics_of_what_it_saw() -> None:
    learner = Learner("Pendulum-v1", tiny(normalise_obs=True, warmup=5)).learn(50)
    rows = learner.replay.rows[:50, :3]
    np.testing.assert_allclose(learner.state.statistics.mean, rows.mean(0), rtol=1e-3)
    assert float(learner.state.statistics.seen) == 50.0
