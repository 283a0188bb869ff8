"""Figure 1: amortised SVGD under several β, on two densities, in the paper's form and in ours.

One network a = tanh f(s, ξ) with a single state is trained by Eq. 3 on a known Q, so that the
learned density can be held against exp(Q / β), which SVGD's fixed point is for each β.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from adac.core.bases import Deterministic
from adac.core.critics import Scalar
from adac.core.explorers import Analogous, Policy, View
from adac.core.networks import Actor, Networks
from adac.errors import UserError
from adac.experiments.analysis.drawing import new_figure, save, sequence
from adac.experiments.analysis.snapshots import density

Floats = NDArray[np.float64]
Q = Callable[[Array], Array]  # a [..., 1] → [...]

BETAS = (0.1, 0.3, 1.0, 2.0)
STEPS = 2_000
PARTICLES = 32  # K of both forms, unless asked for another
STATES = 8  # independent sets of K particles in one step
SAMPLES = 4_000  # of the trained sampler
GRID = np.linspace(-1.0, 1.0, 201)


def gaussian_q(a: Array) -> Array:
    """log N(0.2, 0.25²): one wide mode inside the bounds."""
    return -0.5 * jnp.sum(((a - 0.2) / 0.25) ** 2, axis=-1)


def bimodal_q(a: Array) -> Array:
    """log of 0.6 N(0.4, 0.18²) + 0.4 N(−0.4, 0.18²), up to a constant."""
    modes = jnp.array([0.4, -0.4])
    heights = jnp.log(jnp.array([0.6, 0.4]))
    return jax.nn.logsumexp(heights - 0.5 * ((a - modes) / 0.18) ** 2, axis=-1)


TARGETS: dict[str, Q] = {"one mode": gaussian_q, "two modes": bimodal_q}
FORMS: dict[str, Analogous] = {
    "paper": Analogous.paper(particles=PARTICLES),
    "pre-squash": Analogous(particles=PARTICLES, normalise_score=False),
}
TITLES = {
    "paper": "the paper's: particles in the action space, fixed σ = d/K",
    "pre-squash": "ours: particles before the squash, median σ",
}


class Curve(NamedTuple):
    form: str
    target: str
    beta: float
    seed: int
    samples: Floats
    entropy: float  # differential, in nats, of the learned density
    divergence: float  # KL(learned ‖ exp(Q / β)), in nats


class KnownValue(NamedTuple):
    """A `Value` that can be written down, the same at every state."""

    q: Q

    def __call__(self, action: Array) -> Array:
        return self.q(action)

    def at(self, states: int) -> "KnownValue":
        return self

    def gradient(self, action: Array) -> Array:
        gradient: Array = jax.grad(lambda a: jnp.sum(self.q(a)))(action)
        return gradient


@dataclass(frozen=True)
class Sampler:
    """The settings of one training run: a hashable value, so that jit compiles once per form."""

    explorer: Analogous
    q: Q
    learning_rate: float = 1e-3

    def loss(self, actor: Actor, beta: Array, xi: Array) -> Array:
        """`Analogous`' own, with a known Q in the critic's place; ξ is [STATES, K, latent]."""
        view = View(Policy(actor, ()), Deterministic(), Scalar(), None)
        return self.explorer.objective(view, KnownValue(self.q), jnp.zeros((STATES, 1)), xi, beta)

    def step(self, carry: tuple[Actor, Any], xi: Array, beta: Array) -> tuple[Any, None]:
        actor, opt = carry
        gradient = jax.grad(self.loss)(actor, beta, xi)
        change, opt = optax.adam(self.learning_rate).update(gradient, opt)
        return (optax.apply_updates(actor, change), opt), None


NETWORKS = Networks(actor_hidden=(32, 32), latent=16, latent_hidden=(64,))


def train(sampler: Sampler, steps: int, betas: Array, seed: int) -> Array:
    """SAMPLES actions of each β's sampler after `steps` amortised steps, from one start."""
    # All that is random is drawn out here: compiled into the loop it takes ten times as long.
    random = np.random.default_rng(seed)
    shape = (steps, STATES, sampler.explorer.particles, NETWORKS.latent)
    xi = random.standard_normal(shape, np.float32)
    actor = Actor(NETWORKS, 1, 1, jax.random.key(seed))
    trained = descend(sampler, actor, betas, xi)
    fresh = random.standard_normal((SAMPLES, NETWORKS.latent), np.float32)
    return jax.vmap(lambda f: jnp.tanh(f(jnp.zeros((1, 1)), fresh))[:, 0])(trained)


@partial(jax.jit, static_argnums=0)
def descend(sampler: Sampler, actor: Actor, betas: Array, xi: Any) -> Actor:
    def one(beta: Array) -> Actor:
        carry = (actor, optax.adam(sampler.learning_rate).init(actor))
        (trained, _), _ = jax.lax.scan(partial(sampler.step, beta=beta), carry, xi)
        return trained

    return jax.vmap(one)(betas)


def target_density(q: Q, beta: float) -> Floats:
    """exp(Q(a) / β) on the grid, normalised over [-1, 1]."""
    energy = np.asarray(q(jnp.asarray(GRID)[:, None]), np.float64) / beta
    unnormalised = np.exp(energy - energy.max())
    return np.asarray(unnormalised / np.trapezoid(unnormalised, GRID))


def measure(form: str, target: str, beta: float, seed: int, samples: Floats) -> Curve:
    p = density(samples, GRID, width=0.02) + 1e-12
    goal = np.maximum(target_density(TARGETS[target], beta), 1e-12)
    entropy = -float(np.trapezoid(p * np.log(p), GRID))
    divergence = float(np.trapezoid(p * np.log(p / goal), GRID))
    return Curve(form, target, beta, seed, samples, entropy, divergence)


def study(seed: int, steps: int, particles: int) -> list[Curve]:
    curves = []
    for form, literal in FORMS.items():
        explorer = replace(literal, particles=particles)
        for target, q in TARGETS.items():
            # One seed for all: the samplers of a panel start alike and differ in β alone.
            samples = train(Sampler(explorer, q), steps, jnp.array(BETAS), seed)
            for beta, row in zip(BETAS, np.asarray(samples, np.float64), strict=True):
                curves.append(measure(form, target, beta, seed, row))
    return curves


def write_csv(curves: list[Curve], path: Path) -> None:
    """Exactly what is drawn: both densities on the grid, for each panel and β."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        columns = ("form", "target", "beta", "seed", "entropy", "divergence", "a", "p", "exp_q")
        writer.writerow(columns)
        for c in curves:
            head = (c.form, c.target, c.beta, c.seed, f"{c.entropy:.4f}", f"{c.divergence:.4f}")
            goal = target_density(TARGETS[c.target], 1.0)
            for a, p, g in zip(GRID, density(c.samples, GRID), goal, strict=True):
                writer.writerow((*head, f"{a:.2f}", f"{p:.5f}", f"{g:.5f}"))


def write_summary(curves: list[Curve], path: Path) -> Path:
    """A line a sampler: small enough to be kept in the repository."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("form", "target", "beta", "seed", "entropy", "divergence"))
        for c in curves:
            numbers = (f"{c.entropy:.4f}", f"{c.divergence:.4f}")
            writer.writerow((c.form, c.target, c.beta, c.seed, *numbers))
    return path


def draw(curves: list[Curve], out: Path) -> list[Path]:
    figure = new_figure(11, 7)
    grid = figure.subplots(2, 2, sharex=True, sharey="col")
    colours = dict(zip(BETAS, sequence(len(BETAS)), strict=True))
    for row, form in zip(grid, FORMS, strict=True):
        for axis, target in zip(row, TARGETS, strict=True):
            members = [c for c in curves if (c.form, c.target) == (form, target)]
            _panel(axis, members, colours)
            axis.set_title(TITLES[form], fontsize=11)
    figure.suptitle(
        "Amortised SVGD: small β gathers at one mode, the one near its start; "
        "large β covers the target",
        fontsize=13,
    )
    for column in grid.T:
        highest = max(line.get_ydata().max() for axis in column for line in axis.lines)
        column[0].set_ylim(0, 1.5 * highest)  # the legend is above the curves
        column[-1].set_xlabel("action")
    return save(figure, out / "svgd")


def _panel(axis: Any, curves: list[Curve], colours: dict[float, str]) -> None:
    goal = target_density(TARGETS[curves[0].target], 1.0)
    axis.plot(GRID, goal, "--", color="0.25", linewidth=1.5, label="target exp(Q)")
    for beta, members in by_beta(curves).items():
        entropy = np.mean([curve.entropy for curve in members])
        label: str | None = f"β = {beta:g}, entropy {entropy:.2f}"
        for curve in members:
            p = density(curve.samples, GRID)
            width = 2.0 if len(members) == 1 else 1.3
            axis.plot(GRID, p, color=colours[beta], linewidth=width, alpha=0.8, label=label)
            label = None
    axis.set_ylabel("density")
    axis.set_xlim(-1, 1)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(framealpha=0.85, edgecolor="none", fontsize=9, loc="upper left")


def by_beta(curves: Sequence[Curve]) -> dict[float, list[Curve]]:
    """Curves of one panel, all seeds of a β together."""
    return {beta: [c for c in curves if c.beta == beta] for beta in BETAS}


def run(
    out: Path,
    seeds: Sequence[int] = (0,),
    steps: int = STEPS,
    results: Path | None = None,
    particles: int = PARTICLES,
) -> list[Path]:
    """Train all samplers, print what they reached, write svgd.csv, svgd.png and svgd.svg."""
    if min(steps, particles) < 1 or not all(0 <= seed < 2**31 for seed in seeds):
        raise UserError("steps and particles must be at least 1, seeds between 0 and 2³¹ − 1")
    new_figure(1.0, 1.0)  # a missing extra is said before all is computed
    out.mkdir(parents=True, exist_ok=True)
    curves = [curve for seed in seeds for curve in study(seed, steps, particles)]
    _print_table(curves)
    write_csv(curves, out / "svgd.csv")
    name = "svgd.csv" if particles == PARTICLES else f"svgd-{particles}.csv"
    kept = [] if results is None else [write_summary(curves, results / "svgd" / name)]
    return [*draw(curves, out), out / "svgd.csv", *kept]


def _print_table(curves: Sequence[Curve]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("form", "target", "β", "entropy", "KL to exp(Q/β)", box=None, pad_edge=False)
    for form in FORMS:
        for target in TARGETS:
            panel = [c for c in curves if (c.form, c.target) == (form, target)]
            for beta, members in by_beta(panel).items():
                numbers = [[c.entropy for c in members], [c.divergence for c in members]]
                table.add_row(form, target, f"{beta:g}", *map(_mean_and_range, numbers))
    Console().print(table)


def _mean_and_range(values: Sequence[float]) -> str:
    mean = f"{np.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.2f} to {max(values):.2f})"
