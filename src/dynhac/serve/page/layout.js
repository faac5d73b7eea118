// Where the blocks of the icicle are. A row is a cut of the hierarchy at one similarity, which grows
// downwards; so a row shows the groups that hold together at it. A block is a node: it reaches from
// the row below the last one of its parent down to the last row at which it holds together, and is
// as wide as its share of the points. Nodes that hold together at no row of their own are left out.
//
// A large model can have more trees than there is room for. Then only the largest are shown, as many
// as are wide enough to be seen, and the points of all others have a narrow place at the end.

const ROWS = 11;
const REST = 0.06; // of the width, for the points that are not shown
const LEAST = 6; // pixels of a tree
const CLOSE = 0.004; // of the range; of rows that are closer only the first is shown

const heldUpTo = (node) => (node.point !== null ? Infinity : (node.together_up_to ?? -Infinity));

/** Return the similarities of the rows below the first one, which shows `root` as a whole.
 *
 * They are such that the merges, each with the points it brings together, are spread evenly, and
 * rounded. `theta`: the cut of the clusters, which is always one of them where it divides anything.
 */
export function rowsOf(root, theta) {
  const merges = [];
  let total = 0;
  const visit = (node) => {
    if (node !== root && Number.isFinite(heldUpTo(node)) && node.children.length) {
      merges.push([node.together_up_to, node.size]);
      total += node.size;
    }
    node.children.forEach(visit);
  };
  visit(root);
  if (!merges.length) {
    // No merge is divided: a row for the cut, or for the points themselves.
    if (!root.children.length) return [];
    return [theta !== null && theta > heldUpTo(root) ? theta : Math.max(...root.children.map(heldUpTo))];
  }
  merges.sort((a, b) => a[0] - b[0]);
  const low = heldUpTo(root);
  const rows = new Set();
  // Each row lies right above a merge: that merge is divided in it.
  if (theta !== null && theta > low && theta <= merges.at(-1)[0]) rows.add(theta);
  let seen = 0;
  let next = 0;
  for (const [value, size] of merges) {
    seen += size;
    if (seen / total >= next) {
      const row = rounded(value);
      if (row > low) rows.add(row);
      next = (Math.floor((seen / total) * (ROWS - 1)) + 1) / (ROWS - 1);
    }
  }
  rows.add(rounded(merges.at(-1)[0] * 1.02));
  const found = [...rows].filter((row) => row > low).sort((a, b) => a - b);
  const close = (found.at(-1) - found[0]) * CLOSE;
  return found.filter((row, i) => i === 0 || row === theta || row - found[i - 1] > close);
}

const rounded = (value) => Number(value.toPrecision(2));

/** Return the blocks `{node, x, width, first, last, depth, above}`, parents first.
 *
 * `x` and `width` are shares of 1. `before`: the last places by key, so that siblings keep their
 * order. `depth`: how many blocks of the same cluster are above.
 */
export function layout(root, rows, before) {
  const blocks = [];
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
  const ordered = (children) => {
    const place = (node) => before.get(keyOf(node))?.x ?? Infinity;
    if (children.length > 400) return children;
    return children
      .map((node, i) => [place(node), i, node])
      .sort((a, b) => (a[0] === b[0] ? a[1] - b[1] : a[0] - b[0]))
      .map(([, , node]) => node);
  };
  const put = (node, x, from, above) => {
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
  return blocks;
}

const NOTHING = {
  node: null, point: null, cluster: null, together_up_to: null, hidden: 0, children: [], rest: true,
};

/** Return the part of `root` that is shown in so many pixels, without its first `skip` children.
 *
 * `next`: what to skip to see those that follow, or null.
 */
export function visible(root, width, skip) {
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
