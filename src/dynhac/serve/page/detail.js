// The drawer: a cluster, a point, or why two points are together. The page stays behind it.

import { hasToken, openData } from "./api.js";
import { calm } from "./calm.js";
import { paint } from "./color.js";
import { drawCluster } from "./detail_cluster.js";
import { title } from "./detail_parts.js";
import { drawPoint, drawWhy } from "./detail_point.js";
import { h } from "./dom.js";
import { refresh } from "./refresh.js";
import { drawer, go, nameOf, state, subscribe, tell } from "./state.js";

const panel = document.getElementById("detail");
const content = document.getElementById("detail-content");
const data = document.getElementById("detail-data");
let shown = null;
let opener = null;

const VIEWS = { cluster: drawCluster, point: drawPoint, why: drawWhy, error: drawError };

/** What is told where there is no answer: what became of a cluster, as far as it is known. */
function drawError({ status, message, route }) {
  const parts = [title(status === 404 ? "Not there any more" : "No answer"), h("p", {}, message)];
  const seen = (state.timeline?.events ?? []).filter(
    ({ kind, others }) => kind === "merged" && others.includes(route.cluster),
  );
  if (seen.length) {
    const { cluster } = seen.at(-1);
    parts.push(h("p", {}, "It became part of ",
      h("button", { class: "chip", onclick: () => go(drawer({ cluster })) }, nameOf(cluster))));
  }
  return parts;
}

function draw() {
  const { detail } = state;
  if (!detail) {
    if (panel.hidden) return;
    if (panel.contains(document.activeElement)) opener?.focus({ preventScroll: true });
    panel.hidden = true;
    shown = null;
    return;
  }
  const another = detail.key !== shown;
  if (another && panel.hidden) opener = document.activeElement;
  const parts = VIEWS[detail.kind](detail, !another);
  if (another) content.replaceChildren();
  refresh(content, parts);
  const cluster = detail.kind === "cluster" ? detail.cluster.cluster : (detail.point?.cluster ?? null);
  panel.style.setProperty("--mark", paint(cluster).fill);
  data.hidden = !detail.request;
  if (detail.request) data.href = detail.request;
  panel.hidden = false;
  shown = detail.key;
  if (another) {
    panel.scrollTop = 0;
    content.querySelector("h2").focus({ preventScroll: true });
  }
}

export function closeDetail() {
  go(drawer({}));
}

document.getElementById("detail-close").addEventListener("click", closeDetail);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.data");
  if (!link || !hasToken()) return;
  event.preventDefault();
  openData(link.getAttribute("href")).catch(tell);
});

const calmly = calm(panel, draw);

subscribe(["detail"], () => {
  const { detail } = state;
  // What people ask for is there at once; news wait for the pointer.
  if (!detail || detail.asked || detail.key !== shown) draw();
  else calmly();
});
subscribe(["names", "theme"], calmly);
