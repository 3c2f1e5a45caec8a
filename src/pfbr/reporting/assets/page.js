"use strict";
// What every page shares: the records, drawing by hand, and a player over the stages of a stream.
const data = JSON.parse(document.getElementById("data").textContent);
const NS = "http://www.w3.org/2000/svg";

function make(tag, attributes, parent, text) {
  const node = document.createElementNS(NS, tag);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}
const minus = (text) => String(text).replace(/-/g, "−");
const unpack = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

function evenTicks(low, high, wanted, whole) { // round numbers; whole ones, such as stages, have no halves
  const rough = Math.max((high - low) / wanted, 1e-12), power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough - 1e-12 && (!whole || s % 1 === 0)) || 1, ticks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + 1e-9 * step; t += step) ticks.push(Math.abs(t) < 1e-9 * step ? 0 : Number(t.toPrecision(6)));
  return ticks;
}
function shaded(cells, paint, opacity) { // a picture of a density: cell i along x1, j along x2, with a byte of opacity
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = cells;
  const context = canvas.getContext("2d"), picture = context.createImageData(cells, cells);
  for (let i = 0; i < cells; i++) for (let j = 0; j < cells; j++)
    picture.data.set([...paint, Math.round(opacity(i, j))], 4 * ((cells - 1 - j) * cells + i));
  context.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}
function player(last, slider, button, draw, face) { // slider, button and keys over the stages 0 … last
  let stage = last, timer = null;
  function go(to) {
    stage = Math.max(0, Math.min(last, to));
    slider.value = stage;
    document.documentElement.dataset.stage = stage;
    draw(stage);
  }
  function play(on) {
    clearInterval(timer);
    timer = null;
    if (on) {
      if (stage === last) go(0);
      timer = setInterval(() => (stage < last ? go(stage + 1) : play(false)), 600);
    }
    button.setAttribute("aria-label", on ? "Pause" : "Play");
    face(on);
  }
  slider.max = last;
  slider.addEventListener("input", () => { play(false); go(Number(slider.value)); });
  button.addEventListener("click", () => play(timer === null));
  document.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: stage - 1, ArrowRight: stage + 1, Home: 0, End: last }[event.key];
    if (to !== undefined) { event.preventDefault(); play(false); go(to); }
    else if (event.key === " " && event.target.tagName !== "BUTTON") { event.preventDefault(); play(timer === null); }
  });
  play(false);
  go(Number((location.hash.match(/stage=(\d+)/) || [0, last])[1]));
  return { go, redraw: () => draw(stage) };
}
