// Numbers for rows: round ones, and few that meet many ranges.

/** Return the roundest number above `low` and up to `high`. */
export function rowIn(low, high) {
  if (!Number.isFinite(high)) return Number.isFinite(low) ? rowIn(low, low + Math.abs(low) + 1) : 0;
  if (!Number.isFinite(low)) return rowIn(high - Math.abs(high) - 1e-12, high);
  const middle = (low + high) / 2;
  for (let digits = 1; digits <= 15; digits += 1) {
    for (const value of [middle, high]) {
      const round = Number(value.toPrecision(digits));
      if (round > low && round <= high) return round;
    }
  }
  return high;
}

/** Return round numbers, as few as possible, such that each range (more than, up to] has one. */
export function stabbed(ranges) {
  const found = [];
  let [low, high] = [-Infinity, Infinity];
  for (const [more, most] of [...ranges].sort((a, b) => a[1] - b[1])) {
    if (more >= high) {
      found.push(rowIn(low, high));
      [low, high] = [more, most];
    } else {
      low = Math.max(low, more);
      high = Math.min(high, most);
    }
  }
  if (ranges.length) found.push(rowIn(low, high));
  return found;
}
