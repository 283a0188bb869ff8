"""`adac watch` on a real run that is filmed: over HTTP, from this machine only."""

import base64
import json
import os
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adac.cli.main import main
from adac.errors import UserError
from adac.experiments.watching.server import HOST, Server, Watched
from adac.runs.video import VIDEOS
from adac.training.learner import Learner
from helpers import assert_same_bits

TINY = {"net_arch": "8", "batch_size": 8, "warmup": 10}
PLAN: dict[str, Any] = {"eval_every": 20, "eval_episodes": 1, "log_every": 10}


def learner() -> Learner:
    return Learner("Pendulum-v1", "td3", overrides=TINY, env_kwargs={"max_episode_steps": 8})


@pytest.fixture(scope="module")
def filmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched") / "run"
    filming = learner().learn(40, out=folder, video_every=15, **PLAN)
    assert_same_bits(filming.state, learner().learn(40, **PLAN).state)
    return folder


@pytest.fixture
def server(filmed: Path) -> Iterator[Server]:
    with Server(filmed, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def get(address: str, host: str | None = None) -> bytes:
    request = urllib.request.Request(address, headers={"Host": host} if host else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def data_of(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_a_run_is_filmed_as_often_as_asked(filmed: Path) -> None:
    films = sorted(path.name for path in (filmed / VIDEOS).iterdir())
    assert films == ["step-000000015.mp4", "step-000000030.mp4"]
    assert b"ftyp" in (filmed / VIDEOS / films[0]).read_bytes()[:16]
    assert json.loads((filmed / "config.json").read_text())["video_every"] == 15  # for resume


def test_the_page_shows_the_run_as_it_is(filmed: Path, server: Server) -> None:
    data = data_of(get(server.address).decode())
    assert data["live"]["status"] == "td3 on Pendulum-v1, seed 0: step 40 of 40"
    (film,) = data["videos"]  # the last one
    assert film["caption"] == "td3, Pendulum-v1, seed 0: step-000000030.mp4"
    wanted = (filmed / VIDEOS / "step-000000030.mp4").read_bytes()
    assert base64.b64decode(film["address"].partition(",")[2]) == wanted
    assert {"mean_return", "coverage"} <= {metric["name"] for metric in data["metrics"]}


def test_the_page_learns_that_the_run_has_gone_on(filmed: Path, server: Server) -> None:
    before = data_of(get(server.address).decode())["live"]["version"]
    assert get(server.address + "version").decode() == before
    with open(filmed / "evaluations.csv", "a") as file:
        row = (filmed / "evaluations.csv").read_text().splitlines()[-1].split(",")
        file.write(",".join(["41", *row[1:]]) + "\n")
    after = get(server.address + "version").decode()
    assert after != before
    data = data_of(get(server.address).decode())
    assert data["live"]["version"] == after
    assert data["tasks"][0]["groups"][0]["curves"]["mean_return"]["steps"][-1] == 41


def test_only_this_machine_under_its_own_name_is_answered(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    port = server.server_address[1]
    assert get(server.address, f"localhost:{port}")
    for path, host, code in (
        ("", f"evil.example:{port}", 403),
        ("version", "evil.example", 403),
        ("../config.json", None, 404),
        ("config.json", None, 404),
        ("videos/step-000000030.mp4", None, 404),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(server.address + path, host)
        assert refused.value.code == code
        refused.value.close()


def test_a_video_that_is_a_link_is_not_followed(tmp_path: Path, filmed: Path) -> None:
    run = tmp_path / "run"
    (run / VIDEOS).mkdir(parents=True)
    for name in ("config.json", "evaluations.csv", "metrics.csv"):
        (run / name).write_bytes((filmed / name).read_bytes())
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (run / VIDEOS / "step-000000001.mp4").symlink_to(secret)
    data = data_of(Watched(run).page())
    assert data["videos"] == []
    assert any("symbolic link" in note for note in data["notes"])


def test_a_folder_whose_name_is_no_text_is_shown(tmp_path: Path, filmed: Path) -> None:
    run = tmp_path / os.fsdecode(b"\xff\xfe")
    run.mkdir()
    for name in ("config.json", "evaluations.csv", "metrics.csv"):
        (run / name).write_bytes((filmed / name).read_bytes())
    before = Watched(run).version()
    assert data_of(Watched(run).page())["live"]["version"] == before
    (run / "metrics.csv").write_text("step\n")
    assert Watched(run).version() != before


def test_a_film_that_is_still_being_written_is_not_shown(filmed: Path) -> None:
    half = filmed / VIDEOS / ".step-000000045.mp4"
    half.write_bytes(b"half")
    try:
        (film,) = data_of(Watched(filmed).page())["videos"]
        assert "step-000000030" in film["caption"]
    finally:
        half.unlink()


def test_a_run_that_has_not_begun_is_waited_for(tmp_path: Path) -> None:
    with Server(tmp_path, 0) as server:
        with pytest.raises(UserError):
            server.watched.page()
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with urllib.request.urlopen(server.address, timeout=60) as answer:
            assert answer.headers["Refresh"]
        thread.join(10)


def test_what_cannot_be_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(SystemExit) as refused:
            main(["watch", str(tmp_path), "--port", str(taken.getsockname()[1])])
    assert refused.value.code == 2
    assert "try --port 0" in capsys.readouterr().err
    with pytest.raises(UserError, match="need a run folder"):
        learner().learn(1, video_every=10)
    monkeypatch.setitem(__import__("sys").modules, "imageio.v2", None)
    with pytest.raises(UserError, match=r"adac\[video\]"):
        learner().learn(1, out=tmp_path / "run", video_every=10)
