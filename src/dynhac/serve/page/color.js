// The colour of a cluster follows from its id alone: the same everywhere, for as long as it lives.
// Twelve hues that also differ in lightness, for people who do not see all hues, in three shades.

const LIGHT = [
  "#3b6fb6", "#e2891a", "#1d9a86", "#c9472f", "#57b3e6", "#74489e",
  "#d9b526", "#c4608d", "#4c8a2c", "#2c4378", "#8f5b2c", "#127289",
];
const DARK = [
  "#6a9fe4", "#eea03a", "#37b9a1", "#ea7159", "#7fcaf3", "#a582d3",
  "#e8cd55", "#e287b0", "#7bb858", "#8093d6", "#bf8e5b", "#3fa3bc",
];
const HUES = LIGHT.length;
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
  const shade = Math.floor(cluster / HUES) % 3;
  if (shade === 0) return rgb;
  return mix(rgb, shade === 1 ? [255, 255, 255] : [0, 0, 0], 0.22);
}

/** Return `{fill, ink, quiet}`: a colour, black or white, whichever can be read on it, and a quieter
 * one of these.
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
    const ink = luminance(rgb) > 0.179 ? [11, 13, 16] : [255, 255, 255];
    const quiet = css(mix(ink, rgb, 0.3));
    found = { fill: css(rgb), ink: faint ? quiet : css(ink), quiet };
    if (known.size >= MOST) known.clear();
    known.set(key, found);
  }
  return found;
}
