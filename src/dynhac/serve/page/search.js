// Search for a point by its id or its text. A hit opens the point, with its path in the hierarchy.

import { call, get } from "./api.js";
import { paint } from "./color.js";
import { h, textOf } from "./dom.js";
import { drawer, go, nameOf } from "./state.js";

const WAIT = 150;

const input = document.getElementById("search");
const list = document.getElementById("search-hits");
let hits = [];
let at = -1;
let timer = null;
let turn = null;
let running = null;

async function search() {
  timer = null;
  turn?.abort();
  const q = input.value.trim();
  if (!q) {
    close();
    return;
  }
  turn = new AbortController();
  const { signal } = turn;
  try {
    const found = await get(call(["search"], { q, limit: 12 }), signal);
    if (!signal.aborted) show(found.hits);
  } catch (error) {
    if (!signal.aborted) show([], error.message);
  }
}

function show(found, message = "Nothing found.") {
  hits = found;
  at = -1;
  list.replaceChildren(...hits.map((hit, i) => {
    const row = h("li", { role: "option", id: `hit-${i}`, "aria-selected": "false" },
      h("i", { class: "swatch" }),
      h("span", { class: "name", dir: "auto" }, textOf(hit.payload) || String(hit.id)),
      h("span", { class: "quiet", dir: "auto" },
        `${hit.id} · ${hit.cluster === null ? "in no cluster" : nameOf(hit.cluster)}`));
    row.firstChild.style.background = paint(hit.cluster).fill;
    row.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      choose(i);
    });
    return row;
  }));
  if (!hits.length) list.append(h("li", { class: "quiet" }, message));
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
}

function close() {
  list.hidden = true;
  hits = [];
  at = -1;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

function choose(i) {
  const hit = hits[i];
  close();
  input.blur();
  go(drawer({ point: hit.id }));
}

function move(step) {
  if (!hits.length) return;
  list.children[at]?.setAttribute("aria-selected", "false");
  at = (at + step + hits.length) % hits.length;
  const row = list.children[at];
  row.setAttribute("aria-selected", "true");
  row.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", row.id);
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    running = search();
  }, WAIT);
});
input.addEventListener("keydown", async (event) => {
  if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(at < 0 ? 0 : -1);
  else if (event.key === "Escape") {
    if (list.hidden) input.blur();
    close();
    event.stopPropagation();
  } else if (event.key === "Enter") {
    event.preventDefault();
    if (timer !== null) {
      clearTimeout(timer);
      running = search();
    }
    await running;
    if (hits.length) choose(Math.max(at, 0));
  } else return;
  event.preventDefault();
});
input.addEventListener("blur", () => setTimeout(close, 100));
input.addEventListener("focus", () => {
  if (input.value) running = search();
});
