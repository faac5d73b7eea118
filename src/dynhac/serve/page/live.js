// What is fetched, and when. A message `update` of the service makes all views old; each is fetched
// again by a loop of its own, not more often than its answers cost. Nothing is fetched while the
// tab is hidden; nothing but what people ask for while the view is paused.

import { ServiceError, call, get, listen } from "./api.js";
import { fetchDetail, namesOfNearest } from "./details.js";
import { LEAST } from "./layout.js";
import { MOST, withEvent } from "./events.js";
import { go, learn, onRoute, set, state } from "./state.js";

const PAGE = 100; // clusters at a time
const MOST_NODES = 1200;
const MOST_TREES = 5000;
const LANES = 14;
const NARROWEST = 3; // pixels; narrower branches are folded
const LONG_HIDDEN = 60_000; // milliseconds
const REGAINED = 3000; // how long it is told

class Loop {
  constructor(least, load) {
    this.least = least;
    this.load = load;
    this.wanted = false;
    this.running = null;
    this.timer = null;
    this.began = -Infinity;
    this.cost = 0;
    this.first = null; // a loop that must not be disturbed while it fetches,
    this.later = []; // and those that wait for this one
  }

  /** Wait while another loop fetches: what it needs of the service comes first. */
  after(first) {
    this.first = first;
    first.later.push(this);
    return this;
  }

  /** Fetch, as soon as it is this loop's turn. */
  want() {
    if (state.paused) return;
    this.wanted = true;
    this.schedule();
  }

  /** Fetch now; an answer that is under way is of no interest any more. */
  now() {
    this.running?.abort();
    this.running = null;
    clearTimeout(this.timer);
    this.timer = null;
    return this.run();
  }

  schedule() {
    if (this.running || this.timer !== null || !this.wanted || document.hidden) return;
    if (this.first?.running) return;
    const wait = this.began + Math.max(this.least, this.cost) - performance.now();
    this.timer = setTimeout(() => {
      this.timer = null;
      if (!this.first?.running) this.run();
    }, Math.max(wait, 0));
  }

  async run() {
    this.timer = null;
    this.wanted = false;
    const turn = new AbortController();
    this.running = turn;
    this.began = performance.now();
    try {
      const answer = await this.load(turn.signal);
      if (turn.signal.aborted) return;
      if (answer && state.problem) set({ problem: null });
      if (answer && answer.update_number < latest) this.wanted = !state.paused;
    } catch (error) {
      if (!turn.signal.aborted) failed(error);
    } finally {
      this.cost = performance.now() - this.began;
      if (this.running === turn) {
        this.running = null;
        this.later.forEach((loop) => loop.schedule());
        this.schedule();
      }
    }
  }
}

let latest = 0; // the number of the last update that is known,
let version = 0; // and the version after it
let offset = 0; // of the number of an update and the version after it
let hierarchyWidth = 640;
let pages = PAGE;

const loops = {
  stats: new Loop(1000, async (signal) => {
    const stats = await get(call(["stats"]), signal);
    offset = stats.update_number - stats.version;
    set({ stats, connection: state.connection === "token" ? "connecting" : state.connection });
    return stats;
  }),
  clusters: new Loop(150, async (signal) => {
    const request = clustersCall();
    const clusters = await get(request, signal);
    showClusters(clusters, request);
    if (clusters.described_version < clusters.version) loops.descriptions.want();
    return clusters;
  }),
  // Sizes are always new; names and representatives may follow. The hierarchy is made first, which is
  // sooner done.
  descriptions: new Loop(150, async (signal) => {
    const request = clustersCall();
    showClusters(await get(sinceUpdate(request), signal), request);
  }),
  tree: new Loop(150, fetchTree),
  timeline: new Loop(1500, async (signal) => {
    const request = call(["timeline"], { max_clusters: LANES, max_steps: 160 });
    const timeline = await get(request, signal);
    learn(timeline.lanes);
    set({ timeline: { ...timeline, request } });
  }),
  detail: new Loop(1500, async (signal) => {
    const detail = await fetchDetail(state.route, state.detail, signal);
    if (!signal.aborted) set({ detail, trail: detail?.trail ?? null });
  }),
};

loops.descriptions.after(loops.tree);

export const clustersCall = () => call(["clusters"], { limit: pages, representatives: 1 });

/** A call whose answer waits for the view after the last update that is known. */
const sinceUpdate = (request) =>
  version ? `${request}${request.includes("?") ? "&" : "?"}min_version=${version}` : request;

function showClusters(clusters, request) {
  learn(clusters.clusters);
  learn(clusters.clusters.flatMap(namesOfNearest));
  const described = clusters.described_version !== state.clusters?.described_version;
  if (described || another(state.clusters, clusters, request)) set({ clusters: { ...clusters, request } });
}

/** Whether an answer is not what is shown; a large model answers with its last state at first. */
const another = (before, answer, request) =>
  before?.update_number !== answer.update_number || before.request !== request;

/** Branches with fewer points are folded: they would be too narrow to see, or, where there are many
 * clusters, smaller than most of these. */
function foldedSize(size) {
  const { points, clusters } = state.stats;
  const narrow = (size * NARROWEST) / hierarchyWidth;
  const small = clusters > 1 ? points / clusters : Infinity;
  return Math.max(1, Math.floor(Math.min(narrow, small)));
}

async function fetchTree(signal) {
  const node = state.route.node ?? null;
  let path = [];
  let size = state.stats?.points ?? 0;
  if (node !== null) {
    const way = call(["tree", "path"], { node, min_size: foldedSize(size) });
    path = (await get(sinceUpdate(way), signal)).path;
    size = path.at(-1).size;
  }
  const minSize = foldedSize(size);
  // No more trees than there is room for: the other nodes are for what is in them.
  const skip = state.route.skip ?? 0;
  const trees = node === null ? Math.min(skip + Math.ceil(hierarchyWidth / LEAST) + 2, MOST_TREES) : null;
  const request = call(["tree"], { node, levels: 64, limit: MOST_NODES, trees, min_size: minSize });
  const tree = await get(sinceUpdate(request), signal);
  learn(Object.entries(tree.names).map(([cluster, name]) => ({ cluster: Number(cluster), name })));
  if (another(state.tree, tree, request)) set({ tree: { ...tree, path, minSize, request, node, skip } });
  return tree;
}

function failed(error) {
  if (error instanceof ServiceError) {
    if (error.status === 401) set({ connection: "token", problem: error.message });
    else set({ problem: error.message });
    if (error.status === 404 && state.route.node !== undefined) go({ node: null }, true);
  } else {
    lose();
  }
}

function lose() {
  if (state.connection === "lost" || state.connection === "token") return;
  set({ connection: "lost", lostAt: Date.now() });
}

const fetchAll = () => ["stats", "clusters", "tree", "timeline", "detail"].forEach((name) => loops[name].want());

let stream = null;
let begun = false;
let resumeAfter = null;
let hiddenSince = null;

function connect() {
  begun = true;
  if (document.hidden) return;
  stream?.stop();
  stream = listen(
    {
      open() {
        if (state.connection === "lost") {
          set({ regained: true });
          setTimeout(() => set({ regained: false }), REGAINED);
        }
        set({ connection: "live" });
        fetchAll();
      },
      lost(error) {
        if (error.status === 401) set({ connection: "token", problem: error.message });
        else lose();
      },
      update(data) {
        offset = data.update_number - data.version;
        if (data.update_number === latest) return;
        latest = data.update_number;
        version = data.version;
        if (state.stats && !state.paused) set({ stats: { ...state.stats, points: data.points } });
        fetchAll();
      },
      event: take,
    },
    resumeAfter,
    MOST,
  );
}

let held = []; // events that came while paused

function take(data, id) {
  if (data.kind === "gap") {
    fetchAll();
    return;
  }
  const event = { ...data, id, version: data.update - offset };
  if (state.paused) {
    held = withEvent(held, event);
    set({ waiting: state.waiting + 1 });
  } else {
    set({ events: withEvent(state.events, event) });
  }
}

/** Freeze the view, or let it go on. */
export function pause(paused) {
  if (paused === state.paused) return;
  set({ paused });
  if (!paused) {
    set({ waiting: 0, events: [...held, ...state.events] });
    held = [];
    fetchAll();
  }
}

/** Fetch more clusters for the list. */
export function moreClusters() {
  pages = Math.min(pages + PAGE, 1000);
  loops.clusters.now();
}

/** Tell how wide the hierarchy is drawn. */
export function setWidth(width) {
  const far = Math.abs(width - hierarchyWidth) > 0.2 * hierarchyWidth;
  hierarchyWidth = Math.max(width, 200);
  if (far && state.tree) loops.tree.now();
}

/** Fetch the first view, and begin to listen, as soon as the tab is seen. */
export async function start() {
  if (document.hidden) await new Promise((go) => document.addEventListener("visibilitychange", go, { once: true }));
  await loops.stats.now();
  if (!state.stats) {
    if (state.connection === "token") return;
    connect();
    return;
  }
  loops.tree.now();
  loops.clusters.now();
  await loops.timeline.now();
  connect();
}

setInterval(() => loops.stats.want(), 5000);

let shown = {};
onRoute((route) => {
  if (state.stats) {
    if (route.node !== shown.node || route.skip !== shown.skip) loops.tree.now();
    if (["cluster", "point", "a", "b"].some((name) => route[name] !== shown[name])) {
      loops.detail.now();
    }
  }
  shown = route;
});

/** Fetch what the drawer shows at the start. */
export const firstDetail = () => loops.detail.now();

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    hiddenSince = Date.now();
    resumeAfter = stream?.last() ?? null;
    stream?.stop();
    stream = null;
  } else if (begun && !stream && state.connection !== "token") {
    if (Date.now() - hiddenSince > LONG_HIDDEN) {
      resumeAfter = null;
      set({ events: [] });
    }
    connect();
    Object.values(loops).forEach((loop) => loop.schedule());
  }
});
