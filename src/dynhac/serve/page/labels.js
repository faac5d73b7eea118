// What is written on the blocks of the icicle: the name of a cluster and its size, or how many points
// and which clusters a branch has. A text is shown as far as it fits, a number as a whole or not.

import { compact, points } from "./dom.js";
import { clustersIn } from "./layout.js";
import { isolatedName, nameOf } from "./state.js";

const FONT = "system-ui, sans-serif";
const NAMED = `600 14px ${FONT}`;
const SMALL = `12px ${FONT}`;
const LINE = 18;
const PAD = 8;
const LEAST = 40; // pixels for a text that does not fit
// A list of names, which are isolated, is written from the left.
const RIGHT_TO_LEFT = /^[^\p{L}\u2068]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u;

/** Write on a block of the icicle, which is drawn at `place`, in a colour and a quieter one. */
export function drawLabel(context, block, place, ink, quiet) {
  const { node } = block;
  context.textBaseline = "middle";
  context.fillStyle = ink;
  if (node.rest) drawName(context, `${points(node.size)} in ${node.next === null ? "small" : "more"} branches`, "", place, SMALL);
  else if (node.cluster !== null && block.depth === 0) {
    drawName(context, nameOf(node.cluster), node.size > 1 ? points(node.size) : "", place, NAMED);
  } else drawCount(context, block, place, quiet);
}

/** How many points there are, and where there is room, of which clusters. */
function drawCount(context, { node }, place, quiet) {
  context.font = SMALL;
  const room = place.w - 2 * PAD;
  const single = node.point !== null;
  const long = single ? String(node.point) : points(node.size);
  const text = single || context.measureText(long).width <= room ? long : compact(node.size);
  const fits = single || context.measureText(text).width <= room;
  if (!fits || place.w < 30 || place.h < 14) return;
  const top = Math.min(place.h / 2, LINE);
  write(context, fitted(context, text, room), place.x + PAD, place.y + top, room);
  const inside = node.cluster === null && !single ? clustersIn(node) : [];
  const lines = Math.min(Math.floor((place.h - top - 14) / LINE), 3);
  if (lines < 1 || place.w < 88 || !inside.length) return;
  context.fillStyle = quiet;
  wrapped(context, inside.slice(0, 12).map(isolatedName).join(" · "), room, lines, " · ")
    .forEach((line, i) => write(context, line, place.x + PAD, place.y + top + (i + 1) * LINE, room));
}

/** A name in up to three lines, and the size below it; upright on narrow blocks. */
function drawName(context, name, about, place, font) {
  context.font = font;
  const tight = font === NAMED && place.w < 88 && context.measureText(name).width > place.w - 2 * PAD;
  if (tight) context.font = `600 ${SMALL}`;
  const longest = font === SMALL ? Infinity : Math.max(...name.split(" ").map((word) => context.measureText(word).width));
  const upright = longest > place.w - 2 * PAD && place.w < 96 && place.h >= 56;
  if (!upright && place.w < 44 && longest > place.w - 2 * PAD) return;
  context.save();
  context.translate(place.x, place.y);
  let [across, along] = [place.h, place.w - 2 * PAD];
  if (upright) {
    // From the top down, beginning at the right side.
    context.translate(place.w, 0);
    context.rotate(Math.PI / 2);
    [across, along] = [place.w, place.h - 2 * PAD];
  }
  const room = Math.floor((across - 10) / LINE); // lines
  const lines = wrapped(context, name, along, Math.min(Math.max(room, 1), 3));
  const top = room < 2 ? Math.min(across / 2, LINE) : LINE;
  lines.forEach((line, i) => write(context, line, PAD, top + i * LINE, along));
  context.font = SMALL;
  const below = top + lines.length * LINE;
  const whole = context.measureText(about).width <= along;
  const right = RIGHT_TO_LEFT.test(name);
  if (about && whole && below + 8 < across) write(context, about, PAD, below, along, right);
  context.restore();
}

/** Write a text, from the right where its script is, or that of what it belongs to. */
function write(context, text, x, y, room, right = RIGHT_TO_LEFT.test(text)) {
  context.direction = RIGHT_TO_LEFT.test(text) ? "rtl" : "ltr";
  context.textAlign = right ? "right" : "left";
  context.fillText(text, right ? x + room : x, y);
}

/** A text in so many lines at most, broken between words. */
function wrapped(context, text, room, most, between = " ") {
  const lines = [];
  let line = "";
  const words = text.slice(0, 240).split(between);
  while (words.length) {
    const longer = line ? `${line}${between}${words[0]}` : words[0];
    if (lines.length + 1 === most) {
      return [...lines, fitted(context, [line, ...words].filter(Boolean).join(between), room)].filter(Boolean);
    }
    if (line && context.measureText(longer).width > room) {
      lines.push(fitted(context, line, room));
      line = "";
    } else {
      line = longer;
      words.shift();
    }
  }
  return [...lines, fitted(context, line, room)];
}

/** As much of a text as fits, with a sign that there is more. */
export function fitted(context, text, room) {
  const some = text.slice(0, 120);
  if (some === text && context.measureText(some).width <= room) return some;
  if (room < LEAST) return "";
  const letters = Array.from(some);
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const fits = context.measureText(`${letters.slice(0, middle).join("")}…`).width <= room;
    if (fits) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? "" : `${letters.slice(0, low).join("").replace(/[\s,·]+$/u, "")}…`;
}
