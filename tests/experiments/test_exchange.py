"""Results as others publish them, both ways; and the published figures beside ours."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from folders import write_run
from typer.testing import CliRunner

from adac.cli.main import app
from adac.errors import UserError
from adac.experiments.analysis import published, report
from adac.experiments.analysis.exchange import COLUMNS, read
from adac.experiments.analysis.figures import draw
from adac.experiments.analysis.results import read_results

pytest.importorskip("scipy")
SPARSE = "dm_control/cartpole-swingup_sparse-v0"


def export(folder: Path, out: Path) -> list[dict[str, str]]:
    done = CliRunner().invoke(app, ["results", "export", str(folder), "-o", str(out)])
    assert done.exit_code == 0, done.output
    with open(out, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed, last in enumerate((700.5, 800.25)):
        write_run(tmp_path / "runs" / f"a{seed}", (1, 2, last), env=SPARSE, seed=seed)
        write_run(tmp_path / "runs" / f"b{seed}", (3, 4, 5), label='odd, "one"', seed=seed)
    return tmp_path / "runs"


def test_the_schema(runs: Path, tmp_path: Path) -> None:
    rows = export(runs, tmp_path / "new" / "out.csv")
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 12
    dmc = [row for row in rows if row["env_name"] == "cartpole-swingup_sparse"]
    assert {row["metric"] for row in rows} == {"avg_return"}
    assert [(r["exp_name"], r["seed"], r["env_step"], r["value"]) for r in dmc][2] == (
        "td3", "0", "300", "700.5",
    )  # fmt: skip


def test_there_and_back(runs: Path, tmp_path: Path) -> None:
    export(runs, tmp_path / "out.csv")
    before = read_results(runs)
    after = read_results(tmp_path / "out.csv")
    assert after.labels == before.labels
    back = {SPARSE: "cartpole-swingup_sparse"}
    for env, groups in before.groups.items():
        for label, group in groups.items():
            other = after.groups[back.get(env, env)][label]
            np.testing.assert_array_equal(other.scores, group.scores)


def test_a_file_is_one_more_line_in_the_panel_of_the_task(runs: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.csv"
    lines = [
        f"Theirs,cartpole-swingup-sparse,{s},avg_return,{t}.0,{s + t}"
        for s in (7, 8)
        for t in (100, 300)
    ]
    noise = "Theirs,cartpole-swingup-sparse,7,critic_loss,100,1e9"
    theirs.write_text("\n".join([",".join(COLUMNS), *lines, noise]))
    groups = read_results(runs, theirs).groups[SPARSE]
    assert set(groups) == {"td3", "Theirs"}
    curve = groups["Theirs"].curve()
    assert curve is not None
    assert curve.steps.tolist() == [100, 300]
    assert curve.mean.tolist() == [107.5, 307.5]
    paths = draw("curves", [runs, theirs], tmp_path / "figure", "both")
    assert "Theirs" in paths[2].read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step,return\n1,2\n", "its columns must be exp_name"),
        ("", "its columns must be exp_name"),
        (",".join(COLUMNS) + "\na,b,0,avg_return,ten,1\n", "is damaged"),
        (",".join(COLUMNS) + "\na,b,0,avg_return\n", "its columns must be exp_name"),
        (",".join(COLUMNS) + "\na,b,0,return_a,1,1\na,b,0,return_b,1,1\n", "return_a, return_b"),
    ],
)
def test_what_is_no_such_file_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "some.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read(path)
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "none.csv")


def test_the_published_figures_are_quoted_with_their_sources() -> None:
    lines = {(line.name, line.updates): line for line in published.FIGURES[SPARSE]}
    assert lines["BRO", 10].returns[0] == (797.2, 38.3, 5)
    assert lines["XQC", 2].returns[1] == (0.0, 0.0, 10)
    assert all(":results/" in line.source for own in published.FIGURES.values() for line in own)


def test_they_stand_beside_ours_in_table_and_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "ours", (1, 2, 3), env=SPARSE, settings={})
    text = (folder / "evaluations.csv").read_text()
    (folder / "evaluations.csv").write_text(text.replace("300,3", "200000,654.25"))
    config = json.loads((folder / "config.json").read_text())
    config["agent"]["updates_per_step"] = 1.0
    (folder / "config.json").write_text(json.dumps(config))
    results = read_results(tmp_path)
    table = published.markdown(results)
    assert "| td3 | 1 | 1 |  | 654.2 | here |" in table
    assert "| BRO | 10 | 5 | 797.2 ± 38.3 | 839.1 ± 12.6 | DAVIAN-Robotics/SimbaV2" in table
    data = report.gather(results, "ours")
    assert data["published"]["tasks"][0]["rows"][0] == ["td3", "1", "1", "", "654.2", "here"]
    assert "published-tables" in report.render(data)


def test_other_tasks_have_none(tmp_path: Path) -> None:
    write_run(tmp_path / "ours", (1, 2, 3))
    assert published.markdown(read_results(tmp_path)) == ""
