"""Ray of our own: reached by nobody else, and ended by SIGTERM with the number of the signal."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from adac.experiments.sweeps.cluster import Signals, _alone
from torture.sweeps import LOOPBACK, descendants, listening

SWEEP = """
import sys, time
from adac.experiments.sweeps.cluster import Signals, cluster
try:
    with Signals() as signals, cluster(1, None), signals.terminating():
        import ray
        assert ray.get(ray.remote(lambda: 7).remote()) == 7
        print("ready", flush=True)
        nap = ray.remote(lambda: time.sleep(9)).remote()
        while True:
            ray.wait([nap], timeout=0.2)
except KeyboardInterrupt as stop:
    print("stopped", *stop.args, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for sockets in /proc")
def test_a_local_sweep_listens_on_loopback_only_and_tells_sigterm_from_ctrl_c() -> None:
    process = subprocess.Popen([sys.executable, "-c", SWEEP], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    found = listening(descendants(process.pid))
    folders = list(Path(tempfile.gettempdir()).glob(f"adac-ray-{process.pid}-*"))
    modes = [folder.stat().st_mode & 0o077 for folder in folders]
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "stopped 15\n"
    assert found
    assert found <= LOOPBACK
    assert modes == [0]  # nobody else may look into it


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "mine")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    before = dict(os.environ)
    with _alone():
        assert os.environ["RAY_AUTH_MODE"] == "token"
        assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    assert dict(os.environ) == before


def stop(signals: Signals, number: int) -> None:
    with signals:
        signals.received = number
        raise KeyboardInterrupt  # as Ray's, without the number


@pytest.mark.parametrize(("number", "args"), [(0, ()), (15, (15,))])
def test_the_signal_is_not_lost_on_the_way_out(number: int, args: tuple[int, ...]) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        stop(Signals(), number)
    assert raised.value.args == args
