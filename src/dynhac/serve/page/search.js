// Search for a point by its id or its text. A hit opens the point, with its path in the hierarchy.

import { call, get } from "./api.js";
import { paint } from "./color.js";
import { h, setText, textOf } from "./dom.js";
import { drawer, go, nameOf, state, subscribe } from "./state.js";

const WAIT = 150;
const MOST = 12;

const input = document.getElementById("search");
const found = document.getElementById("search-found");
const list = document.getElementById("search-hits");
const about = document.getElementById("search-about");
const data = document.getElementById("search-data");
let hits = [];
let at = -1;
let timer = null;
let turn = null;
let running = null;

/** Search for what is typed; the address keeps it as long as the hits are shown. */
async function search() {
  timer = null;
  turn?.abort();
  const q = input.value.trim();
  go({ q: q || null }, true);
  if (!q) {
    close();
    return;
  }
  turn = new AbortController();
  const { signal } = turn;
  const request = call(["search"], { q, limit: MOST });
  data.setAttribute("href", request);
  try {
    const answer = await get(request, signal);
    if (!signal.aborted) show(answer.hits);
  } catch (error) {
    if (!signal.aborted) show([], error.message);
  }
}

const placeOf = ({ id, cluster }) => `${id} · ${cluster === null ? "in no cluster" : nameOf(cluster)}`;

function show(some, message = "Nothing found.") {
  hits = some;
  at = -1;
  list.replaceChildren(...hits.map((hit, i) => {
    const row = h("li", { role: "option", id: `hit-${i}`, "aria-selected": "false" },
      h("i", { class: "swatch" }),
      h("span", { class: "name", dir: "auto" }, textOf(hit.payload) || String(hit.id)),
      h("span", { class: "quiet", dir: "auto" }, placeOf(hit)));
    row.firstChild.style.background = paint(hit.cluster).fill;
    row.addEventListener("click", () => choose(i));
    return row;
  }));
  list.hidden = !hits.length;
  setText(about, !hits.length ? message : hits.length < MOST ? "" : `The first ${MOST}`);
  found.hidden = false;
  input.setAttribute("aria-expanded", "true");
}

function close() {
  turn?.abort();
  found.hidden = true;
  hits = [];
  at = -1;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

function choose(i) {
  const { id } = hits[i];
  close();
  go({ ...drawer({ point: id }), q: null });
  input.blur();
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

/** Close the hits, and forget the search. */
function leave() {
  clearTimeout(timer);
  timer = null;
  close();
  go({ q: null }, true);
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
    if (found.hidden) input.blur();
    leave();
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
// A press on the hits leaves the focus where it is.
found.addEventListener("mousedown", (event) => event.preventDefault());
input.parentElement.addEventListener("focusout", ({ relatedTarget }) => {
  // To the link of the hits, or to another window, such as the one in which the address is pasted.
  const stays = found.contains(relatedTarget) || relatedTarget === input || document.activeElement === input;
  if (!stays) leave();
});
input.addEventListener("focus", () => {
  if (input.value && found.hidden) running = search();
});

subscribe(["names"], () => hits.forEach((hit, i) => setText(list.children[i].lastChild, placeOf(hit))));
subscribe(["route"], () => {
  const { q } = state.route;
  if (q === undefined) close();
  if (q === undefined || document.activeElement === input) return;
  // An address with a search, or the way back to one.
  input.value = q;
  input.focus();
});
