// Rows of a list that get another place glide there, so that the eye can follow them.

const MOTION = { duration: 200, easing: "ease-out" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Change the rows of a list by `change`; those that are seen glide from their old to their new place. */
export function glide(list, change) {
  const before = new Map(still.matches ? [] : [...list.children].map((row) => [row, row.offsetTop]));
  change();
  const [top, height] = [list.offsetTop + list.scrollTop, list.clientHeight];
  const isSeen = (place) => place > top - height && place < top + height;
  const moves = [];
  for (const row of list.children) {
    const [from, to] = [before.get(row), row.offsetTop];
    if (from !== undefined && from !== to && isSeen(from) && isSeen(to)) moves.push([row, from - to]);
  }
  for (const [row, far] of moves) row.animate([{ transform: `translateY(${far}px)` }, { transform: "none" }], MOTION);
}
