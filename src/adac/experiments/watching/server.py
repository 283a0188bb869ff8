"""The report page of a run that goes on, served to this machine alone.

Whatever is asked for under another name than this machine's own is refused, so that no page of a
stranger can read it through the browser (DNS rebinding). There are two addresses and no files: the
page has its videos in itself.
"""

import hashlib
import importlib.resources
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from adac.errors import UserError
from adac.experiments.analysis.report import gather, render
from adac.experiments.analysis.results import Results, read_results
from adac.runs.csv_table import VISITS
from adac.runs.files import files_below
from adac.runs.video import VIDEOS

HOST, PORT = "127.0.0.1", 8700
SECONDS = 3  # between two looks of the page
TABLES = ("config.json", "metrics.csv", "evaluations.csv", "snapshots.csv", VISITS)
ALLOWED = " connect-src 'self';"


class Watched:
    """A folder of runs, as it is now."""

    def __init__(self, folder: Path):
        self.folder = folder

    def version(self) -> str:
        """Another one whenever something was written that the page shows."""
        facts = hashlib.sha256()
        for path in sorted(self._shown()):
            try:
                state = path.lstat()
            except OSError:
                continue
            facts.update(os.fsencode(path))
            facts.update(f"\n{state.st_mtime_ns} {state.st_size}\n".encode())
        return facts.hexdigest()[:16]

    def _shown(self) -> Iterator[Path]:
        for path in files_below(self.folder):
            video = path.parent.name == VIDEOS and path.match("step-*.mp4")
            if video or path.name in (*TABLES, "done.json"):
                yield path

    def page(self) -> str:
        version = self.version()
        results = read_results(self.folder)
        data = gather(results, self.folder.resolve().name, last_video=True)
        live = {"version": version, "seconds": SECONDS, "status": _status(results)}
        script = (importlib.resources.files(__package__) / "watch.js").read_text(encoding="utf-8")
        return render(data | {"live": live}, script, ALLOWED)


def _status(results: Results) -> str:
    """How far its runs are."""
    runs = results.runs
    if len(runs) == 1:
        (run,) = runs
        planned = run.config.get("steps")
        of = f" of {planned:,}" if isinstance(planned, int) else ""
        return f"{run.label} on {run.env}, seed {run.seed}: step {run.last_step:,}{of}"
    done = sum(run.finished for run in runs)
    return f"{len(runs)} runs, {done} of them finished"


class Handler(BaseHTTPRequestHandler):
    """GET / and /version."""

    server: "Server"

    def do_GET(self) -> None:
        name = self.headers.get("Host", "").rpartition(":")[0]
        if name not in (HOST, "localhost"):
            self._answer(403, b"this page is for its own machine", "text/plain")
        elif self.path == "/":
            self._page()
        elif self.path == "/version":
            self._answer(200, self.server.watched.version().encode(), "text/plain")
        else:
            self._answer(404, b"there is nothing here", "text/plain")

    def _page(self) -> None:
        try:
            page = self.server.watched.page()
        except UserError as error:  # a run that has written nothing yet
            text = f"{error}\n(the page looks again by itself)\n"
            self._answer(
                200, text.encode(errors="replace"), "text/plain; charset=utf-8", again=True
            )
            return
        self._answer(200, page.encode("utf-8", "backslashreplace"), "text/html; charset=utf-8")

    def _answer(self, code: int, body: bytes, kind: str, *, again: bool = False) -> None:
        self.send_response(code)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **({"Refresh": str(SECONDS)} if again else {}),
        }
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A terminal need not hear of every look."""


class Server(ThreadingHTTPServer):
    """On loopback only."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int):
        self.watched = Watched(folder)
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"port {port} cannot be used ({reason}): try --port 0") from None

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"
