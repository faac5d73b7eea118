// Elements that are drawn again while people are at work in them: what is the same stays the same
// element, so that a press, a selection or a screen reader is not disturbed; the focus, what is
// unfolded and what is typed are kept.

const STOPS = "a[href], button, input, summary, [tabindex]";

const all = (part, kind) => [part, ...part.querySelectorAll("*")].filter((element) => element.matches(kind));

/** Show `parts` in `holder`, which shows the same parts in an older state; null is no part. */
export function refresh(holder, parts) {
  const fresh = parts.map((part) => part ?? nothing());
  const before = [...holder.children];
  if (before.length !== fresh.length) {
    holder.replaceChildren(...fresh);
    return;
  }
  before.forEach((part, i) => {
    if (!isTypedIn(part)) replace(part, fresh[i]);
  });
}

function nothing() {
  const element = document.createElement("span");
  element.hidden = true;
  return element;
}

const isTypedIn = (part) =>
  all(part, "input").some((input) => input === document.activeElement || input.value !== input.defaultValue);

function replace(part, fresh) {
  const unfolded = all(part, "details").map((details) => details.open);
  all(fresh, "details").forEach((details, i) => {
    details.open = unfolded[i] ?? false;
  });
  if (part.outerHTML === fresh.outerHTML) return;
  const at = all(part, STOPS).indexOf(document.activeElement);
  part.replaceWith(fresh);
  if (at < 0) return;
  const stops = all(fresh, STOPS);
  stops[Math.min(at, stops.length - 1)]?.focus({ preventScroll: true });
}
