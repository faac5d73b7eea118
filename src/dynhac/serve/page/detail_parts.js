// What the drawers of a cluster, of a point and of two points are made of.

import { paint } from "./color.js";
import { h } from "./dom.js";
import { drawer, go, nameOf } from "./state.js";

const LONG = 80; // letters of a title that is written smaller

export const title = (text) =>
  h("h2", { tabindex: "-1", dir: "auto", class: text.length > LONG && "long" }, text);

export const heading = (text) => h("h3", {}, text);

export function swatch(cluster) {
  const element = h("i", { class: "swatch" });
  element.style.background = paint(cluster).fill;
  return element;
}

/** A button that goes to another view. `data-to` is for refresh(), which sees attributes only. */
export const link = (to, ...children) =>
  h("button", { class: "plain", "data-to": JSON.stringify(to), onclick: () => go(to) }, children);

export function clusterButton(cluster) {
  return link(drawer({ cluster }), swatch(cluster), h("span", { dir: "auto" }, nameOf(cluster)));
}

/** A button that shows a node in the hierarchy. */
export const nodeButton = (kind, node, text) =>
  h("button", { class: kind, "data-to": node, onclick: () => showNode(node) }, text);

/** Where the drawer covers all of the page, it closes. */
function showNode(node) {
  const covered = matchMedia("(max-width: 799px)").matches;
  go({ ...(covered ? drawer({}) : {}), node, skip: null });
  if (covered) document.getElementById("hierarchy").scrollIntoView();
}
