// The state of the page, and its one direction of flow: what people do and what the service sends
// changes the state (`set`), the state draws the views (`subscribe`). Views are drawn once a frame,
// so a hidden tab draws nothing. The part of the state that is a view to share is in the address
// (`go`), after the #: node, skip (as many of the largest trees), cluster, point, a and b (two points to
// explain), from and to (updates), events (which the feed shows), table (in place of the icicle), q (a
// search).

const VIEWS = ["node", "skip", "cluster", "point", "a", "b", "from", "to", "events", "table", "q"];

const MOST_NAMES = 5000; // the page may be open for weeks

export const state = {
  route: {},
  connection: "connecting", // live, lost, token
  lostAt: null,
  regained: false, // the connection, a moment ago
  paused: false,
  waiting: 0, // events that came while paused
  problem: null, // an error of the service that hides no data
  stats: null,
  clusters: null, // the answer of /v1/clusters, with as many pages as were asked for
  names: new Map(), // cluster -> name
  tree: null, // {root, path, minSize, request}
  timeline: null,
  events: [], // newest first
  detail: null, // {key, ...}: what the drawer shows
  highlight: null, // the cluster under the pointer
  trail: null, // the nodes to the point that is open
  cursor: null, // the update under the pointer
};

const views = [];
const changed = new Set();
let due = false;

/** Change the state; the views that depend on it are drawn in the next frame. */
export function set(patch) {
  for (const [name, value] of Object.entries(patch)) {
    if (state[name] === value) continue;
    state[name] = value;
    changed.add(name);
  }
  if (!due && changed.size) {
    due = true;
    requestAnimationFrame(draw);
  }
}

/** Tell people of an error of something they asked for; the next answer of the service hides it. */
export const tell = (error) => set({ problem: error.message });

/** Call `view` after one of these parts of the state has changed. */
export function subscribe(names, view) {
  views.push({ names, view });
}

function draw() {
  due = false;
  const now = new Set(changed);
  changed.clear();
  for (const { names, view } of views) if (names.some((name) => now.has(name))) view();
}

/** Go to another view: parts of the address to change; null leaves one out. */
export function go(patch, replace = false) {
  const next = { ...state.route, ...patch };
  const address = hrefOf(next);
  if (address === (location.hash || "#")) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  readRoute();
}

/** The address of a view. */
export function hrefOf(route) {
  const query = new URLSearchParams();
  for (const name of VIEWS) {
    if (route[name] !== null && route[name] !== undefined) query.set(name, route[name]);
  }
  return `#${query}`;
}

/** What a link in the page goes to: this view, with another drawer. */
export function drawer(patch) {
  return { cluster: null, point: null, a: null, b: null, ...patch };
}

const listeners = [];

/** Call `listener` when the address has changed. */
export function onRoute(listener) {
  listeners.push(listener);
}

export function readRoute() {
  const query = new URLSearchParams(location.hash.slice(1));
  const route = {};
  for (const name of VIEWS) if (query.has(name)) route[name] = query.get(name);
  for (const name of ["node", "skip", "cluster", "from", "to", "table"]) {
    if (name in route && !/^-?\d{1,15}$/.test(route[name])) delete route[name];
    else if (name in route) route[name] = Number(route[name]);
  }
  set({ route });
  for (const listener of listeners) listener(route);
}

addEventListener("hashchange", readRoute);
addEventListener("popstate", readRoute);

/** The name of a cluster, or its number. */
export function nameOf(cluster) {
  return state.names.get(cluster) ?? `Cluster ${cluster}`;
}

/** The same within a text of another direction, such as a list of names. */
export const isolatedName = (cluster) => `\u2068${nameOf(cluster)}\u2069`;

/** Note the names that an answer tells. */
export function learn(entries) {
  const names = new Map(state.names);
  let more = false;
  for (const { cluster, name } of entries) {
    if (name && names.get(cluster) !== name) {
      names.set(cluster, name);
      more = true;
    }
  }
  for (const old of names.keys()) {
    if (names.size <= MOST_NAMES) break;
    names.delete(old);
  }
  if (more) set({ names });
}
