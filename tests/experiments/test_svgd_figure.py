"""Figure 1: what β does, on a sampler that is really trained."""

import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from adac.cli.main import app
from adac.errors import UserError
from adac.experiments.paper import svgd_figure
from adac.experiments.paper.svgd_figure import BETAS, FORMS, GRID, TARGETS, Curve, Sampler

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("form", FORMS)
def test_entropy_grows_with_beta_and_the_density_is_the_targets(form: str) -> None:
    sampler = Sampler(FORMS[form], TARGETS["one mode"])
    samples = svgd_figure.train(sampler, 800, jnp.array(BETAS), 0)
    curves = [
        svgd_figure.measure(form, "one mode", beta, 0, np.asarray(row, np.float64))
        for beta, row in zip(BETAS, samples, strict=True)
    ]
    entropies = [curve.entropy for curve in curves]
    assert entropies == sorted(entropies)
    assert all(curve.divergence < 0.15 for curve in curves)


def test_target_densities_are_densities() -> None:
    for q in TARGETS.values():
        for beta in BETAS:
            p = svgd_figure.target_density(q, beta)
            assert np.trapezoid(p, GRID) == pytest.approx(1.0)
    # N(0.2, 0.25²) at β = 1: its peak is 1 / (0.25 √2π), and little of it lies beyond ±1.
    peak = svgd_figure.target_density(TARGETS["one mode"], 1.0).max()
    assert peak == pytest.approx(1.5958, rel=1e-3)


def test_the_csv_is_what_is_drawn(tmp_path: Path) -> None:
    spread = np.linspace(-0.9, 0.9, 500)
    curves = [Curve(f, t, b, 0, spread, 0.0, 0.0) for f in FORMS for t in TARGETS for b in BETAS]
    svgd_figure.write_csv(curves, tmp_path / "svgd.csv")
    paths = svgd_figure.draw(curves, tmp_path)
    assert [path.name for path in paths] == ["svgd.png", "svgd.svg"]
    with open(tmp_path / "svgd.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(curves) * len(GRID)
    middle = [float(row["p"]) for row in rows if row["a"] == "0.00"]
    assert middle == pytest.approx([1 / 1.8] * len(curves), rel=0.02)


def test_bad_numbers_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least 1"):
        svgd_figure.run(tmp_path, steps=0)


def test_another_k_is_published_beside_the_papers(tmp_path: Path) -> None:
    *_, few = svgd_figure.run(tmp_path, steps=2, results=tmp_path, particles=8)
    *_, many = svgd_figure.run(tmp_path, steps=2, results=tmp_path)
    assert (few.name, many.name) == ("svgd-8.csv", "svgd.csv")
    assert few.read_text() != many.read_text()


def test_each_seed_is_drawn_and_published(tmp_path: Path) -> None:
    options = ["--seeds", "3,5", "--steps", "2", "--out", tmp_path / "out"]
    options += ["--publish", "--results", tmp_path / "results"]
    done = CliRunner().invoke(app, ["reproduce", "svgd", *map(str, options)])
    assert done.exit_code == 0, done.output
    drawn = (tmp_path / "out" / "svgd.csv").read_text().splitlines()
    kept = (tmp_path / "results" / "svgd" / "svgd.csv").read_text().splitlines()
    names = ("form", "target", "beta", "seed", "entropy", "divergence")
    wanted = {tuple(row[name] for name in names) for row in csv.DictReader(drawn)}
    assert {tuple(row.values()) for row in csv.DictReader(kept)} == wanted
    assert len(wanted) == 2 * len(FORMS) * len(TARGETS) * len(BETAS)
