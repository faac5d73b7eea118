// What the drawer shows, fetched: a cluster, a point, or two points.

import { ServiceError, call, get } from "./api.js";
import { learn, state } from "./state.js";

export const MEMBERS = 50; // at a time

const keyOf = (route) => {
  if (route.a !== undefined && route.b !== undefined) return `why ${route.a} ${route.b}`;
  if (route.point !== undefined) return `point ${route.point}`;
  return route.cluster === undefined ? null : `cluster ${route.cluster}`;
};

/** Return the drawer's data for a route, or null where it is closed; `before`: what it shows now. */
export async function fetchDetail(route, before, signal) {
  const key = keyOf(route);
  if (key === null) return null;
  const again = before?.key === key ? before : null;
  try {
    if (key.startsWith("why")) return { key, kind: "why", ...(await fetchWhy(route, signal)) };
    if (key.startsWith("point")) return { key, kind: "point", ...(await fetchPoint(route, signal)) };
    const shown = again?.members?.members.length ?? 0;
    return { key, kind: "cluster", ...(await fetchCluster(route, shown, signal)) };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status === 401) throw error;
    return { key, kind: "error", status: error.status, message: error.message, route };
  }
}

/** The names that a cluster's answer tells of those next to it. */
export const namesOfNearest = ({ nearest }) => nearest.map(({ id, name }) => ({ cluster: id, name }));

async function fetchCluster({ cluster }, shown, signal) {
  const request = call(["clusters", cluster], { representatives: 5 });
  const limit = Math.max(MEMBERS, shown);
  const [found, members] = await Promise.all([
    get(request, signal),
    get(call(["clusters", cluster, "members"], { limit }), signal),
  ]);
  learn([found, ...namesOfNearest(found)]);
  return { request, cluster: found, members };
}

async function fetchPoint({ point }, signal) {
  const request = call(["points"], { id: point });
  const [found, trail] = await Promise.all([
    get(request, signal),
    get(call(["tree", "path"], { point, min_size: state.tree?.minSize }), signal),
  ]);
  return { request, point: found, trail: trail.path };
}

async function fetchWhy({ a, b }, signal) {
  const request = call(["explain"], { a, b });
  return { request, why: await get(request, signal) };
}

/** Return more members of a cluster. */
export async function fetchMembers(cluster, offset) {
  return get(call(["clusters", cluster, "members"], { limit: MEMBERS, offset }));
}

/** Return the members of a cluster whose id or text fits. */
export async function findMembers(cluster, text) {
  return (await get(call(["search"], { q: text, cluster, limit: 100 }))).hits;
}
