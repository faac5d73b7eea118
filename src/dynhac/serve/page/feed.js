// What changed: the events of the clusters, newest first. Those that the service does not keep any more
// come from the timeline. Clusters that were born in one update are told together.

import { calm } from "./calm.js";
import { paint } from "./color.js";
import { compact, count, h, keyed, points, setText, timeOfDay } from "./dom.js";
import { MOST } from "./events.js";
import { glide } from "./glide.js";
import { pause } from "./live.js";
import { drawer, go, isolatedName, nameOf, set, state, subscribe } from "./state.js";
import { whenOf } from "./timeline.js";

const SHOWN = 80;
const MANY = 3; // clusters born in one update

const list = document.getElementById("feed-list");
const filter = document.getElementById("feed-filter");
const button = document.getElementById("pause");
const rows = new Map();

const ENDS = { split: "born", merged: "died" };

const FILTERS = {
  all: () => true,
  structure: ({ kind }) => kind !== "grew" && kind !== "shrank",
  open: ({ cluster, others }) => cluster === state.route.cluster || others.includes(state.route.cluster),
};

/** Which events are shown: a name of FILTERS. */
function shownEvents() {
  const { events, cluster } = state.route;
  return events in FILTERS && (events !== "open" || cluster !== undefined) ? events : "all";
}

function entries() {
  const { from, to } = state.route;
  const oldest = Math.min(...state.events.map((event) => event.version));
  const past = (state.timeline?.events ?? [])
    .filter((event) => event.update < oldest)
    .map((event) => ({ ...event, id: `past ${event.update} ${event.kind} ${event.cluster}`, version: event.update }))
    .reverse();
  const inWindow = ({ version }) => from === undefined || to === undefined || (version >= from && version <= to);
  const all = [...state.events, ...past];
  // What was born from a split or ended in a merge is told by that.
  const told = new Set(all.filter(({ kind }) => kind === "split" || kind === "merged")
    .flatMap(({ kind, update, others }) => others.map((other) => `${ENDS[kind]} ${update} ${other}`)));
  const found = [];
  const born = new Map(); // the entry of the clusters that were born in an update
  for (const event of all) {
    if (told.has(`${event.kind} ${event.update} ${event.cluster}`)) continue;
    if (!inWindow(event) || !FILTERS[shownEvents()](event)) continue;
    const alone = event.kind !== "born" || event.others.length > 0;
    if (!alone && born.has(event.update)) {
      born.get(event.update).events.push(event);
      continue;
    }
    if (found.length === SHOWN) break;
    const entry = { key: alone ? event.id : `born ${event.update}`, event, events: [event] };
    if (!alone) born.set(event.update, entry);
    found.push(entry);
  }
  return found;
}

function make() {
  return h("li", { class: "event" },
    h("time", { class: "number quiet" }),
    h("button", { class: "plain" },
      h("i", { class: "swatch" }),
      h("span", { class: "what" }, h("b"), " ", h("span", { dir: "auto" })),
      h("span", { class: "number quiet size" }),
      h("span", { class: "rest quiet" })));
}

/** The first names; `cut`: there are more clusters than these. */
const listed = (clusters, cut = false) => clusters.slice(0, 3).map(isolatedName).join(" · ")
  + (cut ? " and others" : clusters.length > 3 ? ` and ${count(clusters.length - 3)} more` : "");

/** Whether there were more events like these than the page has. */
function isCut(events) {
  const { events: kept, timeline } = state;
  if (!events[0].time) return timeline.lanes.length < timeline.total;
  return kept.length === MOST && events.includes(kept.at(-1));
}

/** What an entry tells: `{what, name, size, rest}`. */
function sentence({ event, events }) {
  if (event.change !== undefined) {
    const { change } = event;
    const sign = change > 0 ? "+" : change < 0 ? "−" : "±";
    return { what: `${sign}${compact(Math.abs(change))}`, name: nameOf(event.cluster), size: event.size, rest: "" };
  }
  if (events.length >= MANY) {
    const cut = isCut(events);
    const clusters = events.map(({ cluster }) => cluster).reverse();
    return { what: "born", name: `${count(events.length)}${cut ? "+" : ""} clusters`, size: null, rest: listed(clusters, cut) };
  }
  const before = { merged: "with", split: "into", born: "from" }[event.kind];
  const others = event.others.length ? `${before ?? "with"} ${listed(event.others)}` : "";
  return { what: event.kind, name: nameOf(event.cluster), size: event.size || null, rest: others };
}

/** Two clusters that were born together are an entry each; more are one. */
function separate(entry) {
  if (entry.event.kind !== "born" || entry.events.length >= MANY) return [entry];
  return entry.events.map((event) => ({ key: event.id, event, events: [event] }));
}

function draw() {
  const shown = entries().flatMap(separate);
  glide(list, () => write(shown));
  const none = document.getElementById("feed-none");
  none.hidden = shown.length > 0 || !state.timeline;
  setText(none, shownEvents() === "all" && state.route.from === undefined ? "Nothing has changed yet." : "No such events.");
}

function write(shown) {
  keyed(list, rows, shown.map(({ key }) => key), make);
  let before = null;
  for (const entry of shown) {
    const { event, events } = entry;
    const [time, line] = rows.get(entry.key).children;
    const [swatch, { children: [kind, name] }, size, rest] = line.children;
    const when = event.time ? timeOfDay(event.time) : whenOf(event.version, "day");
    time.title = event.time ? "" : whenOf(event.version, "full");
    // The time of the entry above holds for this one, too.
    setText(time, when === before ? "" : when);
    before = when;
    const group = events.length >= MANY && event.kind === "born";
    swatch.style.background = group ? "" : paint(event.cluster).fill;
    const told = sentence(entry);
    setText(kind, told.what);
    setText(name, told.name);
    setText(size, told.size === null || told.size === undefined ? "" : compact(told.size));
    setText(rest, told.rest);
    rest.hidden = !told.rest;
    const parts = [`${told.what} ${told.name}`, told.rest, told.size ? points(told.size) : ""];
    line.setAttribute("aria-label", parts.filter(Boolean).join(", "));
    line.onclick = () => go(drawer({ cluster: event.cluster }));
    line.onpointerenter = () => set({ highlight: group ? null : event.cluster });
    line.onpointerleave = () => set({ highlight: null });
  }
}

const calmly = calm(list, draw);

filter.addEventListener("change", () => go({ events: filter.value === "all" ? null : filter.value }));
button.addEventListener("click", () => pause(!state.paused));

subscribe(["events", "timeline", "route", "names", "theme"], calmly);
subscribe(["route"], () => {
  filter.querySelector("[value=open]").disabled = state.route.cluster === undefined;
  if (filter.value !== shownEvents()) {
    filter.value = shownEvents();
    draw();
  }
});
subscribe(["paused", "waiting"], () => {
  button.setAttribute("aria-pressed", String(state.paused));
  setText(button, state.paused ? `Go on${state.waiting ? ` (${count(state.waiting)} new)` : ""}` : "Pause");
  document.body.classList.toggle("paused", state.paused);
});
