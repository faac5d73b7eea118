// The list of the clusters, largest first: colour, name, size, trend and one text.

import { call } from "./api.js";
import { calm } from "./calm.js";
import { paint } from "./color.js";
import { compact, count, drawSparkline, h, keyed, points, setText, sparkline, textOf } from "./dom.js";
import { glide } from "./glide.js";
import { moreClusters } from "./live.js";
import { drawer, go, hrefOf, nameOf, set, state, subscribe } from "./state.js";

const ORDER = 1000; // milliseconds between two changes of order

const list = document.getElementById("clusters-list");
const about = document.getElementById("clusters-about");
const more = document.getElementById("clusters-more");
const none = document.getElementById("clusters-none");
const rows = new Map();
const entries = new Map(); // cluster -> what the list tells of it
let ordered = -Infinity;
let timer = null;

function make(cluster) {
  const row = h("li", {},
    h("a", { class: "cluster", "data-cluster": cluster, tabindex: "-1" },
      h("i", { class: "swatch" }),
      h("span", { class: "name", dir: "auto" }),
      h("span", { class: "number size" }),
      h("span", { class: "trend" }),
      h("span", { class: "text quiet", dir: "auto" })));
  row.firstChild.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(drawer({ cluster }));
  });
  row.addEventListener("pointerenter", () => set({ highlight: cluster }));
  row.addEventListener("pointerleave", () => set({ highlight: null }));
  seen.observe(row);
  return row;
}

// The list may be long: only the rows that are seen, and those next to them, have a trend.
const seen = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) {
    if (!target.isConnected) seen.unobserve(target);
    const link = target.firstChild;
    link.querySelector(".trend").replaceChildren(...(isIntersecting ? [sparkline([])] : []));
    drawTrend(link);
  }
}, { root: list, rootMargin: "96px 0px" });

function drawTrend(link) {
  const line = link.querySelector(".sparkline");
  const entry = entries.get(Number(link.dataset.cluster));
  if (line && entry) drawSparkline(line, entry.trend);
}

/** What stays in its place: the values. */
function drawValues() {
  const answer = state.clusters;
  if (!answer) return;
  entries.clear();
  for (const entry of answer.clusters) {
    entries.set(entry.cluster, entry);
    const link = rows.get(entry.cluster)?.firstChild;
    if (!link) continue;
    const [swatch, name, size, trend, text] = link.children;
    const { fill } = paint(entry.cluster);
    swatch.style.background = fill;
    trend.style.color = fill;
    setText(name, nameOf(entry.cluster));
    setText(size, compact(entry.size));
    drawTrend(link);
    const first = entry.representatives[0];
    setText(text, first ? textOf(first.payload) || `typical: ${first.id}` : "");
    link.href = hrefOf({ ...state.route, ...drawer({ cluster: entry.cluster }) });
    link.setAttribute("aria-label", `${nameOf(entry.cluster)}, ${points(entry.size)}`);
    link.setAttribute("aria-current", String(state.route.cluster === entry.cluster));
  }
  const parts = [];
  const least = state.stats?.watches?.[0]?.min_size ?? 1;
  none.hidden = answer.clusters.length > 0;
  setText(none, least > 1 ? `No cluster yet: one has at least ${points(least)}.` : "No cluster yet.");
  if (answer.unclustered && answer.total) parts.push(`${points(answer.unclustered)} in no cluster`);
  const old = state.stats && answer.update_number < state.stats.update_number;
  if (old && answer.age_seconds > 2) parts.push(`${Math.round(answer.age_seconds)} s ago`);
  setText(about, parts.join(" · "));
  const left = answer.total - answer.clusters.length;
  more.hidden = left <= 0 || answer.clusters.length >= 1000;
  setText(more, `Show more (${count(left)} left)`);
}

function drawOrder() {
  const wait = ordered + ORDER - performance.now();
  if (wait > 0) {
    timer ??= setTimeout(() => {
      timer = null;
      calmly();
    }, wait);
    return;
  }
  ordered = performance.now();
  const focused = document.activeElement;
  glide(list, () => keyed(list, rows, state.clusters.clusters.map((entry) => entry.cluster), make));
  const links = [...list.querySelectorAll("a")];
  if (!links.some((link) => link.tabIndex === 0) && links.length) links[0].tabIndex = 0;
  if (list.contains(focused)) focused.focus();
  drawValues();
}

const calmly = calm(list, drawOrder);

list.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const links = [...list.querySelectorAll("a")];
  const next = links[links.indexOf(document.activeElement) + step];
  if (!next) return;
  document.activeElement.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  set({ highlight: Number(next.dataset.cluster) });
});
list.addEventListener("focusout", () => set({ highlight: null }));
more.addEventListener("click", moreClusters);
document.getElementById("clusters-data").href = call(["clusters"], { limit: 100 });

subscribe(["clusters"], () => {
  drawValues();
  calmly();
});
subscribe(["names", "theme", "route"], drawValues);
