"""Ray of our own: reached by nobody else, and ended by SIGTERM with the number of the signal."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from adac.experiments.sweeps.cluster import Signals, _alone

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


def listening(parent: int) -> set[str]:
    """The addresses, in hexadecimal, on which a process or one of its descendants listens."""
    inodes = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                inodes[f"socket:[{fields[9]}]"] = fields[1].partition(":")[0]
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if parent in ancestors(int(process.name)):
                links = [os.readlink(link) for link in (process / "fd").iterdir()]
                found |= {inodes[link] for link in links if link in inodes}
        except OSError:
            continue
    return found


def ancestors(pid: int) -> set[int]:
    found = {pid}
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
        found.add(pid)
    return found


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for sockets in /proc")
def test_a_local_sweep_listens_on_loopback_only_and_tells_sigterm_from_ctrl_c() -> None:
    process = subprocess.Popen([sys.executable, "-c", SWEEP], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    found = listening(process.pid)
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
