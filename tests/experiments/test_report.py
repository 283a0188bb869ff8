"""The report: what is in it, that it is inert, and what a real browser makes of it."""

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from folders import write_run
from typer.testing import CliRunner

from adac.errors import UserError
from adac.experiments.analysis import report, videos
from adac.experiments.analysis.report import write_report
from adac.experiments.analysis.results import read_results

pytest.importorskip("scipy")

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: Debian's package 'chromium' is not installed"
)
# Clicks and drags as a reader would make them; what it finds out goes into the DOM.
DRIVER = """
<script>
{
const chart = document.querySelector("#charts svg"), box = chart.getBoundingClientRect();
const means = () => document.querySelectorAll("#charts path.mean").length;
const at = (share) => ({ clientX: box.left + box.width * share, clientY: box.top + 60, bubbles: true });
const ticks = () => [...chart.querySelectorAll("text")].map((t) => t.textContent).join(" ");
const found = { lines: means(), bands: document.querySelectorAll("path.band").length };
const button = document.querySelector("#legend button");
button.click(); found.hidden = means(); found.pressed = button.getAttribute("aria-pressed");
button.click(); found.shown = means();
chart.dispatchEvent(new PointerEvent("pointermove", at(0.9)));
found.tip = document.querySelector(".tip").textContent;
found.before = ticks();
for (const [kind, share] of [["pointerdown", 0.5], ["pointermove", 0.7], ["pointerup", 0.9]])
  chart.dispatchEvent(new PointerEvent(kind, at(share)));
found.zoomed = ticks();
document.getElementById("reset").click(); found.after = ticks();
const choose = (id, value) => { const s = document.getElementById(id); s.value = value; s.dispatchEvent(new Event("input")); };
choose("band", "none"); found.bare = document.querySelectorAll("path.band").length;
const tick = (name) => { const box = document.querySelector(`#metrics input[value=${name}]`); box.checked = !box.checked; box.dispatchEvent(new Event("input")); };
tick("bias"); found.both = means(); found.charts = document.querySelectorAll("#charts figure").length;
found.captions = [...document.querySelectorAll("#charts figcaption")].map((c) => c.textContent);
tick("mean_return"); found.bias = means(); tick("bias"); tick("mean_return");
choose("axis", "hours"); found.hours = document.querySelector("#charts svg").textContent;
choose("axis", "steps");
choose("filter", "td3 -adac"); found.filtered = means(); found.said = document.getElementById("filtered").textContent;
found.unpaired = document.getElementById("pairs").hidden;
found.listed = document.querySelectorAll("#runs tbody tr").length;
found.heads = document.querySelectorAll("#table thead th").length;
choose("filter", "hopper"); found.bytask = means();
choose("filter", "ant"); found.nothing = document.getElementById("charts").textContent;
choose("filter", "");
found.pairs = document.getElementById("pairs-table").textContent; found.unfolded = document.getElementById("pairs").open;
found.notes = document.getElementById("notices").open;
found.row = document.querySelector("#runs tbody tr").textContent;
found.video = document.querySelector("#videos video").readyState >= 0 && document.querySelector("#videos figcaption").textContent;
found.breaks = document.querySelectorAll("#table tbody th wbr").length;
choose("numbers", "iqm"); found.iqm = document.querySelector("#table td").textContent;
found.width = document.documentElement.scrollWidth;
found.inner = window.innerWidth;
document.body.dataset.found = JSON.stringify(found);
}
</script>
"""  # noqa: E501


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    root = tmp_path / "trials"
    for agent, more in (("td3", 0.0), ("adac-td3", 50.0)):
        for seed in range(2):
            returns = [more + seed + step for step in (1.0, 2.0, 3.0)]
            metrics = {"bias": (0.1, 0.2, 0.3), "episode_return": (1.0, 2.0, 3.0)}
            folder = root / f"{agent}-{seed}"
            write_run(folder, returns, env="Hopper-v4", agent=agent, seed=seed, metrics=metrics)
            clock = (folder / "evaluations.csv").read_text().splitlines()
            place = clock[0].split(",").index("wall_seconds")
            rows = [line.split(",") for line in clock[1:]]
            for seconds, row in zip((30, 60, 90), rows, strict=True):
                row[place] = str(seconds)
            lines = [clock[0], *(",".join(row) for row in rows)]
            (folder / "evaluations.csv").write_text("\n".join(lines) + "\n")
            done = {"machine": {"cpu": "a fast one", "cores": 8}}
            (folder / "done.json").write_text(json.dumps(done))
    (root / "adac-td3-0" / "film.mp4").write_bytes(b"not really")
    shots = "step,state_index,kind,action\n100,0,pi,0.5\n100,0,mu,0.25\n100,0,mu,0.5\n"
    (root / "adac-td3-0" / "snapshots.csv").write_text(shots)
    return root


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    data: dict[str, object] = json.loads(found[1])
    return data


def chromium(page: Path, *options: str) -> str:
    """The DOM after the page's script has run, or nothing where a screenshot is asked for."""
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={page.parent / 'profile'}", "--virtual-time-budget=3000",
        *options, page.as_uri(),
    ]  # fmt: skip
    environment = os.environ | {"HOME": str(page.parent)}
    done = subprocess.run(command, capture_output=True, timeout=180, env=environment)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-500:]
    return done.stdout.decode()


def test_the_page_holds_curves_table_snapshots_and_settings(trials: Path, tmp_path: Path) -> None:
    notes = write_report(trials, tmp_path / "report.html")
    data = data_of((tmp_path / "report.html").read_text())
    assert data["labels"] == ["adac-td3", "td3"]
    curve = data["tasks"][0]["groups"][0]["curves"]["mean_return"]  # type: ignore[index]
    hours = [30 / 3600, 60 / 3600, 90 / 3600]
    assert curve.pop("hours") == pytest.approx(hours, rel=1e-4)
    assert curve == {"steps": [100, 200, 300], "values": [[51, 52, 53], [52, 53, 54]]}
    cell = data["table"]["rows"][0]["cells"]["adac-td3"]  # type: ignore[index,call-overload]
    assert (cell["mean"], cell["std"], cell["bold"], cell["signs"]) == ("53.50", "0.71", True, "†")
    assert cell["paper"]["mean"] == "3598"
    assert data["snapshots"][0]["stages"][0]["cells"][0]["pi"] == 0.5  # type: ignore[index]
    assert len(data["settings"]["runs"]) == 4  # type: ignore[index,call-overload]
    assert notes[0].startswith("Hopper-v4: 2 seeds, too few for a t-test")


def test_videos_are_in_the_page_unless_they_are_too_large(
    trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trials / "td3-0" / "videos"
    folder.mkdir()
    (folder / "large.gif").write_bytes(b"x" * 100)
    (folder / "link.mp4").symlink_to(trials / "adac-td3-0" / "film.mp4")
    monkeypatch.setattr(videos, "MOST_BYTES", 50)
    found, notes = videos.gather(report.read_results(trials))
    assert [one["caption"] for one in found] == ["adac-td3, Hopper-v4, seed 0: film.mp4"]
    assert found[0]["address"] == "data:video/mp4;base64,bm90IHJlYWxseQ=="
    assert sorted(notes) == [
        "td3-0/videos/large.gif is not in the page: it has more than 50 bytes",
        "td3-0/videos/link.mp4 is not in the page: it is a symbolic link",
    ]


def test_nothing_is_loaded_from_anywhere(trials: Path, tmp_path: Path) -> None:
    write_report(trials, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    without_names = page.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in without_names.replace("http-equiv", "")
    assert "default-src 'none'" in page
    assert not re.search(r"\.innerHTML|insertAdjacentHTML|document\.write|eval\(", page)


def test_a_strangers_folder_can_not_inject(tmp_path: Path) -> None:
    root = tmp_path / "trials"
    write_run(root / "a", [1.0, 2.0, 3.0], env=EVIL, label=EVIL, settings={EVIL: EVIL})
    page = report.render(report.gather(report.read_results(root), EVIL + "@DATA@"))
    assert page.count("<script") == 2
    assert "<img" not in page
    assert data_of(page)["labels"] == [EVIL]


def test_a_label_that_is_no_text_does_not_empty_the_page(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [1.0, 2.0, 3.0], label="odd \ud800 label")
    page = tmp_path / "report.html"
    page.write_text("the page of yesterday")
    write_report(tmp_path, page, "odd \udfff title")
    assert data_of(page.read_text("utf-8"))["labels"] == ["odd \ud800 label"]
    assert "odd \\udfff title" in page.read_text("utf-8")


FORGED = {
    "snapshots.csv": "step,state_index,kind,action\n1,-100,pi,0\n1,-100,mu,0.5\n",
    "visits.csv": "step,policy,x,y,visits\n1,mu,inf,0,1\n1,mu,0,0,nan\n1,pi,0,0,-inf\n",
    "done.json": "[" * 100_000,
}


@pytest.mark.parametrize("name", FORGED)
def test_a_table_of_anything_is_drawn_or_left_out(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "run", [1, 2, 3])
    (run / name).write_text(FORGED[name])
    write_report(tmp_path, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_a_configuration_without_an_origin_is_drawn(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [1, 2, 3])
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"from": None, "data": None}))
    write_report(tmp_path, tmp_path / "page.html")


def test_folders_deeper_than_python_recurses_are_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run", [1, 2, 3])
    monkeypatch.chdir(tmp_path)
    try:
        for _ in range(1_200):
            os.mkdir("d")
            os.chdir("d")
        assert len(read_results(tmp_path).runs) == 1
    finally:
        os.chdir(tmp_path)
        subprocess.run(["rm", "-rf", "d"], check=True)  # Python's own way recurses


def test_only_html_is_written(trials: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"written as \.html"):
        write_report(trials, tmp_path / "report.pdf")


def test_the_command(trials: Path, tmp_path: Path) -> None:
    import typer

    from adac.cli.reports import register_report

    app, reproduce = typer.Typer(), typer.Typer()
    register_report(app, reproduce)
    app.add_typer(reproduce, name="reproduce")
    out = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["report", str(trials), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert out.is_file()
    assert "note: Hopper-v4: 2 seeds, too few" in result.output


@browser
@pytest.mark.parametrize("width", [1280, 500])  # a headless window is never narrower than 500
def test_in_a_real_browser(trials: Path, tmp_path: Path, width: int) -> None:
    path = tmp_path / "report.html"
    write_report(trials, path, EVIL)
    page = path.read_text()
    # The page's policy refuses any script but its own, so the driver comes without it.
    unguarded = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    path.write_text(unguarded.replace("</body>", f"{DRIVER}</body>"))
    dom = chromium(path, f"--window-size={width},900", "--dump-dom")
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found is not None, dom[-2000:]
    seen = json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&"))
    assert (seen["lines"], seen["bands"]) == (2, 2)
    assert (seen["hidden"], seen["pressed"], seen["shown"]) == (1, "false", 2)
    assert "adac-td3" in seen["tip"]
    assert "step 300" in seen["tip"]
    assert seen["zoomed"] != seen["before"] == seen["after"]
    assert (seen["bare"], seen["bias"]) == (0, 2)
    assert (seen["both"], seen["charts"]) == (4, 2)
    assert seen["captions"][1] == "Hopper-v4: bias of μ against π"
    assert "minutes of training" in seen["hours"]
    assert (seen["filtered"], seen["said"], seen["listed"], seen["heads"]) == (
        1,
        "2 of 4 runs",
        2,
        2,
    )
    assert (seen["unpaired"], seen["unfolded"]) == (True, True)  # few pairs are shown at once
    assert seen["pairs"].split("adac-td3td3")[1].startswith("1.00")
    assert (seen["bytask"], seen["nothing"]) == (2, "Nothing matches.")
    assert seen["notes"] is True  # one note is shown, many are folded
    assert "1:30" in seen["row"]
    assert "8 × a fast one" in seen["row"]
    assert seen["video"] == "adac-td3, Hopper-v4, seed 0: film.mp4"
    assert seen["breaks"] == 1  # Hopper-|v4
    assert seen["iqm"].startswith("53.50 [53.00, 54.00]")
    assert seen["width"] <= seen["inner"]


@browser
def test_the_browser_keeps_the_policy_and_draws(tmp_path: Path) -> None:
    """With the policy in force the page's own script runs and a stranger's text stays text."""
    write_run(tmp_path / "t" / "a", [1.0, 2.0, 3.0], env=EVIL, label=EVIL)
    path = tmp_path / "report.html"
    write_report(tmp_path / "t", path, EVIL)
    dom = chromium(path, "--dump-dom")
    assert 'data-ready="yes"' in dom
    assert "<title>&lt;/script&gt;" in dom
    assert "<img" not in dom


@browser
def test_a_screenshot_in_the_dark(trials: Path, tmp_path: Path) -> None:
    path, picture = tmp_path / "report.html", tmp_path / "dark.png"
    write_report(trials, path)
    dark = "--blink-settings=preferredColorScheme=0"
    chromium(path, "--window-size=800,600", f"--screenshot={picture}", dark)
    header = picture.read_bytes()[:24]
    assert struct.unpack(">II", header[16:24]) == (800, 600)
