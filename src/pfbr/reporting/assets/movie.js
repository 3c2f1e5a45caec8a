// The slider over stages: densities as shades, contours of the truth, particles, and numbers beneath.
function movie(section, film) {
  const last = film.observations.length, cells = film.cells, reach = film.reach;
  const SIZE = 230, LEFT = 34, BOTTOM = 36, SIDE = SIZE - LEFT - 4, HEIGHT = SIDE + 4 + BOTTOM;
  const px = (x) => LEFT + ((x + reach) / (2 * reach)) * SIDE, py = (y) => 4 + ((reach - y) / (2 * reach)) * SIDE;
  const html = (tag, cls, parent, text) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const controls = html("div", "controls", section);
  const button = html("button", "", controls);
  button.type = "button";
  button.id = "play";
  const slider = html("input", "", controls);
  Object.assign(slider, { type: "range", id: "stage", min: 0, step: 1 });
  slider.setAttribute("aria-label", "Observations so far");
  const label = html("output", "", controls);
  const grid = html("div", "frames", section);
  const rgb = (name) => { const hex = colour(name); return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)); };

  const frames = film.panels.map((panel) => {
    const figure = html("figure", "", grid);
    figure.dataset.panel = panel.name;
    const caption = html("figcaption", "", figure);
    const head = html("h2", "", caption, panel.title);
    const svg = make("svg", { viewBox: `0 0 ${SIZE} ${HEIGHT}`, role: "img" }, html("div", "plot", figure));
    const clip = `clip-${panel.name}`;
    make("rect", { x: LEFT, y: 4, width: SIDE, height: SIDE }, make("clipPath", { id: clip }, make("defs", {}, svg)));
    for (const tick of [-2, 0, 2]) {
      make("text", { x: px(tick), y: SIDE + 19, "text-anchor": "middle" }, svg, minus(tick));
      make("text", { x: LEFT - 6, y: py(tick) + 4, "text-anchor": "end" }, svg, minus(tick));
    }
    const inside = make("g", { "clip-path": `url(#${clip})` }, svg);
    const image = make("image", { x: LEFT, y: 4, width: SIDE, height: SIDE, preserveAspectRatio: "none" }, inside);
    const lines = make("path", { class: "contour" }, inside);
    const dots = (panel.points ? panel.points[0] : []).map(() => make("circle", { class: "particle" }, inside));
    const [u, v] = film.unknown;
    make("path", { class: "unknown", d: `M${px(u) - 4} ${py(v)}h8M${px(u)} ${py(v) - 4}v8` }, inside);
    make("rect", { class: "axis", x: LEFT, y: 4, width: SIDE, height: SIDE, fill: "none" }, svg);
    for (const [text, x, y, turn] of [["x₁", LEFT + SIDE / 2, HEIGHT - 4, ""], ["x₂", 11, 4 + SIDE / 2, `rotate(-90 11 ${4 + SIDE / 2})`]])
      make("text", { class: "name", x, y, "text-anchor": "middle", transform: turn }, svg, text);
    const note = html("p", "note", figure);
    return { panel, svg, head, image, lines, dots, note, bytes: unpack(panel.shades), shown: new Map() };
  });

  function shade(frame, stage) {
    const paint = rgb(frame.panel.name), key = `${stage} ${paint}`;
    const opacity = (i, j) => 200 * Math.pow(frame.bytes[(stage * cells + i) * cells + j] / 255, 0.7);
    if (!frame.shown.has(key)) frame.shown.set(key, shaded(cells, paint, opacity));
    return frame.shown.get(key);
  }
  const exact = film.panels.find((panel) => panel.name === "exact");
  function draw(stage) {
    const path = film.contours[stage].map((line) => "M" + line.map(([x, y]) => `${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join("L")).join("");
    for (const frame of frames) {
      const { panel } = frame;
      frame.image.setAttribute("href", shade(frame, stage));
      frame.lines.setAttribute("d", path);
      frame.head.style.color = colour(panel.name);
      frame.dots.forEach((dot, k) => {
        const [x, y] = panel.points[stage][k], share = panel.weights ? panel.weights[stage][k] : 1;
        dot.setAttribute("cx", px(x).toFixed(1));
        dot.setAttribute("cy", py(y).toFixed(1));
        dot.setAttribute("r", (1.5 * Math.sqrt(Math.min(share, 9))).toFixed(2));
        dot.style.fill = colour(panel.name);
      });
      const mass = `${(100 * panel.mass[stage]).toFixed(0)} % at x₂ < 0`;
      const gap = panel.score && exact ? panel.score[stage] - exact.score[stage] : null;
      frame.note.textContent = gap === null || panel === exact ? mass : `${mass}, ${gap < 0 ? "" : "+"}${minus(gap.toFixed(2))} nats`;
      frame.svg.setAttribute("aria-label", `${panel.title} after ${stage} observations`);
    }
    label.textContent = stage ? `observation ${stage} of ${last}: ${minus(film.observations[stage - 1].toFixed(2))}` : "before any observation";
    slider.setAttribute("aria-valuetext", label.textContent);
  }
  const { redraw } = player(last, slider, button, draw, (on) => { button.textContent = on ? "❚❚ Pause" : "▶ Play"; });
  return redraw;
}
for (const section of document.querySelectorAll(".movie")) redraws.push(movie(section, data.parts[section.id].movie));
