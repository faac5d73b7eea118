// The drawer of a point (payload, neighbours, path) and of two points: why they are together.

import { paint } from "./color.js";
import { clusterButton, heading, link, nodeButton, swatch, title } from "./detail_parts.js";
import { h, points, similarity, svg, textOf } from "./dom.js";
import { drawer, go } from "./state.js";

const STEPS = 12;

/** Two fields that ask for another pair. */
function pairForm(a, b) {
  const fields = [["a", a], ["b", b]].map(([name, id]) =>
    h("input", { name, value: id ?? "", placeholder: "id of a point", "aria-label": `Point ${name}`, required: true }));
  const form = h("form", { class: "pair" }, fields, h("button", { class: "chip" }, "Explain"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(drawer({ a: fields[0].value, b: fields[1].value }));
  });
  return form;
}

/** The fields of a payload but the one that is the heading. */
function payloadList(payload, text) {
  if (!payload) return h("p", { class: "quiet" }, "No payload.");
  const fields = Object.entries(payload).filter(([, value]) => value !== text);
  if (!fields.length) return null;
  return h("dl", { class: "payload" }, fields.map(([name, value]) => [
    h("dt", { dir: "auto" }, name),
    h("dd", { dir: "auto" }, typeof value === "string" ? value : JSON.stringify(value)),
  ]));
}

export function drawPoint({ point, trail }) {
  const text = textOf(point.payload);
  const near = point.neighbors.slice(0, 10).map((other) =>
    h("li", { class: "point" },
      link(drawer({ point: other.id }),
        h("span", { dir: "auto" }, textOf(other.payload) || String(other.id)),
        h("span", { class: "quiet id number" }, `similarity ${similarity(other.similarity)}`)),
      h("button", { class: "quiet small", onclick: () => go(drawer({ a: point.id, b: other.id })) }, "Why?")));
  return [
    h("p", { class: "quiet kind" }, "Point ", h("span", { class: "id", dir: "auto" }, String(point.id))),
    title(text || String(point.id)),
    h("p", {}, point.cluster === null ? h("span", { class: "quiet" }, "In no cluster") : clusterButton(point.cluster)),
    payloadList(point.payload, text),
    heading("Path through the hierarchy"),
    path(trail),
    ...(near.length ? [heading("Nearest points"), h("ul", { class: "points" }, near)] : [null, null]),
    heading("Why is it (not) with another point?"),
    pairForm(point.id, null),
  ];
}

function path(trail) {
  const shown = trail.length > STEPS ? [...trail.slice(0, 3), null, ...trail.slice(-(STEPS - 4))] : trail;
  return h("ol", { class: "path" }, shown.map((node) => {
    if (node === null) return h("li", { class: "quiet" }, `${trail.length - STEPS + 1} more steps`);
    const label = node.point !== null ? "this point" : points(node.size);
    const note = node.together_up_to === null ? "" : `together up to ${similarity(node.together_up_to)}`;
    return h("li", {}, swatch(node.cluster),
      node.point !== null ? h("span", {}, label)
        : nodeButton("plain", node.node, label),
      h("span", { class: "quiet number" }, note));
  }));
}

export function drawWhy({ why }) {
  const one = why.cluster_a !== null && why.cluster_a === why.cluster_b;
  const verdict = one ? "They are in one cluster" : why.together ? "They are not in one cluster" : "They never meet";
  const side = (name) => {
    const id = why[name];
    const cluster = why[`cluster_${name}`];
    return h("div", { class: "side" },
      link(drawer({ point: id }),
        h("b", { dir: "auto" }, textOf(why[`payload_${name}`]) || String(id)),
        h("span", { class: "quiet id", dir: "auto" }, String(id))),
      cluster === null ? h("span", { class: "quiet" }, "in no cluster") : clusterButton(cluster));
  };
  const meet = `similarity ${similarity(why.similarity)}, in a group of ${points(why.size ?? 0)}`;
  const sentence = one ? `They come together at ${meet}, inside of the cluster.`
    : why.together ? `They come together only at ${meet}: this is no cluster, but several.`
    : "No chain of neighbours leads from one to the other.";
  return [
    h("p", { class: "quiet kind" }, "Two points"),
    title(verdict),
    h("p", { class: "text" }, sentence),
    h("div", { class: "sides" }, side("a"), side("b")),
    picture(why),
    why.node_id === null ? null
      : h("p", {}, nodeButton("chip", why.node_id, "Show where they meet")),
    h("details", {}, h("summary", {}, "All merges on the way"), h("p", { class: "text" }, why.text)),
    heading("Another pair"),
    pairForm(why.a, why.b),
  ];
}

/** Both ways up to where they meet: a step is as high as its similarity is low. */
function picture({ path_a: a, path_b: b, cluster_a, cluster_b, together }) {
  const [width, height] = [320, 160];
  const sims = [...a, ...b].map((step) => step.similarity);
  if (!sims.length) return h("span");
  const [low, high] = [Math.min(...sims), Math.max(...sims, 1e-12)];
  const y = (value) => 16 + ((value - low) / Math.max(high - low, 1e-12)) * (height - 56);
  const line = (steps, from, to, cluster) => {
    const places = [[from, height - 16]];
    steps.forEach((step, i) => {
      const x = from + ((to - from) * (i + 1)) / steps.length;
      places.push([places.at(-1)[0], y(step.similarity)], [x, y(step.similarity)]);
    });
    const path = svg("path", { d: `M${places.map((place) => place.join(" ")).join("L")}` });
    path.style.stroke = paint(cluster).fill;
    const end = svg("circle", { cx: from, cy: height - 16, r: 5 });
    end.style.fill = paint(cluster).fill;
    return [path, end];
  };
  const middle = together ? width / 2 : null;
  return svg("svg", { class: "why", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    line(a, 16, middle ?? width / 2 - 24, cluster_a), line(b, width - 16, middle ?? width / 2 + 24, cluster_b));
}
