// The demonstration: draws what the records hold; computes nothing but positions on the screen.
const $ = (id) => document.getElementById(id);
const last = data.observations.length;
const METHODS = {
  exact: { name: `${data.num_particles} exact draws`, short: "exact", dash: "" },
  pfbr: { name: "pfbr", short: "pfbr", dash: "" },
  smc: { name: "one-pass SMC", short: "SMC", dash: "" },
  prior: { name: "the prior", short: "prior", dash: "2 5" },
  truth: { name: "the truth", short: "truth", dash: "6 4" },
};
const bytes = unpack(data.density);
const cells = data.cells, reach = data.reach;
let stage = last;

const fixed = (value, digits = 2) => minus(value.toFixed(digits));
const signed = (value) => (value >= 0 ? "+" : "") + fixed(value);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function duration(seconds) {
  if (seconds >= 1) return [seconds.toFixed(2), "s"];
  if (seconds >= 1e-3) return [(seconds * 1e3).toFixed(seconds >= 1e-2 ? 0 : 1), "ms"];
  return [(seconds * 1e6).toFixed(0), "µs"];
}

// The three panels: density and contours of the truth, particles on top.
const SIZE = 360, LEFT = 40, BOTTOM = 40, TOP = 6, RIGHT = 6, SIDE = SIZE - LEFT - RIGHT;
const px = (x) => LEFT + ((x + reach) / (2 * reach)) * SIDE;
const py = (y) => TOP + ((reach - y) / (2 * reach)) * SIDE;
const panels = {};

function heat(at) {
  return shaded(cells, css("--heat").split(",").map(Number), (i, j) => {
    const level = bytes[(at * cells + i) * cells + j];
    return level ? 235 * Math.pow(Math.exp((level / 255 - 1) * data.range), 0.7) : 0;
  });
}

function contour(at, level) { // marching squares, a segment at a time
  const value = (i, j) => bytes[(at * cells + i) * cells + j];
  const where = (i) => (i + 0.5) / cells * 2 * reach - reach;
  let path = "";
  const between = (a, b) => (level - a) / (b - a);
  for (let i = 0; i < cells - 1; i++) for (let j = 0; j < cells - 1; j++) {
    const a = value(i, j), b = value(i + 1, j), c = value(i + 1, j + 1), d = value(i, j + 1);
    if ((a > level) === (b > level) && (b > level) === (c > level) && (c > level) === (d > level)) continue;
    const cuts = [];
    if ((a > level) !== (b > level)) cuts.push([i + between(a, b), j]);
    if ((b > level) !== (c > level)) cuts.push([i + 1, j + between(b, c)]);
    if ((d > level) !== (c > level)) cuts.push([i + between(d, c), j + 1]);
    if ((a > level) !== (d > level)) cuts.push([i, j + between(a, d)]);
    for (let k = 0; k + 1 < cuts.length; k += 2)
      path += `M${px(where(cuts[k][0])).toFixed(1)} ${py(where(cuts[k][1])).toFixed(1)}L${px(where(cuts[k + 1][0])).toFixed(1)} ${py(where(cuts[k + 1][1])).toFixed(1)}`;
  }
  return path;
}
const memory = new Map();
function remembered(key, compute) {
  if (!memory.has(key)) memory.set(key, compute());
  return memory.get(key);
}
const allContours = (at) => remembered(`contour ${at}`, () => data.levels[at].map((level) => contour(at, level)).join(""));

function buildPanel(figure) {
  const kind = figure.dataset.panel;
  const svg = make("svg", { viewBox: `0 0 ${SIZE} ${TOP + SIDE + BOTTOM}`, role: "img" }, figure.querySelector(".plot"));
  const clip = make("clipPath", { id: `clip-${kind}` }, make("defs", {}, svg));
  make("rect", { x: LEFT, y: TOP, width: SIDE, height: SIDE }, clip);
  for (const tick of [-3, -2, -1, 0, 1, 2, 3]) {
    make("line", { class: "gridline", x1: px(tick), x2: px(tick), y1: TOP, y2: TOP + SIDE }, svg);
    make("line", { class: "gridline", x1: LEFT, x2: LEFT + SIDE, y1: py(tick), y2: py(tick) }, svg);
    make("text", { x: px(tick), y: TOP + SIDE + 17, "text-anchor": "middle" }, svg, minus(tick));
    make("text", { x: LEFT - 8, y: py(tick) + 4, "text-anchor": "end" }, svg, minus(tick));
  }
  const inside = make("g", { "clip-path": `url(#clip-${kind})` }, svg);
  const image = kind === "truth" ? make("image", { x: LEFT, y: TOP, width: SIDE, height: SIDE, preserveAspectRatio: "none" }, inside) : null;
  const lines = make("path", { class: "contour" }, inside);
  const swarm = make("g", { class: kind === "pfbr" ? "glide" : "" }, inside);
  const circles = data.points[kind][0].map(() => make("circle", { class: "particle", style: `fill: var(--${kind === "truth" ? "exact" : kind})` }, swarm));
  const [u, v] = data.unknown;
  make("path", { class: "unknown", d: `M${px(u) - 5} ${py(v)}h10M${px(u)} ${py(v) - 5}v10` }, inside);
  make("rect", { class: "axis", x: LEFT, y: TOP, width: SIDE, height: SIDE, fill: "none" }, svg);
  const name = (x, y, sub, extra) => {
    const label = make("text", { class: "name", x, y, "text-anchor": "middle", ...extra }, svg, "x");
    make("tspan", { dy: 3, "font-size": 9 }, label, sub);
  };
  name(LEFT + SIDE / 2, TOP + SIDE + 35, "1", {});
  name(11, TOP + SIDE / 2, "2", { transform: `rotate(-90 11 ${TOP + SIDE / 2})` });
  panels[kind] = { svg, image, lines, circles };
}

function drawPanels() {
  const path = allContours(stage);
  for (const kind in panels) {
    const { svg, image, lines, circles } = panels[kind];
    lines.setAttribute("d", path);
    if (image) image.setAttribute("href", remembered(`heat ${stage} ${css("--heat")}`, () => heat(stage)));
    circles.forEach((circle, n) => {
      const [x, y] = data.points[kind][stage][n];
      circle.style.cx = `${px(x).toFixed(1)}px`;
      circle.style.cy = `${py(y).toFixed(1)}px`;
      const share = data.weights[kind] ? data.weights[kind][stage][n] : 1; // 1: as much as an equal share
      circle.style.r = `${((kind === "truth" ? 1.4 : 2.6) * Math.sqrt(Math.min(share, 9))).toFixed(2)}px`;
    });
    svg.setAttribute("aria-label", `${METHODS[kind].name} after ${stage} observations`);
  }
}

// The charts over stages.
const charts = {};
function chartFrame(figure, low, high, label, height, right) {
  const holder = figure.querySelector(".plot"), width = Math.max(280, holder.clientWidth);
  holder.replaceChildren();
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, holder);
  const left = 54, top = 10, bottom = height - 42, x = (s) => left + (s / last) * (width - left - right);
  const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
  const ticks = evenTicks(low, high, 5, false), digits = Math.max(...ticks.map((t) => (String(t).split(".")[1] || "").length));
  for (const tick of ticks) {
    make("line", { class: "gridline", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }, svg);
    make("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, svg, fixed(tick, digits));
  }
  for (let s = 0; s <= last; s += 5) make("text", { x: x(s), y: bottom + 18, "text-anchor": "middle" }, svg, s);
  make("line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom }, svg);
  make("text", { class: "name", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, svg, "observations so far");
  const middle = (top + bottom) / 2;
  make("text", { class: "name", x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }, svg, label);
  const cursor = make("line", { class: "cursor", y1: top, y2: bottom }, svg);
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * width;
    go(Math.round(((at - left) / (width - left - right)) * last));
  });
  return { svg, x, y, cursor, width, right };
}
function legend(figure, entries) {
  const holder = figure.querySelector(".legend");
  holder.replaceChildren(...entries.map(([kind, text, mark]) => {
    const item = document.createElement("span"), icon = make("svg", { viewBox: "0 0 24 10", "aria-hidden": "true" });
    if (mark === "dot") make("circle", { cx: 12, cy: 5, r: 4, style: `fill: var(--${kind})` }, icon);
    else make("line", { x1: 1, x2: 23, y1: 5, y2: 5, "stroke-width": 2.4, "stroke-linecap": "round", "stroke-dasharray": METHODS[kind].dash, style: `stroke: var(--${kind})` }, icon);
    item.append(icon, text);
    return item;
  }));
}
function lineChart(figure, series, low, high, label, height) {
  const right = 62, frame = chartFrame(figure, low, high, label, height, right), marks = [];
  const ends = [];
  for (const [kind, values] of series) {
    const d = values.map((v, s) => `${s ? "L" : "M"}${frame.x(s).toFixed(1)} ${frame.y(v).toFixed(1)}`).join("");
    make("path", { class: "series", d, "stroke-dasharray": METHODS[kind].dash, style: `stroke: var(--${kind})` }, frame.svg);
    marks.push([make("circle", { r: 4.5, style: `fill: var(--${kind}); stroke: var(--card); stroke-width: 2` }, frame.svg), values]);
    ends.push({ kind, y: frame.y(values[last]) });
  }
  ends.sort((a, b) => a.y - b.y);
  for (let k = 1; k < ends.length; k++) ends[k].y = Math.max(ends[k].y, ends[k - 1].y + 15); // names must not overlap
  const spill = Math.max(0, ends[ends.length - 1].y - (height - 46));
  for (let k = ends.length - 1, floor = Infinity; k >= 0 && spill; k--) {
    ends[k].y = Math.min(ends[k].y, floor === Infinity ? height - 46 : floor - 15);
    floor = ends[k].y;
  }
  for (const end of ends)
    make("text", { class: "end", x: frame.width - right + 9, y: end.y + 4, style: `fill: var(--${end.kind})` }, frame.svg, METHODS[end.kind].short);
  return () => {
    frame.cursor.setAttribute("x1", frame.x(stage));
    frame.cursor.setAttribute("x2", frame.x(stage));
    for (const [mark, values] of marks) {
      mark.setAttribute("cx", frame.x(stage));
      mark.setAttribute("cy", frame.y(values[stage]));
    }
  };
}
function buildCharts() {
  const by = (name) => document.querySelector(`[data-chart=${name}]`);
  const kinds = ["prior", "smc", "pfbr", "exact"], all = kinds.flatMap((kind) => data.scores[kind]);
  const low = Math.min(...all), high = Math.max(...all), room = 0.06 * (high - low);
  charts.score = lineChart(by("score"), kinds.map((k) => [k, data.scores[k]]), low - room, high + room, "cross entropy (nats)", 320);
  legend(by("score"), ["exact", "pfbr", "smc", "prior"].map((k) => [k, METHODS[k].name]));
  const shown = ["smc", "pfbr", "truth"];
  charts.mass = lineChart(by("mass"), shown.map((k) => [k, data.masses[k]]), 0, 1, "mass of the mode x₂ < 0", 270);
  legend(by("mass"), ["truth", "pfbr", "smc"].map((k) => [k, METHODS[k].name]));
  charts.observations = observationChart(by("observations"));
}
function observationChart(figure) {
  const values = data.observations, size = Math.ceil(Math.max(3, ...values.map(Math.abs)));
  const frame = chartFrame(figure, -size, size, "observed value", 270, 16), centres = [data.unknown[0], data.unknown[0] + data.unknown[1]];
  for (const centre of centres)
    make("line", { x1: frame.x(0), x2: frame.x(last), y1: frame.y(centre), y2: frame.y(centre), "stroke-dasharray": "6 4", "stroke-width": 1.6, style: "stroke: var(--truth)" }, frame.svg);
  const dots = values.map((v, s) => make("circle", { cx: frame.x(s + 1), cy: frame.y(v), r: 4 }, frame.svg));
  legend(figure, [["exact", "seen", "dot"], ["pfbr", "the newest", "dot"], ["truth", "true component means"]]);
  return () => {
    frame.cursor.setAttribute("x1", frame.x(stage));
    frame.cursor.setAttribute("x2", frame.x(stage));
    dots.forEach((dot, s) => {
      dot.setAttribute("r", s + 1 === stage ? 6 : 4);
      dot.setAttribute("style", s + 1 > stage ? "display: none" : `fill: var(--${s + 1 === stage ? "pfbr" : "exact"})`);
    });
  };
}

// Numbers.
function drawTiles() {
  const gap = (kind) => data.scores[kind][stage] - data.scores.exact[stage];
  const share = (kind) => `${(100 * data.masses[kind][stage]).toFixed(0)} %`;
  const [ours, ourUnit] = duration(data.seconds.pfbr), [theirs, theirUnit] = duration(data.seconds.smc);
  const tiles = [
    ["pfbr, above exact draws", signed(gap("pfbr")), "nats"],
    ["SMC, above exact draws", signed(gap("smc")), "nats"],
    ["mass at x₂ < 0: pfbr, SMC, truth", `${share("pfbr")} · ${share("smc")}`, `· ${share("truth")}`],
    ["one update: pfbr, SMC", `${ours} ${ourUnit}`, `· ${theirs} ${theirUnit}`],
  ];
  $("tiles").innerHTML = tiles.map(([title, value, unit]) => `<div class="tile"><p>${title.replace("<", "&lt;")}</p><strong>${value} <small>${unit}</small></strong></div>`).join("");
}
function buildTable() {
  const rows = data.table.map((s) => {
    const scores = ["exact", "pfbr", "smc", "prior"].map((k) => `<td>${fixed(data.scores[k][s])}</td>`).join("");
    const masses = ["truth", "pfbr", "smc"].map((k) => `<td>${data.masses[k][s].toFixed(2)}</td>`).join("");
    return `<tr data-stage="${s}"><td>${s}</td>${scores}${masses}</tr>`;
  });
  $("table").innerHTML = `<thead><tr><th></th><th colspan="4" class="group">cross entropy (nats)</th><th colspan="3" class="group">mass of x₂ &lt; 0</th></tr>
    <tr><th>stage</th><th>exact</th><th>pfbr</th><th>SMC</th><th>prior</th><th>truth</th><th>pfbr</th><th>SMC</th></tr></thead><tbody>${rows.join("")}</tbody>`;
}

function draw(at) {
  stage = at;
  drawPanels();
  drawTiles();
  for (const name in charts) charts[name]();
  $("stage-label").textContent = stage === 0 ? "before any observation" : `observation ${stage} of ${last}`;
  $("stage").setAttribute("aria-valuetext", $("stage-label").textContent);
  for (const row of document.querySelectorAll("#table tr[data-stage]")) row.classList.toggle("now", Number(row.dataset.stage) === stage);
}
function face(on) {
  $("play").setAttribute("aria-pressed", String(on));
  $("play-word").textContent = on ? "Pause" : "Play";
  $("play-icon").setAttribute("d", on ? "M7 5h4v14H7zM13 5h4v14h-4z" : "M8 5v14l11-7z");
}

for (const id in data.texts) $(id).textContent = data.texts[id];
document.querySelector("[data-panel=truth] figcaption p").textContent = `exact density from a grid, and ${data.num_particles} exact draws`;
for (const node of document.querySelectorAll(".count")) node.textContent = `${data.num_particles} particles over the contours of the truth`;
document.querySelectorAll("[data-panel]").forEach(buildPanel);
buildTable();
buildCharts();
const { go, redraw } = player(last, $("stage"), $("play"), draw, face);
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; buildCharts(); redraw(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
