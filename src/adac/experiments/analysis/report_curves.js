// The curves: which agents, tasks and metrics are drawn, how, and over what.

const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const hidden = new Set();
const charts = new Map();  // task and metric: their chart

// Of colour and dash no pair repeats while there are dashes left.
function colour(label) {
  const found = DATA.colours[DATA.labels.indexOf(label) % DATA.colours.length];
  // Lifted towards white in the dark; black is the page's ink.
  return found === "#000000" ? "var(--ink)" : `color-mix(in srgb, ${found}, white var(--lift))`;
}

function dash(label) {
  return DATA.dashes[Math.floor(DATA.labels.indexOf(label) / DATA.colours.length) % DATA.dashes.length];
}

// The filter: every word is in the agent's or the task's name, and none that is led by a dash.

function filterWords() {
  return byId("filter").value.toLowerCase().split(/\s+/).filter((word) => word && word !== "-");
}

function matches(label, env) {
  const name = `${label} ${env.split("/").pop()}`.toLowerCase();
  return filterWords().every((word) => (word.startsWith("-") ? !name.includes(word.slice(1)) : name.includes(word)));
}

function startCurves() {
  byId("metrics").append(...DATA.metrics.map((m, i) => {
    const box = html("input", { type: "checkbox", value: m.name, ...(i ? {} : { checked: "" }) });
    box.addEventListener("input", drawCurves);
    return html("label", {}, box, m.text);
  }));
  byId("axis").parentElement.hidden = !DATA.tasks.some((t) => t.groups.some((g) => Object.values(g.curves).some((c) => c.hours)));
  byId("legend").append(...DATA.labels.map(legendButton));
  byId("all").hidden = byId("none").hidden = DATA.labels.length < 4;
  if (DATA.labels.length > DATA.colours.length + 1) byId("band").value = "none";
  for (const id of ["band", "smooth", "axis"]) byId(id).addEventListener("input", drawCurves);
  byId("reset").addEventListener("click", () => charts.forEach((chart) => chart.reset()));
  byId("all").addEventListener("click", () => { hidden.clear(); drawCurves(); });
  byId("none").addEventListener("click", () => { DATA.labels.forEach((label) => hidden.add(label)); drawCurves(); });
  drawCurves();
}

function legendButton(label) {
  const line = svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, svg("line", { x1: 1, x2: 33, y1: 5, y2: 5, stroke: colour(label), "stroke-width": 3, "stroke-dasharray": dash(label) }));
  const button = html("button", { type: "button", "aria-pressed": "true" }, line, label);
  button.addEventListener("click", () => {
    if (hidden.has(label)) hidden.delete(label); else hidden.add(label);
    drawCurves();
  });
  button.addEventListener("dblclick", () => {
    const alone = DATA.labels.every((other) => other === label || hidden.has(other));
    hidden.clear();
    if (!alone) DATA.labels.filter((other) => other !== label).forEach((other) => hidden.add(other));
    drawCurves();
  });
  return button;
}

function chosenMetrics() {
  const names = [...byId("metrics").querySelectorAll("input:checked")].map((box) => box.value);
  return DATA.metrics.filter((m) => names.includes(m.name));
}

function drawLegend() {
  [...byId("legend").children].forEach((button, i) => {
    const label = DATA.labels[i];
    button.hidden = !DATA.tasks.some((task) => task.groups.some((g) => g.label === label && matches(label, task.env)));
    button.setAttribute("aria-pressed", String(!hidden.has(label)));
  });
}

function title(task, metric, several) {
  const seeds = task.groups.map((g) => g.seeds.length);
  const [low, high] = [Math.min(...seeds), Math.max(...seeds)];
  const count = low === high ? plural(low, "seed") : `${low} to ${high} seeds`;
  return several ? `${task.env}: ${metric.text}` : `${task.env}, ${count}`;
}

function drawCurves() {
  const metrics = chosenMetrics();
  const options = { band: byId("band").value, smooth: Number(byId("smooth").value), axis: byId("axis").value };
  byId("metrics-chosen").textContent = metrics.length === 1 ? metrics[0].text : `${metrics.length} metrics`;
  drawLegend();
  const nodes = [];
  for (const task of DATA.tasks) {
    for (const metric of metrics) {
      const groups = task.groups.filter((g) => g.curves[metric.name] && matches(g.label, task.env));
      const timed = groups.filter((g) => options.axis === "steps" || g.curves[metric.name].hours);
      if (!timed.length) continue;
      const chart = chartOf(task, metric, metrics.length > 1);
      nodes.push(chart.node);
      chart.show(timed.filter((g) => !hidden.has(g.label)).map((g) => seriesOf(g, metric.name, options.axis)), options);
    }
  }
  byId("charts").classList.toggle("single", nodes.length === 1);
  byId("charts").replaceChildren(...(nodes.length ? nodes : [html("p", { class: "quiet" }, "Nothing matches.")]));
  charts.forEach((chart) => { if (chart.node.isConnected) chart.draw(); });
}

function chartOf(task, metric, several) {
  const key = JSON.stringify([task.env, metric.name, several]);
  if (!charts.has(key)) charts.set(key, new Chart(title(task, metric, several)));
  return charts.get(key);
}

function seriesOf(group, name, axis) {
  const curve = group.curves[name];
  return { label: group.label, colour: colour(group.label), dash: dash(group.label), xs: curve[axis], rows: curve.values };
}

