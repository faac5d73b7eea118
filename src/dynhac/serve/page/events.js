// The events that the page keeps, newest first. What a cluster grows and shrinks within a minute is one
// event, with the sum, in the place of the first: a loaded service sends hundreds a second.

export const MOST = 300;
const SPAN = 60; // seconds

/** By how many points a cluster changed, or null where an event is of another kind. */
export function changeOf(event) {
  if (event.kind === "grew") return event.count;
  return event.kind === "shrank" ? -event.count : null;
}

const spanOf = ({ time }) => Math.floor(time / SPAN);

/** Return the events with one more. */
export function withEvent(events, event) {
  const change = changeOf(event);
  if (change === null) return [event, ...events].slice(0, MOST);
  const first = events.findIndex((other) =>
    other.cluster === event.cluster && other.change !== undefined && spanOf(other) === spanOf(event));
  if (first < 0) return [{ ...event, change }, ...events].slice(0, MOST);
  const { id, time, version, change: before } = events[first];
  return events.with(first, { ...event, id, time, version, change: before + change });
}
