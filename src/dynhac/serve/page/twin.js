// The table that tells the same as the icicle. It is there for screen readers at all times, and
// for all when asked for.

import { paint } from "./color.js";
import { h, similarity } from "./dom.js";
import { describe, shownBlocks, shownRows, zoom } from "./icicle.js";
import { state, subscribe } from "./state.js";

const MOST = 150;
const LEAST = 1000; // milliseconds between two tables

const holder = document.getElementById("twin");
const body = holder.querySelector("tbody");
const button = document.getElementById("as-table");

let timer = null;
let shown = "";
let drawn = -Infinity;

function draw() {
  timer = null;
  // Level by level, from the left: what is large comes first.
  const blocks = [...shownBlocks()].sort((a, b) => a.first - b.first || a.x - b.x).slice(0, MOST);
  const rows = shownRows();
  const told = blocks.map((block) => {
    const { title, text } = describe(block);
    const from = block.first === 0 ? "all" : similarity(rows[block.first - 1]);
    return { block, cells: [from, title, text] };
  });
  const text = JSON.stringify(told.map(({ cells }) => cells));
  if (text === shown) return;
  shown = text;
  drawn = performance.now();
  body.replaceChildren(...told.map(({ block, cells: [from, title, about] }) =>
    h("tr", { "data-cluster": block.node.cluster },
      h("td", { class: "number" }, from),
      h("td", {}, swatch(block.node.cluster), h("button", { class: "plain", dir: "auto", onclick: () => zoom(block.node) }, title)),
      h("td", {}, about))));
}

function swatch(cluster) {
  const mark = h("i", { class: "swatch" });
  mark.style.background = paint(cluster).fill;
  return mark;
}

button.addEventListener("click", () => {
  const table = holder.classList.toggle("shown");
  button.setAttribute("aria-pressed", String(table));
  button.textContent = table ? "Icicle" : "Table";
  document.getElementById("canvas-holder").classList.toggle("away", table);
});

subscribe(["theme"], () => {
  shown = "";
});
subscribe(["tree", "names", "theme"], () => {
  if (state.tree) timer ??= setTimeout(draw, Math.max(drawn + LEAST - performance.now(), 0));
});
