"""Tables of a run: one bad byte costs at most its line, and never the run."""

import os
from pathlib import Path

import numpy as np
import pytest

from adac.errors import RunError
from adac.runs.csv_table import Mark, Table, number_in, read_table

COLUMNS = ("step", "q", "loss")
LINES = ["step,q,loss", "100,1.5,0.1", "200,2.5,0.2", "300,3.5,0.3"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.csv"
    path.write_text("".join(f"{line}\r\n" for line in LINES))
    return path


def steps(path: Path) -> list[str]:
    return [row["step"] for row in read_table(path)]


def resume(path: Path, step: int = 300) -> list[dict[str, str]]:
    one = Table(path, COLUMNS, step)
    one.add({"step": 400, "q": 4.5, "loss": 0.4})
    one.close()
    return read_table(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"200,", b"\xff00,"),
        (b"200,", "²,".encode()),
        (b"200,", b"9" * 5_000 + b","),
        (b"200,", b'"200,'),
        (b"200,2.5", b"200,2.5,7"),
        (b"200,", b"\x00,"),
        (b"200,2.5,0.2\r\n", b"x" * 200_000 + b"\r\n"),
    ],
)
def test_a_damaged_line_is_passed_over_and_said(table: Path, old: bytes, new: bytes) -> None:
    table.write_bytes(table.read_bytes().replace(old, new))
    assert steps(table) == ["100", "300"]
    with pytest.warns(UserWarning, match=r"metrics\.csv was damaged: 1 of its lines"):
        rows = resume(table)
    assert [row["step"] for row in rows] == ["100", "300", "400"]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_damaged_column_name_costs_no_history(table: Path, name: str) -> None:
    table.write_bytes(table.read_bytes().replace(name.encode(), b"\xffx", 1))
    assert resume(table)[0] == {"step": "100", "q": "1.5", "loss": "0.1"}


def test_columns_of_another_version_are_kept(table: Path) -> None:
    one = Table(table, ("step", "loss", "bias", "q"), 300)
    one.add({"step": 400, "bias": 7})
    one.close()
    assert read_table(table)[0] == {"step": "100", "loss": "0.1", "bias": "", "q": "1.5"}
    one = Table(table, ("step", "bias", "x"), 400)
    one.close()
    assert read_table(table)[-1]["bias"] == "7"
    assert read_table(table)[0]["q"] == "1.5"


def test_a_line_cut_off_by_a_kill_is_no_damage(table: Path) -> None:
    table.write_bytes(table.read_bytes() + b"350,3.5,0.123"[:-2])
    assert steps(table) == ["100", "200", "300"]
    assert [row["step"] for row in resume(table, 200)] == ["100", "200", "400"]


def test_random_bytes_anywhere_never_stop_a_run(table: Path) -> None:
    whole, draw = table.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.integers(1, 4)):
            data[draw.integers(len(data))] = draw.integers(256)
        table.write_bytes(data[: draw.integers(len(data) + 1)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)
            assert resume(table)[-1]["step"] == "400"


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.csv")
    with pytest.raises(RunError, match="not a regular file"):
        read_table(tmp_path / "metrics.csv")


def test_a_folder_in_its_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").mkdir()
    with pytest.raises(RunError, match=r"metrics\.csv cannot be read: Is a directory"):
        Table(tmp_path / "metrics.csv", COLUMNS, 0)


def test_a_cell_without_a_number_is_none() -> None:
    assert number_in({"q": "1.5"}, "q") == 1.5
    assert number_in({"q": "1.5x"}, "q") is None
    assert number_in({}, "q") is None


def marked(path: Path) -> Mark:
    one = Table(path, COLUMNS, 300)
    one.close()
    return one.mark


def test_what_is_added_is_marked_as_it_will_be_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    one = Table(path, COLUMNS, 0)
    assert one.mark == Mark()
    one.add({"step": 100, "q": 1.5, "loss": 'a "b", c'})
    one.add({"step": 200, "q": np.float32(2.5)})
    one.close()
    assert one.mark == Mark.of(read_table(path))
    assert one.mark[:2] == (200, 2)


def test_every_changed_character_before_the_mark_is_said_once(table: Path) -> None:
    vouched, whole = marked(table), table.read_bytes()
    for place in range(len(LINES[0]) + 2, len(whole)):
        if whole[place : place + 1] in b"\r\n":
            continue
        table.write_bytes(whole[:place] + b"7" + whole[place + 1 :])
        if table.read_bytes() == whole:
            continue
        with pytest.warns(UserWarning, match=r"metrics\.csv was damaged: .*wrong numbers") as said:
            one = Table(table, COLUMNS, 300, vouched)
        one.close()
        assert len(said) == 1
        table.write_bytes(whole)


@pytest.mark.parametrize("lose", [b"200,2.5,0.2\r\n", b"step,q,loss\r\n", None])
def test_lost_rows_are_said(table: Path, lose: bytes | None) -> None:
    vouched = marked(table)
    table.write_bytes(b"" if lose is None else table.read_bytes().replace(lose, b""))
    with pytest.warns(UserWarning, match="are not the 3 that were written"):
        Table(table, COLUMNS, 300, vouched).close()


def test_rows_after_the_mark_and_columns_of_another_version_are_no_damage(table: Path) -> None:
    vouched = Mark.of(read_table(table)[:2])
    table.write_bytes(table.read_bytes().replace(b"300,3.5", b"300,9.5"))
    Table(table, COLUMNS, 200, vouched).close()
    Table(table, ("step", "bias", "loss", "q"), 200, vouched).close()
