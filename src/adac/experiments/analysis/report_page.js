
// The page: fills the sections.

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function start() {
  const runs = DATA.settings.runs;
  byId("summary").textContent = `${plural(runs.length, "run")}, ${plural(DATA.tasks.length, "task")}, ${plural(DATA.labels.length, "agent")}`;
  const notices = [...DATA.warnings, ...DATA.notes];
  byId("notices").hidden = !notices.length;
  byId("notices").open = notices.length <= 3;
  byId("notices").querySelector("summary").textContent = `Before you read: ${plural(notices.length, "note")}`;
  byId("notice-list").append(...notices.map((text) => html("li", {}, text)));
  startCurves();
  startTable();
  startPublished();
  startSnapshots();
  startVisits();
  startVideos();
  startSettings();
  byId("filter").addEventListener("input", applyFilter);
  document.body.dataset.ready = "yes";
}

// Everything that a filter concerns, again.
function applyFilter() {
  drawCurves();
  drawTable();
  drawVideos();
  drawRuns();
  const shown = DATA.settings.runs.filter((run) => matches(run.label, run.env)).length;
  byId("filtered").textContent = filterWords().length ? `${shown} of ${plural(DATA.settings.runs.length, "run")}` : "";
}

// Table.

function startTable() {
  const paper = DATA.table.rows.some((row) => Object.values(row.cells).some((cell) => cell.paper));
  byId("paper-control").hidden = !paper;
  byId("numbers").addEventListener("input", drawTable);
  byId("paper").addEventListener("input", drawTable);
  byId("final").hidden = !DATA.table.rows.length;
  byId("pairs").open = DATA.table.pairs.length <= 4;
  const share = Math.round(100 * DATA.last);
  byId("legend-text").textContent =
    `A run's score is the mean return of the target policy over the evaluations in the last ${share} % of its steps. ` +
    "Bold: the best mean, and all that Welch's t-test at 0.05 does not tell from it. " +
    "†: the better of ADAC (TD3) and TD3, or both; *: likewise for DDPG. " +
    "Intervals: 95 %, stratified bootstrap over seeds. IQM: the mean without the lowest and the highest quarter. " +
    (paper ? `The paper's numbers are over ${DATA.paper.trials} trials of up to ${short(DATA.paper.steps)} steps.` : "");
  drawTable();
}

function value(cell) {
  const mark = cell.signs ? [html("sup", {}, cell.signs)] : [];
  const mean = html(cell.bold ? "strong" : "span", {}, cell.mean, ...mark);
  return [mean, cell.std ? ` ± ${cell.std}` : ""];
}

function interval(i) {
  return i.low === "–" ? i.value : `${i.value} [${i.low}, ${i.high}]`;
}

function drawTable() {
  const { aggregate, pairs } = DATA.table;
  const rows = DATA.table.rows.filter((row) => Object.keys(row.cells).some((label) => matches(label, row.env)));
  const columns = DATA.table.columns.filter((label) => rows.some((row) => row.cells[label] && matches(label, row.env)));
  const robust = byId("numbers").value === "iqm";
  const withPaper = byId("paper").checked && !robust;
  const body = html("tbody");
  for (const row of rows) {
    const line = html("tr", {}, html("th", { scope: "row" }, ...breakable(row.env)));
    for (const label of columns) {
      const cell = row.cells[label], td = html("td");
      if (cell && matches(label, row.env)) {
        td.append(...(robust ? [interval(cell.iqm)] : value(cell)), html("span", { class: "sub" }, plural(cell.seeds, "seed")));
        if (withPaper && cell.paper) td.append(html("span", { class: "sub paper" }, "paper ", ...value(cell.paper)));
      }
      line.append(td);
    }
    body.append(line);
  }
  if (Object.keys(aggregate).length) {
    body.append(html("tr", { class: "total" }, html("th", { scope: "row" }, "all tasks", html("span", { class: "sub" }, "IQM; worst mean 0, best 1")),
      ...columns.map((label) => html("td", {}, interval(aggregate[label])))));
  }
  const head = html("thead", {}, html("tr", {}, html("th", {}, "task"), ...columns.map((c) => html("th", { scope: "col" }, ...breakable(c)))));
  byId("table").replaceChildren(head, body);
  drawPairs(pairs.filter((pair) => rows.some((row) => [pair.a, pair.b].every((label) => row.cells[label] && matches(label, row.env)))));
}

// Each ADAC against what it is built on; many pairs are folded, as many notes are.
function drawPairs(pairs) {
  byId("pairs").hidden = !pairs.length;
  byId("pairs-count").textContent = `ADAC against its base: ${plural(pairs.length, "pair")}`;
  const row = (pair) => html("tr", {}, html("th", { scope: "row" }, ...breakable(pair.a)), html("td", {}, ...breakable(pair.b)),
    ...[pair.chance.value, pair.chance.low === "–" ? "one seed: no claim" : `${pair.chance.low} to ${pair.chance.high}`, pair.p].map((text) => html("td", {}, text)));
  byId("pairs-table").querySelector("tbody").replaceChildren(...pairs.map(row));
}

// What others have published on the same tasks.

function startPublished() {
  const { heads, tasks } = DATA.published;
  byId("published").hidden = !tasks.length;
  const row = (cells, kind) => html("tr", {}, ...cells.map((cell) => html(kind, {}, cell)));
  byId("published-tables").append(...tasks.flatMap((task) => [
    html("h3", {}, ...breakable(task.env)),
    html("div", { class: "scroll" }, html("table", {}, html("thead", {}, row(heads, "th")), html("tbody", {}, ...task.rows.map((cells) => row(cells, "td"))))),
  ]));
}

// Snapshots.

function startSnapshots() {
  byId("snapshots").hidden = !DATA.snapshots.length;
  byId("snapshot-run").append(...DATA.snapshots.map((s, i) => html("option", { value: i }, s.name)));
  byId("snapshot-run").addEventListener("input", drawSnapshots);
  if (DATA.snapshots.length) drawSnapshots();
  else document.querySelector('nav a[href="#snapshots"]').remove();
}

function drawSnapshots() {
  const chosen = DATA.snapshots[Number(byId("snapshot-run").value)];
  byId("snapshot-cells").replaceChildren(...chosen.stages.map((stage) =>
    html("figure", { class: "chart" }, html("figcaption", {}, `step ${stage.step.toLocaleString("en")}`), ridges(stage.cells))));
}

function ridges(cells) {
  const width = 280, row = 62, left = 12, right = 268;
  const x = (a) => left + ((a + 1) / 2) * (right - left);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${cells.length * row + 24}`, role: "img", "aria-label": "Densities of the behaviour policy" });
  cells.forEach((cell, n) => {
    const base = (n + 1) * row - 4, top = Math.max(...cell.mu, 1e-9);
    const points = cell.mu.map((p, i) => `${x(DATA.grid[i]).toFixed(1)},${(base - (p / top) * (row - 24)).toFixed(1)}`).join("L");
    picture.append(
      svg("text", { x: left, y: base - row + 16 }, cell.state),
      svg("path", { class: "ridge-fill", d: `M${x(-1)},${base}L${points}L${x(1)},${base}Z` }),
      svg("path", { class: "ridge-line", d: `M${points}` }),
      svg("line", { class: "ridge-base", x1: x(-1), x2: x(1), y1: base, y2: base }),
      svg("circle", { class: "ridge-dot", cx: x(cell.pi), cy: base, r: 5 }),
    );
  });
  for (const a of [-1, 0, 1]) picture.append(svg("text", { x: x(a), y: cells.length * row + 18, "text-anchor": "middle" }, String(a)));
  return picture;
}

// Where the two policies have been.

function startVisits() {
  byId("visits").hidden = !DATA.visits.length;
  byId("visits-run").append(...DATA.visits.map((run, i) => html("option", { value: i }, run.name)));
  byId("visits-run").addEventListener("input", drawVisits);
  if (DATA.visits.length) drawVisits();
}

function drawVisits() {
  const chosen = DATA.visits[Number(byId("visits-run").value)];
  byId("visits-stages").replaceChildren(...chosen.stages.map((stage) =>
    html("figure", { class: "chart" }, html("figcaption", {}, `step ${stage.step.toLocaleString("en")}`),
      pixels(stage.mu, "Where training went"), pixels(stage.pi, "Where the target policy goes"))));
}

function pixels(shares, label) {
  const size = DATA.pixels, top = Math.max(...shares, 1e-9);
  const picture = svg("svg", { viewBox: `-0.5 -0.5 ${size + 1} ${size + 1}`, role: "img", "aria-label": label },
    svg("rect", { class: "visits-frame", x: 0, y: 0, width: size, height: size }));
  shares.forEach((share, i) => {
    // Upwards is up.
    if (share) picture.append(svg("rect", { class: "visits-pixel", x: i % size, y: size - 1 - Math.floor(i / size), width: 1, height: 1, "fill-opacity": (0.12 + 0.88 * Math.sqrt(share / top)).toFixed(3) }));
  });
  return picture;
}

// Videos, which are in the page.

function startVideos() {
  byId("videos").hidden = !DATA.videos.length;
  if (DATA.videos.length) drawVideos();
  else document.querySelector('nav a[href="#videos"]').remove();
}

function drawVideos() {
  const shown = DATA.videos.filter((video) => matches(video.label, video.env));
  byId("video-list").replaceChildren(...shown.map((video) => {
    const picture = video.kind === "image/gif"
      ? html("img", { src: video.address, alt: video.caption })
      : html("video", { src: video.address, controls: "", loop: "", muted: "", playsinline: "", preload: "metadata" });
    return html("figure", { class: "chart" }, picture, html("figcaption", {}, ...breakable(video.caption)));
  }));
}

// Settings.

function startSettings() {
  const names = ["agent", "own settings", "task", "seed", "steps", "score", "duration", "machine", "folder"];
  const head = html("thead", {}, html("tr", {}, ...names.map((name) => html("th", { scope: "col" }, name))));
  byId("runs").append(head, html("tbody"));
  byId("shared").append(html("tbody", {}, ...pairsOf(DATA.settings.shared)));
  drawRuns();
}

function drawRuns() {
  const shown = DATA.settings.runs.filter((run) => matches(run.label, run.env));
  byId("runs").querySelector("tbody").replaceChildren(...shown.map(runRow));
}

function runRow(run) {
  const steps = run.steps.toLocaleString("en") + (run.finished ? "" : " (unfinished)");
  const own = Object.entries(run.settings).map(([name, text]) => html("div", {}, `${name} = ${text}`));
  const details = own.length ? html("details", {}, html("summary", {}, plural(own.length, "setting")), ...own) : "";
  const cells = [run.env, run.seed, steps, run.score, run.time, run.machine, run.name].map((text) => html("td", {}, text));
  return html("tr", {}, html("th", { scope: "row" }, ...breakable(run.label)), html("td", {}, details), ...cells);
}

function pairsOf(settings) {
  return Object.entries(settings).map(([name, text]) => html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, text)));
}

start();
