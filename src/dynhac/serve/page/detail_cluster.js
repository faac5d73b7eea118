// The drawer of a cluster: numbers, representatives, near clusters, history, members.

import { paint } from "./color.js";
import { clusterButton, heading, link, nodeButton, title } from "./detail_parts.js";
import { fetchMembers, findMembers } from "./details.js";
import { count, drawSparkline, h, points, setText, similarity, sparkline, textOf } from "./dom.js";
import { drawer, go, nameOf, set, state, tell } from "./state.js";
import { whenOf } from "./timeline.js";

const NEAREST = 5;

let first = null; // the member that was chosen to be explained
const choices = new WeakMap(); // the buttons that choose one -> its id

/** A point as a row: its text, its id, and a button that chooses it for "why". */
function pointRow({ id, payload }) {
  const text = textOf(payload);
  const why = h("button", { class: "quiet small choice", title: "Choose two: why they are together" });
  choices.set(why, id);
  showChoice(why);
  why.addEventListener("click", () => {
    if (first !== null && first !== id) {
      go(drawer({ a: first, b: id }));
      return;
    }
    first = first === id ? null : id;
    document.querySelectorAll("#detail .choice").forEach(showChoice);
  });
  return h("li", { class: "point" },
    link(drawer({ point: id }),
      h("span", { dir: "auto" }, text || String(id)),
      h("span", { class: "quiet id", dir: "auto" }, text ? String(id) : "")),
    why);
}

function showChoice(why) {
  const chosen = choices.get(why) === first;
  why.classList.toggle("chosen", chosen);
  why.setAttribute("aria-pressed", String(chosen));
  setText(why, first === null || chosen ? "Why?" : "… and this?");
}

function fact(label, value, title = null) {
  return h("div", { title }, h("dt", {}, label), h("dd", { class: "number" }, value));
}

export function drawCluster({ cluster: found, members }, again) {
  if (!again) first = null;
  const { cluster } = found;
  const trend = sparkline([], 320, 48);
  drawSparkline(trend, found.trend, 320, 48);
  const changed = found.trend.some((size) => size !== found.trend[0]);
  trend.style.color = paint(cluster).fill;
  const past = history(cluster);
  return [
    h("p", { class: "quiet kind" }, `Cluster ${cluster}`),
    title(nameOf(cluster)),
    h("dl", { class: "facts" },
      fact("points", count(found.size)),
      fact("cohesion", similarity(found.cohesion), "The mean similarity of its pairs of points"),
      fact("density", similarity(found.density), "The share of its pairs of points that are neighbours"),
      fact("together up to", similarity(found.similarity), "At higher similarities it is divided")),
    changed ? trend : null,
    h("p", {}, nodeButton("chip", found.node_id, "Show in the hierarchy")),
    heading("Representatives"),
    h("ul", { class: "points" }, found.representatives.map((point) => pointRow(point))),
    ...(found.nearest.length ? [heading("Nearest clusters"), nearest(found)] : [null, null]),
    ...(past.length ? [heading("History"), h("ul", { class: "history" }, past)] : [null, null]),
    heading("Members"),
    memberList(cluster, members),
  ];
}

function nearest({ nearest: near }) {
  const most = near[0].linkage || 1;
  return h("ul", { class: "bars" }, near.slice(0, NEAREST).map(({ id, linkage }) => {
    const bar = h("i", { class: "bar" });
    bar.style.width = `${Math.max((linkage / most) * 100, 1)}%`;
    bar.style.background = paint(id).fill;
    return h("li", {}, clusterButton(id), h("span", { class: "number quiet" }, similarity(linkage)), bar);
  }));
}

function history(cluster) {
  const events = (state.timeline?.events ?? []).filter(
    // What was born from it is told by the split.
    (event) => event.cluster === cluster || (event.kind !== "born" && event.others.includes(cluster)),
  );
  return events.slice(-12).reverse().map((event) => {
    const own = event.cluster === cluster;
    const others = own ? event.others.slice(0, 4) : [event.cluster];
    const words = own ? { merged: "merged with", split: "split into", born: others.length ? "born from" : "born" } : { merged: "merged into", split: "split from" };
    return h("li", {}, h("time", { class: "number quiet" }, whenOf(event.update, "day")), " ",
      words[event.kind] ?? event.kind, " ", others.map(clusterButton));
  });
}

function memberList(cluster, { members, total, next }) {
  const list = h("ul", { class: "points" }, members.map((member) => pointRow(member)));
  const more = h("button", { class: "chip" }, `Show more (${count(total - members.length)} left)`);
  more.hidden = next === null;
  more.addEventListener("click", async () => {
    const page = await fetchMembers(cluster, members.length).catch(tell);
    if (!page || state.detail?.cluster?.cluster !== cluster) return;
    const all = { ...page, members: [...members, ...page.members] };
    set({ detail: { ...state.detail, members: all, asked: true } });
  });
  const search = h("input", { type: "search", placeholder: `Search in ${points(total)}`, "aria-label": "Search members" });
  let turn = 0;
  search.addEventListener("input", async () => {
    turn += 1;
    const mine = turn;
    const text = search.value.trim();
    const found = text ? await findMembers(cluster, text).catch(tell) : members;
    if (mine !== turn || !found) return;
    list.replaceChildren(...found.map((member) => pointRow(member)));
    if (!found.length) list.append(h("li", { class: "quiet" }, "Nothing found."));
    more.hidden = Boolean(text) || next === null;
  });
  return h("div", {}, search, list, more);
}
