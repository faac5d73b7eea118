// Elements, and texts for people. What comes from the service is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: properties (`on…` are listeners, `data…` and `aria-…` attributes), then children. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Set the text of an element, if it is another one: selections and screen readers stay calm. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Make the children of a parent those of `keys`, in that order; elements are kept by key. */
export function keyed(parent, elements, keys, make) {
  const wanted = new Set(keys);
  for (const [key, element] of elements) {
    if (!wanted.has(key)) {
      element.remove();
      elements.delete(key);
    }
  }
  let place = parent.firstChild;
  for (const key of keys) {
    let element = elements.get(key);
    if (!element) {
      element = make(key);
      element.classList.add("fresh");
      element.addEventListener("animationend", ({ target }) => target.classList.remove("fresh"), { once: true });
      elements.set(key, element);
    }
    if (element === place) place = place.nextSibling;
    else parent.insertBefore(element, place);
  }
}

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const dayAndMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const monthAndYear = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const count = (n) => whole.format(n);
export const compact = (n) => (Math.abs(n) < 10_000 ? whole.format(n) : short.format(n));
export const points = (n) => (n === 1 ? "1 point" : `${count(n)} points`);

/** A similarity with as many digits as are of use. */
export function similarity(value) {
  if (value === null || value === undefined) return "–";
  if (value === Infinity) return "point";
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential(1).replace(".0e", "e");
  if (value >= 100) return whole.format(Math.round(value));
  return value < 0.1 ? String(Number(value.toPrecision(2))) : value.toFixed(2);
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

/** How long ago something was. */
export function age(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export const timeOfDay = (seconds) => clock.format(new Date(seconds * 1000));

/** A time of the service (ISO text in UTC, or a number) as text.
 *
 * "clock": the time of the day, "day": the day if it is not today, "full": both.
 */
export function moment(value, form) {
  if (typeof value === "number") return whole.format(value);
  const when = new Date(value.slice(0, 23) + "Z");
  if (Number.isNaN(when.getTime())) return value;
  const now = new Date();
  if (form === "clock" || (form === "day" && when.toDateString() === now.toDateString())) return clock.format(when);
  if (form === "full") return date.format(when);
  return (when.getFullYear() === now.getFullYear() ? dayAndMonth : monthAndYear).format(when);
}

/** Whether a time of the service is of another day than today. */
export const notToday = (value) => typeof value === "string" && moment(value, "day") !== moment(value, "clock");

const FIELDS = ["title", "headline", "text", "name", "label", "summary", "body"];

/** The text of a point: a well-known field of its payload, or the first one that is text. */
export function textOf(payload) {
  if (!payload || !Object.keys(payload).length) return "";
  for (const field of FIELDS) if (typeof payload[field] === "string") return payload[field];
  const text = Object.values(payload).find((value) => typeof value === "string");
  return text ?? JSON.stringify(payload);
}

/** A small line of sizes. */
export function sparkline(sizes, width = 64, height = 20) {
  const line = svg("svg", {
    class: "sparkline", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true",
    preserveAspectRatio: "none",
  });
  line.append(svg("path", { class: "area" }), svg("path", { class: "line" }));
  drawSparkline(line, sizes, width, height);
  return line;
}

export function drawSparkline(line, sizes, width = 64, height = 20) {
  if (sizes.length < 2) return;
  const most = Math.max(...sizes, 1);
  // What has never changed is a line in the middle.
  const flat = sizes.every((size) => size === sizes[0]);
  const yOf = (size) => (flat ? height / 2 : height - 1.5 - (size / most) * (height - 3));
  const steps = sizes.map((size, i) => {
    const x = (i / (sizes.length - 1)) * width;
    return `${x.toFixed(1)} ${yOf(size).toFixed(1)}`;
  });
  const path = `M${steps.join("L")}`;
  line.classList.toggle("flat", flat);
  line.children[0].setAttribute("d", flat ? "" : `${path}L${width} ${height}L0 ${height}Z`);
  line.children[1].setAttribute("d", path);
}
