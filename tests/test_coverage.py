"""How much has been visited: counted the same for all agents, and to the bit after a resume."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adac import envs
from adac.envs import maze_of
from adac.runs.csv_table import read_table
from adac.training.coverage import BLOCK, FIT, PIXELS, Coverage, fitted, of_maze
from adac.training.learner import Learner

TINY = {"actor_hidden": "8", "critic_hidden": "8", "batch_size": 8, "learn_after": 5_000}


def states(count: int, size: int = 3, scale: float = 1.0, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, scale, (count, size)).astype(np.float32)


def seen(*blocks: Any) -> Coverage:
    coverage = Coverage(blocks[0].shape[1])
    for block in blocks:
        for one in block:
            coverage.see(one[None])
    return coverage


def test_the_same_states_again_are_nothing_new() -> None:
    once, twice = seen(states(3_000)), seen(states(3_000), states(3_000))
    assert once.count == twice.count > 100


def test_a_state_stays_in_its_cell_however_far_others_go() -> None:
    """Statistics that ran on would move every border, and count the same place again."""
    far = seen(states(FIT), states(FIT, scale=50.0, seed=1), states(FIT))
    assert far.count == seen(states(FIT), states(FIT, scale=50.0, seed=1)).count


def test_who_goes_further_covers_more() -> None:
    near = seen(states(FIT), states(4_000, seed=1))
    wide = seen(states(FIT), states(4_000, scale=3.0, seed=1))
    assert wide.count > 2 * near.count


@pytest.mark.parametrize("size", [1, 4, 5, 60])
def test_units_do_not_matter(size: int) -> None:
    units = np.float32(2.0) ** np.arange(-4, 4)[np.arange(size) % 8].astype(np.float32)
    assert seen(states(2_500, size)).count == seen(states(2_500, size) * units).count


def test_an_entry_that_does_not_vary_is_no_reason_to_stumble() -> None:
    still = np.concatenate([states(FIT), np.full((FIT, 1), 7.0, np.float32)], axis=1)
    assert seen(still).count == seen(states(FIT)).count


def test_when_it_is_asked_and_saved_changes_nothing() -> None:
    rows = states(FIT + BLOCK + 700)
    expected = seen(rows)
    for stop in (0, 10, FIT - 1, FIT, FIT + 1, FIT + BLOCK + 3):
        first = seen(rows[:stop]) if stop else Coverage(3)
        assert first.count >= 0
        second = Coverage(3)
        second.restore({name: value.copy() for name, value in first.snapshot().items()})
        for one in rows[stop:]:
            second.see(one[None])
        assert second.count == expected.count
        np.testing.assert_array_equal(second.cells, expected.cells)


def test_cells_are_half_a_deviation_wide() -> None:
    rows = np.array([[-1.0], [1.0]])  # mean 0, deviation 1
    found = fitted(rows).cells(np.array([[0.01], [0.49], [0.51], [-0.01], [7.9], [800.0]]))
    assert (found[:4] - found[0]).tolist() == [0, 0, 1, -1]
    assert found[4] == found[5] == 31


@pytest.mark.parametrize("task", ["PointMaze_UMaze-v3", "PointMaze_Medium-v3", "AntMaze_UMaze-v5"])
def test_a_maze_has_real_cells(task: str) -> None:
    env = envs.make(task)
    maze, inner = maze_of(env), env.unwrapped.maze  # type: ignore[attr-defined]
    assert maze is not None
    free = [
        np.array([row, column])
        for row, line in enumerate(inner.maze_map)
        for column, cell in enumerate(line)
        if cell != 1
    ]
    obs_dim = envs.flattened(env).observation_space.shape[0]  # type: ignore[index]
    rows = np.zeros((2 * len(free), obs_dim), np.float32)
    for i, cell in enumerate(free):
        middle = inner.cell_rowcol_to_xy(cell)
        rows[2 * i : 2 * i + 2, maze.columns] = [middle - 0.4 * maze.size, middle + 0.4 * maze.size]
    cells = of_maze(maze, obs_dim).cells(rows)
    assert len(set(cells.tolist())) == len(free)
    assert (cells[::2] == cells[1::2]).all()


def test_other_tasks_are_no_mazes() -> None:
    assert maze_of(envs.make("MountainCarContinuous-v0")) is None
    assert maze_of(envs.make("FetchReach-v4")) is None


def test_it_is_a_column_and_resumes_to_the_bit(tmp_path: Path) -> None:
    def start() -> Learner:
        return Learner("MountainCarContinuous-v0", "td3", num_envs=3, overrides=TINY)

    whole = start().learn(3_000, out=tmp_path / "whole", log_every=500)
    half = start().learn(3_000, callback=lambda learner: learner.step < 1_600)
    half.save(tmp_path / "half")
    resumed = Learner.load(tmp_path / "half")
    resumed.learn(3_000 - resumed.step)
    np.testing.assert_array_equal(resumed.loop.coverage.cells, whole.loop.coverage.cells)
    with open(tmp_path / "whole" / "metrics.csv", newline="") as file:
        column = [int(row["coverage"]) for row in csv.DictReader(file)]
    assert column[0] == 0  # the grid is not settled yet
    assert column[1:] == sorted(column[1:])
    assert column[-1] == whole.loop.coverage.count > 50


def test_a_picture_counts_every_state_once() -> None:
    rows = np.array([[-1.0, -1.0], [1.0, 1.0]])  # mean 0, deviation 1
    grid = fitted(rows)
    picture = grid.picture(np.array([[0.0, 3.99], [0.0, 3.99], [-900.0, 0.0]]))
    assert picture.sum() == 3
    assert picture[PIXELS - 1, PIXELS // 2] == 2  # up is the last row
    assert picture[PIXELS // 2, 0] == 1
    assert fitted(np.array([[-1.0], [1.0]])).picture(np.zeros((5, 1))).sum() == 5


def test_visits_are_those_since_they_were_taken() -> None:
    coverage = seen(states(FIT + 500))
    assert coverage.take_visits().sum() == FIT + 500
    for one in states(30):
        coverage.see(one[None])
    again = Coverage(3)
    again.restore(coverage.snapshot())
    assert again.take_visits().sum() == coverage.take_visits().sum() == 30


def test_where_both_policies_have_been_at_four_stages(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    from adac.experiments.analysis import report
    from adac.experiments.analysis.results import read_results

    learner = Learner("PointMaze_UMaze-v3", "td3", overrides=TINY)
    learner.learn(1_200, out=tmp_path / "run", eval_every=300, eval_episodes=1)
    rows = read_table(tmp_path / "run" / "visits.csv")
    totals: dict[tuple[int, str], int] = {}
    for row in rows:
        key = (int(row["step"]), row["policy"])
        totals[key] = totals.get(key, 0) + int(row["visits"])
    stages = [300, 600, 1_200]  # 10 % and 25 % are both over at the first evaluation
    assert [totals[step, "mu"] for step in stages] == [300, 300, 600]
    assert [totals[step, "pi"] for step in stages] == [300] * 3
    data = report.gather(read_results(tmp_path), "where")
    (shown,) = data["visits"]
    assert [stage["step"] for stage in shown["stages"]] == stages
    assert abs(sum(shown["stages"][0]["mu"]) - 1) < 1e-3
    assert "visits-stages" in report.render(data)


def test_a_damaged_picture_is_passed_over(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    from adac.experiments.analysis import report
    from adac.experiments.analysis.results import read_results

    learner = Learner("MountainCarContinuous-v0", "td3", overrides=TINY)
    learner.learn(20, out=tmp_path / "run", eval_every=20, eval_episodes=1)
    lines = ("step,policy,x,y,visits", "20,mu,3,99,5", "20,nu,1,1,1", "20,pi,x,1,1", "20,mu,2,3,4")
    (tmp_path / "run" / "visits.csv").write_text("\n".join(lines) + "\n")
    (shown,) = report.gather(read_results(tmp_path), "where")["visits"]
    assert sum(shown["stages"][0]["mu"]) == 1
