"use strict";
// A small chart: lines with bands, hover, drag to zoom. Text goes in as text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const AXES = { steps: { text: "environment steps", scale: 1 }, hours: { text: "hours of training", scale: 1 } };
const MARGIN = { left: 52, right: 24, top: 10, bottom: 38 };

function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Names of tasks break between their words, never within one.
function breakable(text) {
  const words = text.split(/(?<=[/_-])|(?<=[a-z0-9])(?=[A-Z])/);
  return words.flatMap((word, i) => (i ? [document.createElement("wbr"), word] : [word]));
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return String(size && size < 1e-3 ? +value.toPrecision(2) : +value.toPrecision(4));
}

function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || rough;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push(i * step);
  return found;
}

// A centred moving mean over 2·reach + 1 points, shorter at the ends.
function smoothed(values, reach) {
  if (!reach) return values;
  return values.map((_, i) => {
    const near = values.slice(Math.max(0, i - reach), i + reach + 1).filter((v) => v !== null);
    return near.length ? near.reduce((a, b) => a + b, 0) / near.length : null;
  });
}

function summary(rows, kind) {
  const count = rows.length;
  const mean = [], low = [], high = [], std = [];
  for (let i = 0; i < rows[0].length; i += 1) {
    const column = rows.map((row) => row[i]);
    const centre = column.reduce((a, b) => a + b, 0) / count;
    const squares = column.reduce((a, b) => a + (b - centre) ** 2, 0);
    const spread = count > 1 ? Math.sqrt(squares / (count - 1)) : 0;
    mean.push(centre);
    std.push(spread);
    low.push(kind === "range" ? Math.min(...column) : centre - spread);
    high.push(kind === "range" ? Math.max(...column) : centre + spread);
  }
  return { mean, std, low, high };
}

// A band never goes beyond what some run has reached: returns and shares have bounds.
function withinReach(series) {
  const values = series.flatMap((s) => s.rows.flat());
  const lowest = values.reduce((a, b) => Math.min(a, b), Infinity);
  const highest = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const clip = (line) => line.map((v) => Math.min(Math.max(v, lowest), highest));
  return series.map((s) => ({ ...s, low: clip(s.low), high: clip(s.high) }));
}

class Chart {
  // series: [{label, colour, dash, xs, rows}], rows one per seed, over the axis of the options.
  constructor(title) {
    this.zoom = null;
    this.series = [];
    this.picture = svg("svg", { role: "img", "aria-label": `Learning curves, ${title}` });
    this.tip = html("div", { class: "tip", hidden: "" });
    this.node = html("figure", { class: "chart" }, html("figcaption", {}, ...breakable(title)), this.picture, this.tip);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  show(series, options) {
    if (this.options && this.options.axis !== options.axis) this.zoom = null;  // of another unit
    this.options = options;
    const longest = Math.max(0, ...series.map((s) => s.xs[s.xs.length - 1]));
    this.unit = options.axis === "hours" && longest < 2 ? { text: "minutes of training", scale: 60 } : AXES[options.axis];
    this.series = withinReach(series.map((s) => {
      const rows = s.rows.map((row) => smoothed(row, options.smooth));
      return { ...s, rows, xs: s.xs.map((x) => x * this.unit.scale), ...summary(rows, options.band) };
    }));
    this.draw();
  }

  reset() {
    this.zoom = null;
    this.draw();
  }

  bounds() {
    const ends = this.series.flatMap((s) => [s.xs[0], s.xs[s.xs.length - 1]]);
    let [x0, x1] = this.zoom || [Math.min(0, ...ends), Math.max(...ends)];
    if (x1 <= x0) x1 = x0 + (this.options.axis === "hours" ? 0.01 : 1);
    let y0 = Infinity, y1 = -Infinity;
    for (const s of this.series) {
      const lines = this.options.band === "none" ? [s.mean] : this.options.band === "seeds" ? s.rows : [s.low, s.high];
      s.xs.forEach((x, i) => {
        if (x < x0 || x > x1) return;
        for (const line of lines) { y0 = Math.min(y0, line[i]); y1 = Math.max(y1, line[i]); }
      });
    }
    if (!(y0 <= y1)) [y0, y1] = [0, 1];
    const room = (y1 - y0) * 0.06 || Math.max(Math.abs(y1) * 0.1, 0.5);
    return { x0, x1, y0: y0 - room, y1: y1 + room };
  }

  draw() {
    const width = this.picture.clientWidth || 400;
    const height = Math.round(Math.min(Math.max(width * 0.56, 220), 420));
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.setAttribute("height", height);
    this.picture.replaceChildren();
    this.hide();
    if (!this.series.length) {
      this.picture.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing to draw"));
      return;
    }
    const b = this.bounds();
    const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
    this.x = (v) => MARGIN.left + ((v - b.x0) / (b.x1 - b.x0)) * (right - MARGIN.left);
    this.y = (v) => bottom - ((v - b.y0) / (b.y1 - b.y0)) * (bottom - MARGIN.top);
    this.at = (px) => b.x0 + ((px - MARGIN.left) / (right - MARGIN.left)) * (b.x1 - b.x0);
    this.frame = { left: MARGIN.left, right, top: MARGIN.top, bottom };
    this.axes(b);
    const name = `clip-${Chart.count = (Chart.count || 0) + 1}`;
    const clip = svg("clipPath", { id: name }, svg("rect", this.box()));
    const plot = svg("g", { "clip-path": `url(#${name})` });
    for (const s of this.series) this.line(plot, s);
    this.marks = svg("g");
    this.picture.append(clip, plot, this.marks);
  }

  box() {
    const f = this.frame;
    return { x: f.left, y: f.top, width: f.right - f.left, height: f.bottom - f.top };
  }

  axes(b) {
    const f = this.frame;
    for (const v of ticks(b.y0, b.y1, (f.bottom - f.top) / 38)) {
      const y = this.y(v);
      this.picture.append(
        svg("line", { class: "gridline", x1: f.left, x2: f.right, y1: y, y2: y }),
        svg("text", { x: f.left - 7, y: y + 4, "text-anchor": "end" }, short(v)),
      );
    }
    for (const v of ticks(b.x0, b.x1, Math.max(2, Math.floor((f.right - f.left) / 75)))) {
      const text = v >= 1000 && v < 1e4 ? `${+(v / 1000).toPrecision(3)}k` : short(v);
      this.picture.append(svg("text", { x: this.x(v), y: f.bottom + 17, "text-anchor": "middle" }, text));
    }
    this.picture.append(
      svg("line", { class: "axis", x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom }),
      svg("text", { x: f.right, y: f.bottom + 33, "text-anchor": "end" }, this.unit.text),
    );
  }

  line(plot, s) {
    const path = (values) => s.xs.map((x, i) => `${i ? "L" : "M"}${this.x(x).toFixed(1)},${this.y(values[i]).toFixed(1)}`).join("");
    const stroke = { fill: "none", stroke: s.colour, "stroke-dasharray": s.dash, "stroke-linejoin": "round" };
    if (this.options.band === "seeds") {
      for (const row of s.rows) plot.append(svg("path", { ...stroke, d: path(row), "stroke-width": 1, opacity: 0.45 }));
    } else if (this.options.band !== "none" && s.rows.length > 1) {
      const back = s.xs.map((x, i) => `L${this.x(x).toFixed(1)},${this.y(s.low[i]).toFixed(1)}`).reverse().join("");
      plot.append(svg("path", { class: "band", d: `${path(s.high)}${back}Z`, fill: s.colour, opacity: 0.17 }));
    }
    plot.append(svg("path", { ...stroke, class: "mean", d: path(s.mean), "stroke-width": 2.2 }));
    if (s.xs.length === 1) plot.append(svg("circle", { cx: this.x(s.xs[0]), cy: this.y(s.mean[0]), r: 4, fill: s.colour }));
  }

  listen() {
    const place = (event) => {
      const box = this.picture.getBoundingClientRect();
      return Math.min(Math.max(event.clientX - box.left, this.frame.left), this.frame.right);
    };
    let from = null;
    const ready = () => this.series.length && this.frame;
    this.picture.addEventListener("pointerdown", (event) => {
      if (!ready() || event.button) return;
      from = place(event);
      if (event.isTrusted) this.picture.setPointerCapture(event.pointerId);
    });
    this.picture.addEventListener("pointermove", (event) => {
      if (!ready()) return;
      if (from === null) this.hover(place(event));
      else this.select(from, place(event));
    });
    this.picture.addEventListener("pointerup", (event) => {
      if (!ready() || from === null) return;
      const to = place(event), start = from;
      from = null;
      if (Math.abs(to - start) < 8) { this.hover(to); return; }
      this.zoom = [this.at(Math.min(start, to)), this.at(Math.max(start, to))];
      this.draw();
    });
    this.picture.addEventListener("pointercancel", () => { from = null; this.hide(); });
    this.picture.addEventListener("pointerleave", () => { if (from === null) this.hide(); });
    this.picture.addEventListener("dblclick", () => this.reset());
  }

  hide() {
    this.tip.hidden = true;
    if (this.marks) this.marks.replaceChildren();
  }

  select(from, to) {
    const f = this.frame;
    this.tip.hidden = true;
    this.marks.replaceChildren(svg("rect", { class: "selection", x: Math.min(from, to), y: f.top, width: Math.abs(to - from), height: f.bottom - f.top }));
  }

  // The point nearest to the cursor; of the other lines the points nearest to that one.
  hover(px) {
    const want = this.at(px), f = this.frame;
    const nearest = (xs, x) => xs.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best), 0);
    const all = this.series.map((s) => s.xs[nearest(s.xs, want)]).filter((v) => this.x(v) >= f.left - 1 && this.x(v) <= f.right + 1);
    if (!all.length) return;
    const centre = all[nearest(all, want)], x = this.x(centre);
    const reach = (f.right - f.left) / 40;
    this.marks.replaceChildren(svg("line", { class: "cursor", x1: x, x2: x, y1: f.top, y2: f.bottom }));
    const here = this.series.map((s) => ({ s, i: nearest(s.xs, centre) })).filter(({ s, i }) => Math.abs(this.x(s.xs[i]) - x) <= reach);
    here.sort((a, b) => b.s.mean[b.i] - a.s.mean[a.i]);
    const named = this.options.axis === "hours" ? `${short(centre)} ${this.unit.text.split(" ")[0]}` : `step ${centre.toLocaleString("en")}`;
    this.tip.replaceChildren(html("strong", {}, named));
    for (const { s, i } of here) {
      this.marks.append(svg("circle", { cx: this.x(s.xs[i]), cy: this.y(s.mean[i]), r: 3.5, fill: s.colour }));
      const swatch = html("span", { class: "swatch" });
      swatch.style.background = s.colour;
      const spread = s.rows.length > 1 && this.options.band === "std" ? ` ± ${short(s.std[i])}` : "";
      this.tip.append(html("div", {}, html("span", {}, swatch, s.label), html("span", {}, `${short(s.mean[i])}${spread}`)));
    }
    this.tip.hidden = false;
    const left = x > (f.left + f.right) / 2 ? x - this.tip.offsetWidth - 4 : x + 22;
    this.tip.style.left = `${Math.max(4, Math.min(left, this.node.clientWidth - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${f.top + 34}px`;
  }
}
