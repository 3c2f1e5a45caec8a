// Draws the charts that the records hold; computes nothing but positions on the screen.
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (method) => data.looks[method][dark.matches ? "dark" : "light"];

function short(value) { // as few digits as tell a value from its neighbours
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) return minus(value.toExponential(size >= 1e6 ? 1 : 0).replace("e+", "e"));
  if (size >= 10000) return minus(Math.round(value).toLocaleString("en"));
  if (size >= 1000) return minus(String(Math.round(value)));  // a year has no comma
  return minus(String(Number(value.toPrecision(3))));
}

// A scale maps values to 0 … 1: linear, logarithmic, or linear about zero and logarithmic beyond.
function scaleFor(kind, values, linearTo, limits) {
  const kept = values.filter((v) => v !== null && (kind !== "log" || v > 0));
  let low = limits ? limits[0] : Math.min(...kept), high = limits ? limits[1] : Math.max(...kept);
  if (!kept.length && !limits) [low, high] = kind === "log" ? [1, 10] : [0, 1];
  const bend = (v) => kind === "log" ? Math.log10(v) : kind === "symlog" ? Math.sign(v) * (Math.abs(v) <= linearTo ? Math.abs(v) / linearTo : 1 + Math.log10(Math.abs(v) / linearTo)) : v;
  let from = bend(low), to = bend(high);
  if (from === to) { from -= 0.5; to += 0.5; }
  if (!limits) { const room = 0.05 * (to - from); from -= room; to += room; }
  const at = (v) => v === null || (kind === "log" && v <= 0) ? null : limits ? Math.min(1, Math.max(0, (bend(v) - from) / (to - from))) : (bend(v) - from) / (to - from);
  return { at, ticks: ticksFor(kind, low, high, linearTo, kept.every(Number.isInteger)).filter((t) => { const p = at(t); return p >= -1e-6 && p <= 1 + 1e-6; }) };
}
function ticksFor(kind, low, high, linearTo, whole) {
  const even = (a, b, wanted) => evenTicks(a, b, wanted, whole);
  if (kind === "linear") return even(low, high, 5);
  const powers = (a, b) => { // whole powers of ten, thinned to at most six
    const first = Math.floor(Math.log10(a) + 1e-9), final = Math.ceil(Math.log10(b) - 1e-9), ticks = [];
    const every = Math.max(1, Math.ceil((final - first) / 6));
    for (let e = first; e <= final; e += every) ticks.push(Number(`1e${e}`));
    return ticks;
  };
  if (kind === "log") {
    if (Math.log10(high / low) < 1.5) return [1, 2, 5].flatMap((m) => powers(low, high).map((p) => m * p)).sort((a, b) => a - b);
    return powers(low, high);
  }
  const ticks = [0, ...(high > 0 ? even(0, Math.min(high, linearTo), high > linearTo ? 1 : 4) : []), ...(low < 0 ? even(Math.max(low, -linearTo), 0, low < -linearTo || high > linearTo ? 1 : 4) : [])];
  if (high > linearTo) ticks.push(...powers(linearTo, high));
  if (low < -linearTo) ticks.push(...powers(linearTo, -low).map((t) => -t));
  return [...new Set(ticks)].sort((a, b) => a - b);
}

function drawChart(holder, legend, chart) {
  const width = Math.max(280, holder.clientWidth), height = width < 520 ? 330 : 430;
  const left = 66, right = 16, top = 12, bottom = height - 46;
  holder.replaceChildren();
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${chart.y_label} against ${chart.x_label}, ${chart.title}` }, holder);
  const all = (pick) => chart.series.flatMap(pick);
  const xs = scaleFor(chart.x_scale, all((s) => s.x), 1, null);
  const spread = all((s) => s.y.flatMap((v, i) => (v === null ? [] : s.error && s.error[i] !== null && chart.y_scale !== "log" ? [v - s.error[i], v + s.error[i]] : [v])));
  const ys = scaleFor(chart.y_scale, chart.zero ? [...spread, 0] : spread, chart.linear_to, chart.y_limits);
  const x = (v) => left + xs.at(v) * (width - left - right);
  const y = (v) => { const p = ys.at(v); return p === null ? null : bottom - p * (bottom - top); };
  for (const tick of ys.ticks) {
    make("line", { class: "gridline", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }, svg);
    make("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, svg, short(tick));
  }
  let taken = -Infinity;
  for (const tick of xs.ticks) {
    if (x(tick) - taken < 34) continue;
    taken = x(tick);
    make("text", { x: Math.min(taken, width - 12), y: bottom + 18, "text-anchor": "middle" }, svg, short(tick));
  }
  make("line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom }, svg);
  make("text", { class: "name", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, svg, chart.x_label);
  make("text", { class: "name", x: 13, y: (top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 13 ${(top + bottom) / 2})` }, svg, chart.y_label);
  if (chart.zero) make("line", { x1: left, x2: width - right, y1: y(0), y2: y(0), style: "stroke: var(--ink); stroke-width: 1.2" }, svg);
  if (chart.frontier.length) {
    let d = "";
    chart.frontier.forEach(([a, b], i) => { d += i ? `H${x(a).toFixed(1)}V${y(b).toFixed(1)}` : `M${x(a).toFixed(1)} ${y(b).toFixed(1)}`; });
    make("path", { d: d + `H${width - right}`, class: "series frontier", style: "stroke: var(--soft); stroke-width: 1.2" }, svg);
  }
  for (const series of chart.series) drawSeries(svg, chart, series, x, y, width);
  if (!chart.points) tooltip(holder, svg, chart, x, width, left, right);
  drawLegend(legend, chart);
}
function drawSeries(svg, chart, series, x, y, width) {
  const paint = colour(series.method), spots = series.x.map((v, i) => [x(v), y(series.y[i])]).map((p, i) => (p[1] === null ? null : p));
  if (chart.points) {
    spots.forEach((spot, i) => {
      if (!spot) return;
      make("circle", { class: "mark", cx: spot[0], cy: spot[1], r: 6, style: `fill: ${paint}` }, svg);
      const late = spot[0] > width - 90;
      if (series.tags[i]) make("text", { x: spot[0] + (late ? -6 : 6), y: spot[1] - 8, "text-anchor": late ? "end" : "start", style: `fill: ${paint}` }, svg, series.tags[i]);
    });
    return;
  }
  if (series.error) {
    const edge = (sign) => series.x.map((v, i) => { const p = series.y[i] === null || series.error[i] === null ? null : y(series.y[i] + sign * series.error[i]); return p === null ? null : [x(v), p]; }).filter(Boolean);
    const outline = [...edge(1), ...edge(-1).reverse()];
    if (outline.length > 2) make("path", { class: "band", d: "M" + outline.map((p) => `${p[0].toFixed(1)} ${p[1].toFixed(1)}`).join("L") + "Z", style: `fill: ${paint}` }, svg);
  }
  if (series.shade) return;
  if (series.marks) { for (const spot of spots) if (spot) make("circle", { cx: spot[0], cy: spot[1], r: 3.4, style: `fill: ${paint}; fill-opacity: .8` }, svg); return; }
  let d = "", pen = false;
  for (const spot of spots) {
    if (spot) d += `${pen ? "L" : "M"}${spot[0].toFixed(1)} ${spot[1].toFixed(1)}`;
    pen = spot !== null;
  }
  make("path", { class: "series", d, "stroke-dasharray": data.looks[series.method].dash, style: `stroke: ${paint}`, "data-method": series.method }, svg);
  if (series.x.length < 12) for (const spot of spots) if (spot) make("circle", { cx: spot[0], cy: spot[1], r: 3.2, style: `fill: ${paint}` }, svg);
}
function drawLegend(holder, chart) {
  const entries = chart.series.map((s) => [s.label || data.looks[s.method].label, colour(s.method), chart.points || s.marks ? null : data.looks[s.method].dash, s.shade]);
  if (chart.zero) entries.push([chart.zero, "var(--ink)", ""]);
  if (chart.frontier.length) entries.push(["the frontier: nothing is both faster and better", "var(--soft)", ""]);
  const seen = new Set();
  holder.replaceChildren(...entries.filter(([label]) => !seen.has(label) && seen.add(label)).map(([label, paint, dash, shade]) => {
    const item = document.createElement("span"), icon = make("svg", { viewBox: "0 0 24 10", "aria-hidden": "true" });
    if (shade) make("rect", { class: "band", width: 24, height: 10, style: `fill: ${paint}` }, icon);
    else if (dash === null) make("circle", { cx: 12, cy: 5, r: 4.5, style: `fill: ${paint}` }, icon);
    else make("line", { x1: 1, x2: 23, y1: 5, y2: 5, "stroke-width": 2.4, "stroke-dasharray": dash, style: `stroke: ${paint}` }, icon);
    item.append(icon, label);
    return item;
  }));
}
function tooltip(holder, svg, chart, x, width, left, right) { // the values under the pointer
  const cursor = make("line", { class: "cursor", y1: 12, y2: svg.viewBox.baseVal.height - 46, visibility: "hidden" }, svg);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  holder.append(tip);
  const places = [...new Set(chart.series.flatMap((s) => s.x))];
  const hide = () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * width;
    if (!places.length || at < left || at > width - right) return hide();
    const place = places.reduce((a, b) => (Math.abs(x(b) - at) < Math.abs(x(a) - at) ? b : a));
    const values = chart.series.filter((s) => !s.shade).map((s) => [s, s.y[s.x.indexOf(place)]]).filter(([, v]) => v !== undefined);
    values.sort((a, b) => (b[1] ?? Infinity) - (a[1] ?? Infinity));
    tip.replaceChildren(`${chart.x_label}: ${short(place)}`, ...values.map(([s, v]) => {
      const row = document.createElement("div");
      row.textContent = `${v === null ? "not finite" : short(v)}  ${s.label || data.looks[s.method].label}`;
      row.style.color = colour(s.method);
      return row;
    }));
    cursor.setAttribute("x1", x(place));
    cursor.setAttribute("x2", x(place));
    cursor.setAttribute("visibility", "visible");
    tip.hidden = false;
    const beside = x(place) * box.width / width + 14;
    tip.style.left = `${Math.max(0, beside + tip.offsetWidth > box.width ? beside - 28 - tip.offsetWidth : beside)}px`;
    tip.style.top = "14px";
  });
}

// Rows of buttons choose the chart; a combination that was not measured leads to the nearest that was.
function chooser(figure, part) {
  let chosen = part.first;
  const holder = figure.querySelector(".buttons"), words = part.rows.map((_, r) => [...new Set(part.charts.map(([key]) => key[r]))]);
  function show() {
    const [, chart] = part.charts.find(([key]) => key.every((word, r) => word === chosen[r])) || part.charts[0];
    for (const button of holder.querySelectorAll("button")) button.setAttribute("aria-pressed", String(chosen[button.dataset.row] === button.textContent));
    figure.dataset.chosen = chosen.join(" | ");
    drawChart(figure.querySelector(".plot"), figure.querySelector(".legend"), chart);
  }
  words.forEach((choices, r) => {
    if (choices.length < 2) return;
    const row = document.createElement("div"), name = document.createElement("span");
    name.textContent = part.rows[r];
    row.append(name, ...choices.map((word) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = word;
      button.dataset.row = r;
      button.addEventListener("click", () => {
        const wanted = chosen.map((old, k) => (k === r ? word : old));
        const exists = part.charts.some(([key]) => key.every((w, k) => w === wanted[k]));
        chosen = exists ? wanted : part.charts.find(([key]) => key[r] === word)[0];
        show();
      });
      return button;
    }));
    holder.append(row);
  });
  show();
  return show;
}
const redraws = [];
for (const figure of document.querySelectorAll(".chooser")) redraws.push(chooser(figure, data.parts[figure.id]));
const dots = () => { for (const dot of document.querySelectorAll(".dot[data-method]")) dot.style.background = colour(dot.dataset.method); };
dots();
redraws.push(dots);
let shownWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== shownWidth) { shownWidth = innerWidth; redraws.forEach((redraw) => redraw()); } });
dark.addEventListener("change", () => redraws.forEach((redraw) => redraw()));
