// The colour of a cluster follows from its id alone: the same everywhere, for as long as it lives.
// Twelve hues in three shades. Any two hues differ for people who see fewer of them, too.

const LIGHT = [
  "#7e92e4", "#ef8b58", "#3e9d7a", "#9b0f1d", "#66c8ea", "#4e2f8a",
  "#baa80e", "#c86cac", "#6d892a", "#2b426e", "#946748", "#06717d",
];
const DARK = [
  "#268dd2", "#b78a0e", "#69e2c0", "#e5694c", "#a0d7fe", "#956fa3",
  "#d1dc6b", "#d97189", "#6bac60", "#b0adf8", "#e8b490", "#45b6c1",
];
const HUES = LIGHT.length;
const SHADE = 0.25; // of white or black in it
const MOST = 10_000; // colours that are kept

let dark = false;
let ground = [255, 255, 255];
let neutral = [220, 220, 220];
const known = new Map();

const parse = (hex) => [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16));
const mix = (a, b, part) => a.map((value, i) => value + (b[i] - value) * part);
const css = (rgb) => `rgb(${rgb.map(Math.round).join(" ")})`;

/** Read the colours of the theme; called when it changes. */
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  ground = parse(style.getPropertyValue("--ground").trim());
  neutral = parse(style.getPropertyValue("--block").trim());
  dark = luminance(ground) < 0.2;
  known.clear();
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function base(cluster) {
  const rgb = parse((dark ? DARK : LIGHT)[cluster % HUES]);
  // A dark hue has two lighter shades, a light one two darker ones.
  const light = luminance(rgb);
  const [one, other] = light < 0.15 ? [1, 2] : light > 0.4 ? [-1, -2] : [1, -1];
  const step = SHADE * [0, one, other][Math.floor(cluster / HUES) % 3];
  return mix(rgb, step > 0 ? [255, 255, 255] : [0, 0, 0], Math.abs(step));
}

/** Return `{fill, ink, quiet}`: a colour, black or white, whichever can be read on it, and a quieter
 * one of these for what is grey or faint.
 *
 * `cluster` null: the neutral grey. `depth`: how far below the top of the cluster; deeper is paler.
 * `faint`: not what is in focus.
 */
export function paint(cluster, depth = 0, faint = false) {
  const key = `${cluster} ${depth} ${faint}`;
  let found = known.get(key);
  if (!found) {
    const own = mix(cluster === null ? neutral : base(cluster), ground, Math.min(depth, 5) * 0.1);
    const rgb = faint ? mix(own, ground, cluster === null ? 0.5 : 0.75) : own;
    // On this luminance black and white have the same contrast, 4.6.
    const ink = luminance(rgb) > 0.179 ? [0, 0, 0] : [255, 255, 255];
    const quiet = css(mix(ink, rgb, 0.3));
    found = { fill: css(rgb), ink: faint ? quiet : css(ink), quiet };
    if (known.size >= MOST) known.clear();
    known.set(key, found);
  }
  return found;
}
