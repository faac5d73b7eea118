// What changed: the events of the clusters, newest first. Events before the page was opened come
// from the timeline. Growing and shrinking of one cluster in a row is one entry.

import { calm } from "./calm.js";
import { paint } from "./color.js";
import { compact, count, h, keyed, points, setText, timeOfDay } from "./dom.js";
import { pause } from "./live.js";
import { drawer, go, nameOf, set, state, subscribe } from "./state.js";
import { whenOf } from "./timeline.js";

const SHOWN = 80;

const list = document.getElementById("feed-list");
const filter = document.getElementById("feed-filter");
const button = document.getElementById("pause");
const rows = new Map();

const FILTERS = {
  all: () => true,
  structure: ({ kind }) => kind !== "grew" && kind !== "shrank",
  open: ({ cluster, others }) => cluster === state.route.cluster || others.includes(state.route.cluster),
};

function entries() {
  const { from, to } = state.route;
  const oldest = Math.min(...state.events.map((event) => event.version));
  const past = (state.timeline?.events ?? [])
    .filter((event) => event.update < oldest)
    .map((event) => ({ ...event, id: `past ${event.update} ${event.kind} ${event.cluster}`, version: event.update }))
    .reverse();
  const inWindow = ({ version }) => from === undefined || to === undefined || (version >= from && version <= to);
  const all = [...state.events, ...past];
  // A cluster that split from another is told by the split.
  const told = new Set(all.filter(({ kind }) => kind === "split")
    .flatMap((event) => event.others.map((other) => `${event.update} ${other}`)));
  const found = [];
  for (const event of all) {
    if (event.kind === "born" && told.has(`${event.update} ${event.cluster}`)) continue;
    if (!inWindow(event) || !FILTERS[state.filter](event)) continue;
    const last = found.at(-1);
    const change = event.kind === "grew" ? event.count : event.kind === "shrank" ? -event.count : null;
    if (last && change !== null && last.change !== null && last.event.cluster === event.cluster) {
      last.change += change;
      last.key = event.id;
      continue;
    }
    if (found.length === SHOWN) break;
    found.push({ key: event.id, event, change });
  }
  return found;
}

function make() {
  return h("li", { class: "event" },
    h("time", { class: "number quiet" }),
    h("button", { class: "plain" }, h("i", { class: "swatch" }), h("b"), " ", h("span", { dir: "auto" }),
      h("span", { class: "quiet" })));
}

function sentence({ event, change }) {
  const others = event.others.slice(0, 2).map(nameOf).join(", ")
    + (event.others.length > 2 ? ` and ${event.others.length - 2} more` : "");
  if (change !== null) {
    const sign = change > 0 ? "+" : change < 0 ? "−" : "±";
    return [`${sign}${count(Math.abs(change))}`, ` now ${compact(event.size)}`];
  }
  const size = event.size ? `, ${points(event.size)}` : "";
  if (event.kind === "merged") return ["merged", others ? ` with ${others}${size}` : size];
  if (event.kind === "split") return ["split", others ? ` into ${others}${size}` : size];
  if (event.kind === "born" && others) return ["born", ` from ${others}${size}`];
  return [event.kind, size];
}

function draw() {
  const shown = entries();
  keyed(list, rows, shown.map(({ key }) => key), make);
  for (const entry of shown) {
    const { event } = entry;
    const [time, line] = rows.get(entry.key).children;
    const [swatch, kind, name, rest] = line.children;
    setText(time, event.time ? timeOfDay(event.time) : whenOf(event.update));
    swatch.style.background = paint(event.cluster).fill;
    const [what, more] = sentence(entry);
    setText(kind, what);
    setText(name, nameOf(event.cluster));
    setText(rest, more);
    line.onclick = () => go(drawer({ cluster: event.cluster }));
    line.onpointerenter = () => set({ highlight: event.cluster });
    line.onpointerleave = () => set({ highlight: null });
  }
  document.getElementById("feed-none").hidden = shown.length > 0;
}

const calmly = calm(list, draw);

filter.addEventListener("change", () => {
  set({ filter: filter.value });
  draw();
});
button.addEventListener("click", () => pause(!state.paused));

subscribe(["events", "timeline", "route", "names", "theme"], calmly);
subscribe(["route"], () => {
  const option = filter.querySelector("[value=open]");
  option.disabled = state.route.cluster === undefined;
  if (option.disabled && state.filter === "open") {
    filter.value = "all";
    set({ filter: "all" });
  }
});
subscribe(["paused", "waiting"], () => {
  button.setAttribute("aria-pressed", String(state.paused));
  setText(button, state.paused ? `Go on${state.waiting ? ` (${count(state.waiting)} new)` : ""}` : "Pause");
  document.body.classList.toggle("paused", state.paused);
});
