"""`adac push` and `adac pull` with the real client, against a small hub on this machine."""

import base64
import hashlib
import json
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adac
from adac.cli.main import main
from adac.errors import RunError, UserError
from adac.experiments.hub.card import card
from adac.experiments.hub.pull import pull
from adac.experiments.hub.push import gather, push
from adac.training.learner import Learner
from helpers import SMALL_LATENT, assert_same_bits

pytest.importorskip("huggingface_hub")
TINY = SMALL_LATENT | {"warmup": 10}
COMMIT = "a" * 40


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's protocol as a commit of small files and their download need."""

    files: dict[str, bytes]
    asked: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append(self.path)
        if self.path == "/api/repos/create":
            self._json({"url": "http://127.0.0.1/me/run"})
        elif self.path == "/api/validate-yaml":
            assert "library_name" in json.loads(body)["content"]
            self._json({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            names = [one["path"] for one in json.loads(body)["files"]]
            self._json({"files": [
                {"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names
            ]})  # fmt: skip
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self._json(
                {"commitUrl": f"http://127.0.0.1/me/run/commit/{COMMIT}", "commitOid": COMMIT}
            )

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def _serve(self, *, with_body: bool) -> None:
        self.asked.append(self.path)
        name = self.path.partition(f"/resolve/{COMMIT}/")[2]
        if self.path.startswith("/api/models/me/run"):
            siblings = [{"rfilename": n, "size": len(b)} for n, b in self.files.items()]
            self._json({"id": "me/run", "sha": COMMIT, "siblings": siblings})
        elif name in self.files:
            self._send(200, self.files[name], "application/octet-stream", with_body)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), "application/json", True)

    def _send(self, code: int, body: bytes, kind: str, with_body: bool) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Hub]]:
    kind: type[Hub] = type("Here", (Hub,), {"files": {}, "asked": [], "timeout": 20})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("HF_TOKEN", "hf_of_nobody")
        monkeypatch.chdir(tmp_path)
        yield kind
        server.shutdown()
        thread.join(10)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "run"
    kwargs = {"max_episode_steps": 6}
    learner = Learner("Pendulum-v1", "adac-td3", overrides=TINY, env_kwargs=kwargs)
    learner.learn(30, out=folder, eval_every=15, eval_episodes=2, log_every=10)
    return folder


@pytest.fixture(scope="module")
def pushed(run: Path) -> dict[str, bytes]:
    """What the hub holds after a push, for tests that begin with it."""
    return {}


def filled(hub: type[Hub], run: Path, pushed: dict[str, bytes]) -> type[Hub]:
    if not pushed:
        push(run, "me/run")
        pushed |= hub.files
    hub.files |= pushed
    return hub


def test_a_run_goes_to_the_hub_and_comes_back(
    hub: type[Hub], run: Path, pushed: dict[str, bytes], tmp_path: Path
) -> None:
    filled(hub, run, pushed)
    assert set(hub.files) == {
        "README.md", "config.json", "curve.png", "evaluations.csv", "metrics.csv",
        "policy.safetensors", "replay.mp4", "visits.csv", "checkpoint/step-000000000030.json",
        "checkpoint/step-000000000030.safetensors",
    }  # fmt: skip
    assert hub.files["curve.png"][:4] == b"\x89PNG"
    assert b"ftyp" in hub.files["replay.mp4"][:16]
    pull("me/run", tmp_path / "back")
    ours, theirs = (Learner.load(one, with_replay=False) for one in (run, tmp_path / "back"))
    assert_same_bits(ours.state, theirs.state)
    obs = np.zeros(3, np.float32)
    policy = adac.Policy.load(tmp_path / "back" / "policy.safetensors")
    wanted = ours.predict(obs, deterministic=True)[0]
    np.testing.assert_allclose(policy.predict(obs)[0], wanted, atol=1e-5)


def test_the_card_says_what_the_run_is(hub: type[Hub], run: Path, pushed: dict[str, bytes]) -> None:
    filled(hub, run, pushed)
    text = hub.files["README.md"].decode()
    front = text.split("---")[1]
    assert 'library_name: "adac"' in front
    (index,) = re.findall("^model-index: (.*)$", front, re.M)
    (metric,) = json.loads(index)[0]["results"][0]["metrics"]
    last = (run / "evaluations.csv").read_text().splitlines()[-1].split(",")
    assert metric["value"].startswith(f"{float(last[1]):.2f} ±")
    for words in (
        "# adac-td3 on Pendulum-v1", "after 30 environment steps", "](curve.png)", "replay.mp4",
        "adac pull me/run", "| explorer.particles | `4` |",
    ):  # fmt: skip
        assert words in text


def test_a_hostile_name_cannot_write_the_card() -> None:
    config = {"env": "x\n---\n<script>", "agent_name": "a`|b", "seed": 0, "num_envs": 1,
              "agent": {"base": {"kind": "`|\n# no"}}, "env_kwargs": {}}  # fmt: skip
    text = card("me/run", config, 0, [], [])
    assert text.count("\n---\n") == 1
    assert "<script>" not in text
    assert "\n# no" not in text


def test_the_commands(
    hub: type[Hub], run: Path, pushed: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    filled(hub, run, pushed)
    with pytest.raises(SystemExit) as done:
        main(["pull", "me/run"])
    assert not done.value.code
    assert "run: 10 files; try: adac eval run" in capsys.readouterr().out
    assert Path("run/config.json").exists()
    with pytest.raises(SystemExit) as again:
        main(["pull", "me/run"])
    assert again.value.code == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["best/policy.safetensors", "videos/step-000000001.mp4"])
def test_a_link_in_a_run_does_not_send_out_a_file_of_ours(
    hub: type[Hub], run: Path, tmp_path: Path, name: str
) -> None:
    """A run that somebody has given us, and that we share again."""
    secret = tmp_path / "id_rsa"
    secret.write_text("PRIVATE")
    given = Path(shutil.copytree(run, tmp_path / "given"))
    (given / name).parent.mkdir(exist_ok=True)
    (given / name).unlink(missing_ok=True)
    (given / name).symlink_to(secret)
    with pytest.raises(UserError, match="symbolic link"):
        push(given, "me/given")
    assert not hub.files


def test_a_hub_that_does_not_answer_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Path
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(RunError, match="me/run could not be pulled: "):
        pull("me/run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


# -- a stranger's repository ----------------------------------------------------------------------


def test_only_files_of_a_run_are_fetched(
    hub: type[Hub], run: Path, pushed: dict[str, bytes], tmp_path: Path
) -> None:
    filled(hub, run, pushed)
    strange = ["../evil", "evil.py", "checkpoint/../../evil", "/etc/evil", "config.json/evil",
               "checkpoint/replay-00000-000000000030.safetensors"]  # fmt: skip
    hub.files |= dict.fromkeys(strange, b"evil")
    names = pull("me/run", tmp_path / "back")
    assert not set(strange) & set(names)
    assert not [path for path in hub.asked if "evil" in path]
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("config.json", b'{"format": "adac-run-9"}', "adac-run-1"),
        ("config.json", None, "not a run of adac"),
        ("checkpoint/step-000000000030.safetensors", b"rubbish", "can be used"),
        ("policy.safetensors", b"rubbish", "damaged"),
    ],
)
def test_what_is_not_a_run_is_refused_and_leaves_nothing(
    name: str,
    change: bytes | None,
    words: str,
    hub: type[Hub],
    run: Path,
    pushed: dict[str, bytes],
    tmp_path: Path,
) -> None:
    filled(hub, run, pushed)
    if change is None:
        del hub.files[name]
    else:
        hub.files[name] = change
    with pytest.raises(UserError, match=words):
        pull("me/run", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_another_agent_in_config_json_is_refused(
    hub: type[Hub], run: Path, pushed: dict[str, bytes], tmp_path: Path
) -> None:
    filled(hub, run, pushed)
    hub.files["config.json"] = hub.files["config.json"].replace(
        b'"discount": 0.99', b'"discount": 0.5'
    )
    with pytest.raises(UserError, match="was damaged or changed: it says"):
        pull("me/run", tmp_path / "back")


def test_a_repository_that_is_not_there_is_one_sentence(hub: type[Hub], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="you/none could not be pulled") as error:
        pull("you/none", tmp_path / "back")
    assert "\n" not in str(error.value)
    for name in ("none", "a/b/c", "../x/y", "a/..", ""):
        with pytest.raises(UserError, match="is USER/NAME"):
            pull(name, tmp_path / "back")


def test_a_pushed_run_does_not_name_the_folders_of_its_owner(run: Path, tmp_path: Path) -> None:
    folder, scratch = tmp_path / "home" / "run", tmp_path / "scratch"
    shutil.copytree(run, folder)
    scratch.mkdir()
    config = json.loads((folder / "config.json").read_text())
    origin = {"folder": str(tmp_path / "home" / "first"), "step": 5, "env": "Pendulum-v1"}
    data = [str(tmp_path / "home" / "of.npz"), "C:\\me\\old", "minari:a/b-v0"]
    (folder / "config.json").write_text(json.dumps(config | {"from": origin, "data": data}))
    files = gather(folder, "me/run", scratch)
    for name, path in files.items():
        assert str(tmp_path).encode() not in path.read_bytes(), name
    pushed = json.loads(files["config.json"].read_text())
    assert pushed["from"] == origin | {"folder": "first"}
    assert pushed["data"] == ["of.npz", "old", "minari:a/b-v0"]
