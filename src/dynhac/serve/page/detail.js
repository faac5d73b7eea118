// The drawer: a cluster, a point, or why two points are together. The page stays behind it.

import { hasToken, openData } from "./api.js";
import { paint } from "./color.js";
import { drawCluster } from "./detail_cluster.js";
import { drawPoint, drawWhy } from "./detail_point.js";
import { h } from "./dom.js";
import { drawer, go, nameOf, state, subscribe } from "./state.js";

const panel = document.getElementById("detail");
const content = document.getElementById("detail-content");
const data = document.getElementById("detail-data");
const LONG = 80; // letters of a heading that is written smaller
let shown = null;
let opener = null;

const VIEWS = { cluster: drawCluster, point: drawPoint, why: drawWhy, error: drawError };

/** What is told where there is no answer: what became of a cluster, as far as it is known. */
function drawError({ status, message, route }) {
  const parts = [h("h2", { tabindex: "-1" }, status === 404 ? "Not there any more" : "No answer"), h("p", {}, message)];
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
    if (!panel.hidden) {
      panel.hidden = true;
      shown = null;
      opener?.focus?.({ preventScroll: true });
    }
    return;
  }
  const another = detail.key !== shown;
  if (another && panel.hidden) opener = document.activeElement;
  // What people type into or have unfolded is kept while the same thing is shown.
  if (!another && content.contains(document.activeElement) && document.activeElement.matches("input")) return;
  const top = panel.scrollTop;
  content.replaceChildren(...VIEWS[detail.kind](detail, !another));
  const title = content.querySelector("h2");
  title.classList.toggle("long", title.textContent.length > LONG);
  const cluster = detail.kind === "cluster" ? detail.cluster.cluster : (detail.point?.cluster ?? null);
  panel.style.setProperty("--mark", paint(cluster).fill);
  data.hidden = !detail.request;
  if (detail.request) data.href = detail.request;
  panel.hidden = false;
  shown = detail.key;
  panel.scrollTop = another ? 0 : top;
  if (another) title.focus({ preventScroll: true });
}

export function closeDetail() {
  go(drawer({}));
}

document.getElementById("detail-close").addEventListener("click", closeDetail);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.data");
  if (!link || !hasToken()) return;
  event.preventDefault();
  openData(link.getAttribute("href"));
});

subscribe(["detail", "names", "theme"], draw);
