// The page: all views, the keys that work everywhere, and the start.

import "./header.js";
import "./icicle.js";
import "./twin.js";
import "./clusters.js";
import "./timeline.js";
import "./feed.js";
import "./search.js";
import { closeDetail } from "./detail.js";
import { firstDetail, start } from "./live.js";
import { go, readRoute, state, subscribe } from "./state.js";

const typing = (element) => element.matches("input, select, textarea, [contenteditable]");

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    const { route } = state;
    if (route.q !== undefined) go({ q: null });
    else if (state.detail) closeDetail();
    else if (route.from !== undefined) go({ from: null, to: null });
    else if (route.skip !== undefined) go({ skip: null });
    else if (route.node !== undefined) go({ node: state.tree?.path.at(-2)?.node ?? null });
  } else if (event.key === "/" && !typing(event.target)) {
    event.preventDefault();
    document.getElementById("search").focus();
  } else if (event.key === "?" && !typing(event.target)) {
    document.getElementById("keys").showModal();
  }
});
document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());

subscribe(["tree"], () => {
  if (state.tree) document.getElementById("tree-data").href = state.tree.request;
});

const PLACES = { clusters: ["clusters"], tree: ["hierarchy"], timeline: ["time", "feed"] };
for (const [part, sections] of Object.entries(PLACES)) {
  subscribe([part], () => sections.forEach((id) => document.getElementById(id).classList.remove("loading")));
}

let complete = false;
subscribe(["tree", "clusters", "timeline"], () => {
  // Views are drawn in the order of their subscription: this one comes after the others.
  if (complete || !state.tree || !state.clusters || !state.timeline) return;
  complete = true;
  performance.mark("first view");
});

readRoute();
start().then(firstDetail);
