// The table that tells the same as the icicle. It is there for screen readers at all times, and
// for all when asked for.

import { paint } from "./color.js";
import { h, keyed, setText, similarity } from "./dom.js";
import { describe, shownBlocks, shownRows, zoom } from "./icicle.js";
import { go, state, subscribe } from "./state.js";

const MOST = 150;
const LEAST = 1000; // milliseconds between two tables

const holder = document.getElementById("twin");
const body = holder.querySelector("tbody");
const button = document.getElementById("as-table");

const lines = new Map(); // the rows, by the keys of their blocks
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
  keyed(body, lines, told.map(({ block }) => block.key), make);
  for (const { block, cells: [from, title, about] } of told) {
    const [first, second, third] = lines.get(block.key).children;
    const [swatch, link] = second.children;
    setText(first, from);
    setText(link, title);
    setText(third, about);
    swatch.style.background = paint(block.node.cluster).fill;
    link.onclick = () => zoom(block.node);
  }
  reach();
}

function make() {
  return h("tr", {}, h("td", { class: "number" }),
    h("td", {}, h("i", { class: "swatch" }), h("button", { class: "plain", dir: "auto" })), h("td"));
}

/** The Tab key stops at the table only while it is seen. */
function reach() {
  const stop = holder.classList.contains("shown") ? 0 : -1;
  for (const link of body.querySelectorAll("button")) link.tabIndex = stop;
}

button.addEventListener("click", () => go({ table: state.route.table ? null : 1 }));

subscribe(["route"], () => {
  const table = Boolean(state.route.table);
  holder.classList.toggle("shown", table);
  button.setAttribute("aria-pressed", String(table));
  setText(button, table ? "Icicle" : "Table");
  document.getElementById("canvas-holder").classList.toggle("away", table);
  reach();
});
subscribe(["theme"], () => {
  shown = "";
});
subscribe(["tree", "names", "theme"], () => {
  if (state.tree) timer ??= setTimeout(draw, Math.max(drawn + LEAST - performance.now(), 0));
});
