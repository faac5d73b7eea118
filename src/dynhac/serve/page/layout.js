// Where the blocks of the icicle are. A row is a cut of the hierarchy at one similarity, which grows
// downwards; so a row shows the groups that hold together at it. A block is a node: it reaches from
// the row below the last one of its parent down to the last row at which it holds together, and is
// as wide as its share of the points. Nodes that hold together at no row of their own are left out.
//
// A large model can have more trees than there is room for. Then only the largest are shown, as many
// as are wide enough to be seen, and the points of all others have a narrow place at the end.

import { rowIn, stabbed } from "./rows.js";

const ROWS = 11;
const REST = 0.06; // of the width, for the points that are not shown
export const LEAST = 6; // pixels of a tree
const NAMED = 0.03; // a cluster with this share of the points gets a row in which it is one block,
const MOST_NAMED = 40; // but not more than so many,
const LEAST_NAMED = 8; // and so many of the largest in any case
const NEWS = 0.04; // a row shows something new of at least this share of the points,
const FILLED = 0.15; // and the last one blocks of this share

const heldUpTo = (node) => (node.point !== null ? Infinity : (node.together_up_to ?? -Infinity));

/** Return the similarities of the rows below the first one, which shows `root` as a whole.
 *
 * Each of the large clusters is one block in some row. The other rows are such that the merges are
 * spread evenly. `theta`: the cut of the clusters, which is
 * always one of them where it divides anything.
 */
export function rowsOf(root, theta) {
  const low = heldUpTo(root);
  const spans = []; // of all nodes below the root: (more than, up to], points
  const tops = []; // of the clusters
  const merges = [];
  const visit = (node, above) => {
    const [more, most] = [heldUpTo(above), heldUpTo(node)];
    spans.push([more, most, node.size]);
    if (node.cluster !== null && above.cluster === null && most > more) tops.push([more, most, node.size]);
    if (Number.isFinite(most) && node.children.length) merges.push([most, node.size]);
    node.children.forEach((child) => visit(child, node));
  };
  root.children.forEach((child) => visit(child, root));
  if (!merges.length) {
    // No merge is divided: a row for the cut, or for the points themselves.
    if (!root.children.length) return [];
    return [theta !== null && theta > low ? theta : Math.max(...root.children.map(heldUpTo))];
  }
  merges.sort((a, b) => a[0] - b[0]);
  const kept = new Set(forClusters(tops, root.size));
  if (theta !== null && theta > low && theta <= merges.at(-1)[0]) kept.add(theta);
  const rows = [...new Set([...kept, ...spread(merges, ROWS - kept.size)])]
    .filter((row) => row > low)
    .sort((a, b) => a - b);
  return telling(rows, kept, spans, root.size);
}

/** Rows in which each of the large clusters is one block, few of them. */
function forClusters(tops, total) {
  const ranked = [...tops].sort((a, b) => b[2] - a[2]);
  const large = ranked.filter(([, , size], i) => i < LEAST_NAMED || size >= NAMED * total);
  for (let most = Math.min(large.length, MOST_NAMED); most > 0; most = Math.floor(most * 0.7)) {
    const rows = stabbed(large.slice(0, most));
    if (rows.length <= ROWS - 4 || most === 1) return rows;
  }
  return [];
}

/** Rows right above merges, such that these are spread evenly; large ones weigh more. */
function spread(merges, most) {
  const total = merges.reduce((sum, [, size]) => sum + Math.sqrt(size), 0);
  const steps = Math.max(most, 4) - 1;
  const rows = [];
  let seen = 0;
  let next = 0;
  for (const [value, size] of merges) {
    seen += Math.sqrt(size);
    if (seen / total >= next) {
      rows.push(rowIn(0.9 * value, value));
      next = (Math.floor((seen / total) * steps) + 1) / steps;
    }
  }
  rows.push(rowIn(merges.at(-1)[0], 1.1 * merges.at(-1)[0]));
  return rows;
}

/** The rows that show something which the row before does not, up to the last one that is filled. */
function telling(rows, kept, spans, total) {
  const found = [];
  for (const row of rows) {
    const before = found.at(-1) ?? -Infinity;
    let fresh = 0;
    let filled = 0;
    for (const [more, most, size] of spans) {
      if (more >= row || most < row) continue;
      filled += size;
      if (more >= before) fresh += size;
    }
    const last = filled < FILLED * total && found.length >= 2;
    if (kept.has(row) || (fresh >= NEWS * total && !last)) found.push(row);
  }
  return found.length ? found : rows.slice(0, 1);
}

/** Return the blocks `{node, x, width, first, last, depth, above}`, parents first, and the places of
 * all nodes by key.
 *
 * `x` and `width` are shares of 1. `before`: the last places, so that siblings keep their order; a
 * new node goes where its first branch was. `depth`: how many blocks of the same cluster are above.
 */
export function layout(root, rows, before) {
  const blocks = [];
  const places = new Map();
  const shown = root.children.reduce((sum, child) => sum + child.size, 0);
  const hidden = shown ? root.size - shown : 0;
  const rest = Math.min(hidden / root.size, REST);
  const scale = shown ? (1 - rest) / shown : 1 / root.size;
  const lastRow = (node) => {
    const most = heldUpTo(node);
    let row = 0;
    while (row < rows.length && rows[row] <= most) row += 1;
    return row;
  };
  const placeOf = (node) => before.get(keyOf(node)) ?? Math.min(...node.children.map(placeOf), Infinity);
  const ordered = (children) => {
    if (!before.size || children.length > 400) return children;
    return children
      .map((node, i) => [placeOf(node), i, node])
      .sort((a, b) => (a[0] === b[0] ? a[1] - b[1] : a[0] - b[0]))
      .map(([, , node]) => node);
  };
  const put = (node, x, from, above) => {
    places.set(keyOf(node), x);
    const last = Math.max(node === root ? 0 : lastRow(node), from);
    const width = node === root ? 1 : node.size * scale;
    let inner = above;
    if (node === root || last > from) {
      const first = node === root ? 0 : from + 1;
      const same = above && node.cluster !== null && above.node.cluster === node.cluster;
      inner = { node, x, width, first, last, depth: same ? above.depth + 1 : 0, above };
      blocks.push(inner);
    }
    let next = x;
    for (const child of ordered(node.children)) {
      put(child, next, last, inner);
      next += child.size * scale;
    }
  };
  put(root, 0, 0, null);
  if (rest) {
    const node = { ...NOTHING, size: hidden, next: root.next };
    const last = Math.max(rows.length, 1);
    blocks.push({ node, x: 1 - rest, width: rest, first: 1, last, depth: 0, above: blocks[0] });
  }
  return { blocks, places };
}

const NOTHING = {
  node: null, point: null, cluster: null, together_up_to: null, hidden: 0, children: [], rest: true,
};

/** Return the clusters that lie in a node, the largest first, as far as the tree was fetched. */
export function clustersIn(node) {
  let found = known.get(node);
  if (!found) {
    const sizes = new Map();
    const visit = (below) => {
      if (below.cluster !== null) sizes.set(below.cluster, (sizes.get(below.cluster) ?? 0) + below.size);
      else below.children.forEach(visit);
    };
    visit(node);
    found = [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a) || a - b);
    known.set(node, found);
  }
  return found;
}

const known = new WeakMap();

/** Return the part of `root` that is shown in so many pixels, without its first `skip` children.
 *
 * `next`: what to skip to see those that follow, or null. A single tree of all points is shown as
 * the top itself.
 */
export function visible(root, width, skip) {
  const [tree] = root.children;
  if (root.node === null && root.children.length === 1 && tree.size === root.size && tree.point === null) {
    return { ...tree, node: null, next: null };
  }
  const left = root.children.slice(skip);
  let sum = 0;
  let count = 0;
  for (const { size } of left) {
    if (count >= 2 && (size / (sum + size)) * width < LEAST) break;
    sum += size;
    count += 1;
  }
  const before = root.children.slice(0, skip).reduce((points, child) => points + child.size, 0);
  const more = root.node === null && count < left.length;
  const children = more || skip ? left.slice(0, count) : left;
  return { ...root, size: root.size - before, children, next: more ? skip + count : null };
}

/** What a node is known by from one state to the next. */
export function keyOf(node) {
  if (node.rest) return "rest";
  if (node.point !== null) return `point ${JSON.stringify(node.point)}`;
  return node.node === null ? "all" : `node ${node.node}`;
}
