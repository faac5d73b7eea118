// The hierarchy as an icicle on a canvas: see layout.js for what a block is. A click zooms in, the
// way back is above it; arrows walk from block to block, Enter opens. Its twin for screen readers
// is a table (twin.js).

import { calm } from "./calm.js";
import { paint } from "./color.js";
import { count, h, points, setText, similarity } from "./dom.js";
import { drawLabel } from "./labels.js";
import { clustersIn, keyOf, layout, rowsOf, visible } from "./layout.js";
import { setWidth } from "./live.js";
import { drawer, go, isolatedName, nameOf, set, state, subscribe } from "./state.js";

const AXIS = 64;
const TALLEST = 96;
const MOTION = 200; // milliseconds
const PACE = 800; // milliseconds from one state to the next, while points come and go
const FONT = "system-ui, sans-serif";
const SMALL = `12px ${FONT}`;
const still = matchMedia("(prefers-reduced-motion: reduce)");

const canvas = document.getElementById("icicle");
const tip = document.getElementById("tip");
const told = document.getElementById("icicle-told");
const context = canvas.getContext("2d");

let width = 0;
let height = 0;
let rows = [];
let rowsFor = null; // {node, size, theta}: what the rows were chosen for
let order = new Map(); // key -> where a node was, as a share of the width
let blocks = [];
let drawnBefore = []; // the blocks of the state before
let places = new Map(); // key -> {x, y, w, h, alpha}: where a block is drawn now
let motion = null; // {began, live}
let arranged = -Infinity;
let arrangedVersion = null;
let drawn = null;
let selected = null; // the key of the block that the keyboard is at
let hovered = null;

/** The version of the model that is drawn, for measurements. */
export const drawnVersion = () => drawn;
/** The blocks, for the table. */
export const shownBlocks = () => blocks;
export const shownRows = () => rows;

const theta = () => state.stats?.watches?.[0]?.theta ?? null;

function arrange() {
  const { tree } = state;
  if (!tree || !width) return;
  const { node } = tree;
  const skip = node === null ? Math.min(tree.skip, Math.max(tree.root.children.length - 1, 0)) : 0;
  const root = visible(tree.root, width - AXIS, skip);
  const fits = rowsFor && rowsFor.node === node && rowsFor.skip === skip && rowsFor.theta === theta()
    && Math.abs(root.size - rowsFor.size) <= 0.25 * rowsFor.size;
  if (!fits) {
    rows = rowsOf(root, theta());
    rowsFor = { node, skip, size: root.size, theta: theta() };
  }
  // Siblings keep their order while one node is shown, and in a part of it.
  if (!order.has(keyOf(root))) order = new Map();
  const live = fits && blocks.length > 0;
  drawnBefore = blocks;
  ({ blocks, places: order } = layout(root, rows, order));
  const rowHeight = Math.min(height / (rows.length + 1), TALLEST);
  for (const block of blocks) {
    block.target = {
      x: AXIS + block.x * (width - AXIS),
      y: block.first * rowHeight,
      w: block.width * (width - AXIS),
      h: (block.last - block.first + 1) * rowHeight,
    };
    block.key = keyOf(block.node);
    block.start = places.get(block.key) ?? { ...block.target, alpha: live && covered(block) ? 1 : 0 };
  }
  const first = places.size === 0;
  motion = { began: first || still.matches ? -Infinity : performance.now(), live };
  arranged = performance.now();
  arrangedVersion = tree.version;
  if (selected && !blocks.some((block) => block.key === selected)) {
    // What is in its place now.
    const { target } = drawnBefore.find((block) => block.key === selected) ?? blocks[0];
    selected = blockAt(target.x + target.w / 2, target.y + target.h / 2)?.key ?? null;
  }
  animate();
}

let frame = null;

function animate() {
  frame ??= requestAnimationFrame(() => {
    frame = null;
    if (draw() < 1) animate();
  });
}

/** Draw the blocks where they are now; returns how far the motion is, 1 at its end. */
function draw() {
  const part = Math.min((performance.now() - motion.began) / MOTION, 1);
  const eased = 1 - (1 - part) ** 3;
  const ratio = devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(canvas);
  drawAxis(style);
  const wanted = state.highlight ?? state.route.cluster ?? null;
  const focus = blocks.some(({ node }) => node.cluster === wanted) ? wanted : null;
  const trail = state.trail && new Set(state.trail.map(keyOf));
  const now = new Map();
  for (const block of blocks) {
    const { start } = block;
    const place = { ...block.target, alpha: start.alpha + (1 - start.alpha) * eased };
    // While points come and go, blocks move sideways only: no gaps open between rows.
    for (const side of motion.live ? ["x", "w"] : ["x", "y", "w", "h"]) {
      place[side] = start[side] + (block.target[side] - start[side]) * eased;
    }
    now.set(block.key, place);
    let strong = true;
    if (trail) strong = trail.has(block.key) || block.above === null;
    else if (focus !== null) strong = block.node.cluster === focus;
    drawBlock(block, place, strong);
  }
  if (hovered) drawMark(now.get(hovered), style);
  if (selected && document.activeElement === canvas) drawMark(now.get(selected), style);
  places = now;
  drawn = arrangedVersion;
  return part;
}

/** Whether there was a block in its place: then it does not fade in. */
function covered({ target: { x, y, w, h: tall } }) {
  const [across, down] = [x + w / 2, y + tall / 2];
  return drawnBefore.some(({ target }) =>
    across >= target.x && across < target.x + target.w && down >= target.y && down < target.y + target.h);
}

function drawAxis(style) {
  const rowHeight = Math.min(height / (rows.length + 1), TALLEST);
  context.font = SMALL;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = style.getPropertyValue("--quiet");
  context.fillText("similarity", AXIS - 8, rowHeight / 2);
  rows.forEach((row, i) => {
    const cut = row === theta();
    context.fillStyle = style.getPropertyValue(cut ? "--ink" : "--quiet");
    context.font = `${cut ? "600 " : ""}12px ${FONT}`;
    context.fillText(similarity(row), AXIS - 8, (i + 1.5) * rowHeight);
  });
}

/** A frame around a block, which can be seen on all colours. */
function drawMark(place, style) {
  if (!place) return;
  context.beginPath();
  context.roundRect(place.x + 1, place.y + 1.5, Math.max(place.w - 3, 1), place.h - 3, 3);
  for (const [width, colour] of [[5, "--ground"], [2.5, "--ink"]]) {
    context.lineWidth = width;
    context.strokeStyle = style.getPropertyValue(colour);
    context.stroke();
  }
}

function drawBlock(block, place, strong) {
  const { node } = block;
  const gap = place.w > 4 ? 1 : 0.25;
  const { fill, ink, quiet } = paint(node.cluster, node.rest ? 5 : block.depth, !strong);
  context.globalAlpha = place.alpha;
  context.fillStyle = fill;
  context.beginPath();
  const radius = place.w > 8 ? 3 : 0;
  context.roundRect(place.x, place.y + 0.5, Math.max(place.w - gap, 0.5), place.h - 1, radius);
  context.fill();
  if (place.w >= 18 && place.h >= 12) drawLabel(context, block, place, ink, quiet);
  context.globalAlpha = 1;
}

function blockAt(x, y) {
  const inside = ({ target: { x: left, y: top, w, h: tall } }) =>
    x >= left && x < left + w && y >= top && y < top + tall;
  return blocks.find(inside) ?? null;
}

/** The names of the clusters in a node. */
function severalIn(node) {
  const inside = clustersIn(node);
  if (!inside.length) return "In no cluster";
  const more = inside.length > 3 ? ` and ${count(inside.length - 3)} more` : "";
  return `${inside.slice(0, 3).map(isolatedName).join(" · ")}${more}`;
}

/** What is told of a block, as text. */
export function describe({ node, last, depth }) {
  const title = node.point !== null ? String(node.point)
    : node.cluster !== null ? (depth ? `part of ${nameOf(node.cluster)}` : nameOf(node.cluster))
    : node.rest ? "Smaller branches" : node.node === null ? "All points" : severalIn(node);
  const parts = [points(node.size)];
  if (node.together_up_to !== null) parts.push(`together up to ${similarity(node.together_up_to)}`);
  if (node.hidden) parts.push(`${count(node.hidden)} of them in small branches`);
  return { title, text: parts.join(" · "), row: last };
}

/** Zoom to a node; the one that is shown goes back a step. */
export function zoom(node) {
  if (node.rest) {
    if (node.next !== null) go({ skip: node.next });
    return;
  }
  if (node.point !== null) {
    go(drawer({ point: node.point }));
    return;
  }
  const { tree } = state;
  if (node.node !== tree.node) go({ node: node.node, skip: null });
  else if (state.route.skip) go({ skip: null });
  else if (tree.path.length) go({ node: tree.path.at(-2)?.node ?? null });
}

function openBlock({ node }) {
  if (node.point !== null) go(drawer({ point: node.point }));
  else if (node.cluster !== null) go(drawer({ cluster: node.cluster }));
  else zoom(node);
}

canvas.addEventListener("pointermove", (event) => {
  const block = blockAt(event.offsetX, event.offsetY);
  const key = block?.key ?? null;
  canvas.classList.toggle("over", block !== null);
  tip.hidden = block === null || event.pointerType === "touch";
  if (block) {
    const { title, text } = describe(block);
    setText(tip.children[0], title.length > 120 ? `${title.slice(0, 120)}…` : title);
    setText(tip.children[1], text);
    setText(tip.children[2], block.node.cluster === null ? "Click: zoom" : "Click: zoom · Shift and click: open");
    const box = canvas.parentElement.getBoundingClientRect();
    const left = Math.min(event.offsetX + 12, box.width - tip.offsetWidth - 8);
    const under = event.offsetY + 20 + tip.offsetHeight < box.height;
    tip.style.left = `${Math.max(left, 0)}px`;
    tip.style.top = `${under ? event.offsetY + 20 : event.offsetY - tip.offsetHeight - 12}px`;
  }
  if (key !== hovered) {
    hovered = key;
    set({ highlight: block?.node.cluster ?? null });
    if (motion) animate();
  }
});
canvas.addEventListener("pointerleave", () => {
  hovered = null;
  tip.hidden = true;
  set({ highlight: null });
  if (motion) animate();
});
canvas.addEventListener("click", (event) => {
  const block = blockAt(event.offsetX, event.offsetY);
  if (!block) return;
  selected = block.key;
  tip.hidden = true;
  if (event.shiftKey) openBlock(block);
  else zoom(block.node);
});

const KEYS = {
  ArrowUp: (block) => block.above ?? block,
  ArrowDown: (block) => blocks.find((other) => other.above === block) ?? block,
  ArrowLeft: (block) => beside(block, -1),
  ArrowRight: (block) => beside(block, 1),
};

/** The next block to one side that is in the first row of this one. */
function beside(block, step) {
  const inRow = blocks
    .filter((other) => other.first <= block.first && other.last >= block.first)
    .sort((a, b) => a.x - b.x);
  return inRow[inRow.indexOf(block) + step] ?? block;
}

canvas.addEventListener("keydown", (event) => {
  if (!blocks.length) return;
  const block = blocks.find((other) => other.key === selected) ?? blocks[0];
  if (event.key in KEYS) {
    const next = selected === null ? blocks[0] : KEYS[event.key](block);
    selected = next.key;
    const { title, text } = describe(next);
    setText(told, `${title}, ${text}`);
    animate();
  } else if (event.key === "Enter") openBlock(block);
  else if (event.key === " " || event.key === "+") zoom(block.node);
  else if (event.key === "Backspace" || event.key === "-") zoom(blocks[0].node);
  else return;
  event.preventDefault();
});
canvas.addEventListener("focus", () => motion && animate());
canvas.addEventListener("blur", () => motion && animate());

new ResizeObserver(() => {
  const box = canvas.parentElement.getBoundingClientRect();
  if (!box.width || !box.height) return;
  [width, height] = [Math.floor(box.width), Math.floor(box.height)];
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  setWidth(width - AXIS);
  places = new Map();
  arrange();
}).observe(canvas.parentElement);

const way = document.getElementById("way");

/** The way from the top to the node that is shown. */
function drawWay() {
  const { tree } = state;
  if (!tree) return;
  const crumb = (node, text, here) =>
    h("li", {}, here ? h("b", { dir: "auto" }, text)
      : h("button", { class: "plain", onclick: () => go({ node, skip: null }) }, text));
  const label = (node) => (node.cluster === null ? points(node.size) : nameOf(node.cluster));
  const path = tree.path;
  const skip = path.length ? 0 : (state.route.skip ?? 0);
  const items = [crumb(null, "All points", !path.length && !skip)];
  if (skip) items.push(crumb(null, `without the largest ${count(skip)} branches`, true));
  if (path.length > 4) items.push(crumb(path.at(-4).node, "…", false));
  path.slice(-3).forEach((node, i, some) => items.push(crumb(node.node, label(node), i === some.length - 1)));
  const { cluster } = tree.root;
  if (cluster !== null) {
    const open = () => go(drawer({ cluster }));
    items.push(h("li", {}, h("button", { class: "chip", onclick: open }, "Open cluster")));
  }
  way.replaceChildren(...items);
}

const calmly = calm(canvas, paced);
let waiting = null;

/** Arrange the blocks, but not in too quick succession. */
function paced() {
  waiting ??= setTimeout(() => {
    waiting = null;
    arrange();
  }, Math.max(arranged + PACE - performance.now(), 0));
}

subscribe(["tree"], () => {
  // Another node was asked for; a change of the same one waits while the pointer is at work.
  const { tree } = state;
  if (tree && rowsFor?.node === tree.node && rowsFor.skip === tree.skip) calmly();
  else arrange();
});
subscribe(["stats"], () => {
  if (rowsFor && rowsFor.theta !== theta()) arrange();
});
subscribe(["tree", "names", "route"], drawWay);
subscribe(["names", "highlight", "trail", "route", "theme"], () => motion && animate());
