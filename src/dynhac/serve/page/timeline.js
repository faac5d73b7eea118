// The largest clusters over time: a lane each, as thick as the cluster was large (by the square
// root), with births, deaths, merges and splits. The pointer is a cursor that tells the sizes then;
// dragging chooses a window of time, which the feed follows and the address keeps.

import { calm } from "./calm.js";
import { paint } from "./color.js";
import { compact, keyed, moment, notToday, setText, svg } from "./dom.js";
import { fitted } from "./labels.js";
import { drawer, go, nameOf, set, state, subscribe } from "./state.js";

const LANES = [16, 48]; // the least and the largest height of a lane
const THICK = 24; // at most
const NAME = 208;
const SIZE = 56;
const AXIS = 20;
const TICK = 160; // pixels from one to the next, or more
const MOST_MARKS = 160; // with the lines between them

const holder = document.getElementById("timeline");
const picture = svg("svg", { role: "img", "aria-label": "Sizes of the largest clusters over time" });
const axis = svg("g", { class: "axis" });
const lanes = svg("g");
const marks = svg("g", { class: "marks" });
const brush = svg("rect", { class: "brush" });
const cursor = svg("line", { class: "cursor" });
const clock = svg("text", { class: "clock", "text-anchor": "middle" });
picture.append(axis, brush, lanes, marks, cursor, clock);
holder.append(picture);

const none = document.getElementById("timeline-none");
const legend = document.querySelector("#time .legend");
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "12px system-ui, sans-serif";
const drawn = new Map();
const windowChip = document.getElementById("window");
let width = 0;
let span = [0, 1]; // the first and the last update
let times = []; // [update, time], in order
let small = false;
let laneHeight = LANES[0];

const nameWidth = () => (small ? 96 : NAME);
const sizeWidth = () => (small ? 48 : SIZE);
const xOf = (update) => {
  const [first, last] = span;
  return nameWidth() + ((update - first) / Math.max(last - first, 1)) * (width - nameWidth() - sizeWidth());
};
const updateAt = (x) => {
  const part = (x - nameWidth()) / (width - nameWidth() - sizeWidth());
  return Math.round(span[0] + Math.min(Math.max(part, 0), 1) * (span[1] - span[0]));
};

function placeIn(values, wanted) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** When an update was, as text: the time of its points, or its number. `form`: see `moment`. */
export function whenOf(update, form = "clock") {
  const place = placeIn(times.map(([at]) => at), update);
  const found = times[Math.max(place, 0)];
  if (found) return moment(found[1], form);
  return form === "day" ? `#${update}` : `update ${update}`;
}

/** How times on the axis are written: without the day, if all are of this one. */
function formOfAxis() {
  if (!times.length) return "clock";
  const [first, last] = [times[0][1], times.at(-1)[1]];
  return notToday(first) || notToday(last) ? "full" : "clock";
}

function sizeAt(lane, update) {
  const place = placeIn(lane.update, update);
  return place < 0 ? 0 : lane.size[place];
}

function makeLane(cluster) {
  const lane = svg("g", { class: "lane", "data-cluster": cluster },
    svg("rect", { class: "ground" }),
    svg("path"),
    svg("text", { class: "name", x: 0 }),
    svg("text", { class: "size" }));
  lane.addEventListener("pointerenter", () => set({ highlight: cluster }));
  lane.addEventListener("pointerleave", () => set({ highlight: null }));
  return lane;
}

function draw() {
  const { timeline } = state;
  if (!timeline || !width) return;
  const shown = fitting(timeline.lanes);
  none.hidden = shown.length > 0;
  legend.hidden = !shown.length;
  picture.toggleAttribute("hidden", !shown.length);
  if (!shown.length) return;
  const first = Math.min(...shown.map((lane) => lane.update[0]), timeline.last_update);
  span = [first, Math.max(timeline.last_update, first + 1)];
  const known = new Map();
  for (const lane of shown) lane.time?.forEach((time, i) => known.set(lane.update[i], time));
  times = [...known].filter(([, time]) => time !== null).sort((a, b) => a[0] - b[0]);
  const height = shown.length * laneHeight + AXIS;
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
  const most = Math.max(...shown.map((lane) => Math.max(...lane.size)), 1);
  // By birth, so that a lane stays where it is while sizes change.
  const order = [...shown].sort((a, b) => a.cluster - b.cluster);
  keyed(lanes, drawn, order.map((lane) => lane.cluster), makeLane);
  const rowOf = new Map(order.map((lane, row) => [lane.cluster, row]));
  for (const lane of order) drawLane(lane, rowOf.get(lane.cluster), most);
  drawMarks(timeline.events, rowOf);
  drawAxis(height);
  drawWindow();
  drawCursor();
  drawFocus();
}

/** The lanes there is room for, largest first; sets how high they are. */
function fitting(lanes) {
  if (small) {
    laneHeight = 20;
    return lanes;
  }
  const room = holder.clientHeight - AXIS;
  const shown = lanes.slice(0, Math.max(Math.floor(room / LANES[0]), 4));
  laneHeight = Math.min(Math.max(Math.floor(room / Math.max(shown.length, 1)), LANES[0]), LANES[1]);
  return shown;
}

function drawLane(lane, row, most) {
  const element = drawn.get(lane.cluster);
  const [ground, path, name, size] = element.children;
  element.setAttribute("transform", `translate(0 ${row * laneHeight})`);
  ground.setAttribute("width", width);
  ground.setAttribute("height", laneHeight);
  name.setAttribute("y", laneHeight / 2);
  size.setAttribute("y", laneHeight / 2);
  const { fill } = paint(lane.cluster);
  path.setAttribute("fill", fill);
  const above = [];
  const below = [];
  const thickest = Math.min(laneHeight - 4, THICK) / 2;
  const thick = (points) => (points ? Math.max(Math.sqrt(points / most) * thickest, 0.75) : 0);
  lane.update.forEach((update, i) => {
    const next = i + 1 < lane.update.length ? lane.update[i + 1] : span[1];
    const [x, end] = [xOf(update).toFixed(1), xOf(next).toFixed(1)];
    const half = thick(lane.size[i]);
    above.push(`${x} ${(laneHeight / 2 - half).toFixed(1)}`, `${end} ${(laneHeight / 2 - half).toFixed(1)}`);
    below.push(`${x} ${(laneHeight / 2 + half).toFixed(1)}`, `${end} ${(laneHeight / 2 + half).toFixed(1)}`);
  });
  path.setAttribute("d", `M${above.join("L")}L${below.reverse().join("L")}Z`);
  setText(name, fitted(ruler, nameOf(lane.cluster), nameWidth() - 16));
  size.setAttribute("x", width);
}

function drawMarks(events, rowOf) {
  const middle = (cluster) => rowOf.get(cluster) * laneHeight + laneHeight / 2;
  const parts = [];
  // The latest ones, if there are too many.
  for (const event of events.filter(({ cluster }) => rowOf.has(cluster)).reverse()) {
    if (parts.length >= MOST_MARKS) break;
    const [x, y] = [xOf(event.update), middle(event.cluster)];
    parts.push(svg("path", { class: event.kind, d: SHAPES[event.kind](x, y) }));
    for (const other of event.others.filter((cluster) => rowOf.has(cluster)).slice(0, 3)) {
      parts.push(svg("line", { class: "join", x1: x, x2: x, y1: y, y2: middle(other) }));
    }
  }
  marks.replaceChildren(...parts.reverse());
}

const SHAPES = {
  born: (x, y) => `M${x - 3} ${y}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z`,
  died: (x, y) => `M${x - 3} ${y - 3}l6 6m0 -6l-6 6`,
  merged: (x, y) => `M${x + 3} ${y}l-6 -4v8Z`,
  split: (x, y) => `M${x - 3} ${y}l6 -4v8Z`,
};

/** Lines at round numbers of updates, so that they stay with what they stand for. */
function drawAxis(height) {
  const form = formOfAxis();
  const [left, right] = [nameWidth(), width - sizeWidth()];
  const room = Math.max((right - left) / (form === "full" ? TICK + 40 : TICK), 1);
  const { last_update: last } = state.timeline;
  const step = roundStep((span[1] - span[0]) / room);
  const parts = [];
  let before = null;
  // Nothing has happened since the beginning: there is one time.
  const first = last <= span[0] ? span[0] : Math.ceil(span[0] / step) * step;
  for (let update = first; update <= last; update += step) {
    const x = xOf(update);
    parts.push(svg("line", { x1: x, x2: x, y1: 0, y2: height - AXIS }));
    const anchor = x < left + 40 ? "start" : x > right - 40 ? "end" : "middle";
    const text = whenOf(update, form);
    if (text !== before) parts.push(svg("text", { x, y: height - 4, "text-anchor": anchor }, text));
    before = text;
  }
  axis.replaceChildren(...parts);
}

/** The next of 1, 2, 5, 10, 20, ... */
function roundStep(least) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((part) => part * ten).find((step) => step >= least);
}

function drawCursor() {
  const { timeline, cursor: at } = state;
  if (!timeline) return;
  const on = at !== null;
  cursor.toggleAttribute("hidden", !on);
  clock.toggleAttribute("hidden", !on);
  const height = drawn.size * laneHeight;
  if (on) {
    const x = xOf(at);
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", 0], ["y2", height]]) {
      cursor.setAttribute(name, value);
    }
    clock.setAttribute("x", Math.min(Math.max(x, nameWidth() + 64), width - 72));
    clock.setAttribute("y", height + AXIS - 4);
    setText(clock, whenOf(at, formOfAxis()));
  }
  axis.classList.toggle("behind", on);
  for (const lane of timeline.lanes) {
    const element = drawn.get(lane.cluster)?.children[3];
    if (!element) continue;
    const size = on ? sizeAt(lane, at) : lane.size.at(-1);
    setText(element, compact(size));
    element.classList.toggle("over", !size);
  }
  // Whoever listens hears what they move, not every update.
  if (!on && document.activeElement === holder) return;
  const now = on ? at : span[1];
  for (const [name, value] of [["valuemin", span[0]], ["valuemax", span[1]], ["valuenow", now], ["valuetext", whenOf(now, "full")]]) {
    holder.setAttribute(`aria-${name}`, value);
  }
}

function drawWindow() {
  const { from, to } = state.route;
  const on = from !== undefined && to !== undefined && state.timeline;
  brush.toggleAttribute("hidden", !on);
  windowChip.hidden = !on;
  if (!on) return;
  brush.setAttribute("x", xOf(Math.max(from, span[0])));
  brush.setAttribute("width", Math.max(xOf(Math.min(to, span[1])) - xOf(Math.max(from, span[0])), 2));
  brush.setAttribute("height", drawn.size * laneHeight);
  const form = formOfAxis();
  setText(windowChip, `${whenOf(from, form)} to ${whenOf(to, form)}  ×`);
}

function drawFocus() {
  const focus = state.highlight ?? state.route.cluster ?? null;
  const any = focus !== null && drawn.has(focus);
  for (const [cluster, lane] of drawn) lane.classList.toggle("faint", any && cluster !== focus);
}

let dragFrom = null;

picture.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || !state.timeline) return;
  dragFrom = event.offsetX;
});
picture.addEventListener("pointermove", (event) => {
  if (event.offsetX < nameWidth()) {
    set({ cursor: null });
    return;
  }
  set({ cursor: updateAt(event.offsetX) });
  if (dragFrom !== null && Math.abs(event.offsetX - dragFrom) > 4) {
    const ends = [updateAt(dragFrom), updateAt(event.offsetX)].sort((a, b) => a - b);
    go({ from: ends[0], to: ends[1] }, true);
  }
});
addEventListener("pointerup", () => {
  dragFrom = null;
});
picture.addEventListener("pointerleave", () => set({ cursor: null }));
picture.addEventListener("click", (event) => {
  const lane = event.target.closest(".lane");
  if (lane && event.offsetX < nameWidth()) go(drawer({ cluster: Number(lane.dataset.cluster) }));
});
picture.addEventListener("dblclick", () => go({ from: null, to: null }));
windowChip.addEventListener("click", () => go({ from: null, to: null }));

holder.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || !state.timeline) return;
  event.preventDefault();
  const stride = Math.max(Math.round((span[1] - span[0]) / 60), 1) * step;
  const before = state.cursor ?? span[1];
  const at = Math.min(Math.max(before + stride, span[0]), span[1]);
  set({ cursor: at });
  if (event.shiftKey) {
    const { from = before, to = before } = state.route;
    const kept = before === from ? to : from;
    go({ from: Math.min(kept, at), to: Math.max(kept, at) }, true);
  }
});
holder.addEventListener("blur", () => set({ cursor: null }));

new ResizeObserver(() => {
  width = Math.floor(holder.clientWidth);
  small = width < 560;
  draw();
}).observe(holder);

const calmly = calm(holder, draw);
const link = document.getElementById("timeline-data");
subscribe(["timeline"], () => {
  link.href = state.timeline.request;
  calmly();
});
subscribe(["names"], calmly);
subscribe(["theme"], draw);
subscribe(["cursor"], drawCursor);
subscribe(["route"], drawWindow);
subscribe(["highlight", "route"], drawFocus);
