// The strip of numbers, the state of the connection, the theme, and what takes the place of the
// views where there is nothing to show: an empty store, or a service that wants a token.

import { hasToken, setToken } from "./api.js";
import { readTheme } from "./color.js";
import { age, compact, count, h, milliseconds, setText } from "./dom.js";
import { start } from "./live.js";
import { set, state, subscribe } from "./state.js";

const byId = (id) => document.getElementById(id);

function drawNumbers() {
  const { stats } = state;
  if (!stats) return;
  setText(byId("store"), stats.name);
  document.title = `${stats.name} · dynhac`;
  setText(byId("n-points"), stats.points < 1e7 ? count(stats.points) : compact(stats.points));
  setText(byId("n-clusters"), compact(stats.clusters));
  setText(byId("n-rate"), stats.updates_per_second < 10 ? stats.updates_per_second.toFixed(1) : compact(Math.round(stats.updates_per_second)));
  setText(byId("n-p50"), milliseconds(stats.latency_p50_ms));
  setText(byId("n-p99"), milliseconds(stats.latency_p99_ms));
  setText(byId("n-snapshot"), stats.snapshot ? `${age(stats.snapshot.age_seconds)} ago` : "none");
  byId("read-only").hidden = !stats.read_only;
  const empty = stats.points === 0;
  byId("empty").hidden = !empty;
  byId("views").hidden = empty;
  if (empty) drawEmpty();
}

function drawEmpty() {
  const { stats } = state;
  byId("empty-write").hidden = stats.read_only;
  byId("empty-read").hidden = !stats.read_only;
  const [path, body] = stats.kind === "graph"
    ? ["graph/update", { edges: [[1, 2, 0.9], [2, 3, 0.8], [4, 5, 0.7]], add: [1, 2, 3, 4, 5] }]
    : ["points", [
        { vector: vector(stats.dimension, 0), payload: { text: "a first point" } },
        { vector: vector(stats.dimension, 0.1), payload: { text: "a second, close to it" } },
        { vector: vector(stats.dimension, -1), payload: { text: "a third, far away" } },
      ]];
  setText(byId("empty-command"),
    `curl -X POST ${location.origin}/v1/${path} \\\n  -H 'Content-Type: application/json' \\\n  -d '${lines(body)}'`);
}

/** JSON with a line for each point. */
const lines = (body) =>
  Array.isArray(body) ? `[${body.map((row) => JSON.stringify(row)).join(",\n       ")}]` : JSON.stringify(body);

const vector = (dimension, shift) =>
  Array.from({ length: dimension || 3 }, (_, i) => (i === 0 ? 1 : i === 1 ? shift : 0) + (shift < 0 && i === 0 ? -1 : 0));

byId("copy").addEventListener("click", async () => {
  const text = byId("empty-command").textContent;
  try {
    await navigator.clipboard.writeText(text);
    setText(byId("copy"), "Copied");
  } catch {
    getSelection().selectAllChildren(byId("empty-command"));
    setText(byId("copy"), "Selected");
  }
  setTimeout(() => setText(byId("copy"), "Copy"), 2000);
});

const STATES = {
  connecting: "connecting",
  live: "live",
  paused: "paused",
  lost: "offline",
  token: "no token",
};

/** What the banner says, and whether it is good news. */
function news() {
  const { connection, lostAt, regained, problem } = state;
  if (connection === "lost") {
    const since = new Date(lostAt).toLocaleTimeString("en-GB");
    return [`Connection lost at ${since}. What you see is from before; trying again …`, false];
  }
  if (regained) return ["Connected again.", true];
  return [problem && connection !== "token" ? `The service says: ${problem}` : null, false];
}

function drawConnection() {
  const { connection, problem, paused } = state;
  const dot = byId("status");
  const shown = paused && connection === "live" ? "paused" : connection;
  dot.className = shown;
  setText(dot.lastElementChild, STATES[shown]);
  const banner = byId("banner");
  const [text, good] = news();
  if (text) setText(banner, text);
  banner.classList.toggle("shown", text !== null);
  banner.classList.toggle("again", good);
  const dialog = byId("token-dialog");
  if (connection === "token" && !dialog.open) {
    setText(byId("token-why"), hasToken() && problem ? problem : "Whoever runs the service can give you one.");
    dialog.showModal();
  } else if (connection !== "token" && dialog.open) dialog.close();
}

// Without a token there is nothing to show: Escape does not close it.
byId("token-dialog").addEventListener("close", drawConnection);

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token").value.trim());
  byId("token").value = "";
  set({ connection: "connecting", problem: null });
  start();
});

const THEMES = ["auto", "light", "dark"];
let theme = localStorage.getItem("dynhac-theme") ?? "auto";

function setTheme(next) {
  theme = THEMES.includes(next) ? next : "auto";
  localStorage.setItem("dynhac-theme", theme);
  document.documentElement.dataset.theme = theme;
  const name = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
  setText(byId("theme").lastElementChild, name);
  byId("theme").setAttribute("aria-label", `Theme: ${name}`);
  readTheme();
  set({ theme: `${theme} ${dark.matches}` });
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => setTheme(theme));
byId("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3]));
setTheme(theme);

subscribe(["stats"], drawNumbers);
subscribe(["connection", "regained", "problem", "paused"], drawConnection);
