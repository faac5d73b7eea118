// Requests to the service, and its stream of events. A token, where one is needed, is kept for this
// tab only and sent in a header, never in an address.

const KEY = "dynhac-token";
const RETRY = [500, 1000, 2000, 4000];

export class ServiceError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const setToken = (token) => sessionStorage.setItem(KEY, token);
export const hasToken = () => sessionStorage.getItem(KEY) !== null;

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

/** The address of a call: parts of the path are encoded, parameters that are null left out. */
export function call(parts, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined) query.set(name, value);
  }
  const path = ["/v1", ...parts.map((part) => encodeURIComponent(part))].join("/");
  return query.size ? `${path}?${query}` : path;
}

async function refused(response) {
  let detail = response.statusText;
  try {
    detail = (await response.json()).detail ?? detail;
  } catch {
    // Not an answer of the service, such as a proxy's.
  }
  return new ServiceError(response.status, detail);
}

async function request(address, signal) {
  const response = await fetch(address, { headers: headers(), signal });
  if (!response.ok) throw await refused(response);
  return response;
}

/** Get the answer of a call; ServiceError: refused, TypeError: not reached. */
export const get = async (address, signal) => (await request(address, signal)).json();

/** Open the answer of a call in a tab of its own; a plain link could not send the token. */
export async function openData(address) {
  const response = await request(address);
  const type = response.headers.get("Content-Type");
  const isStream = type.startsWith("text/event-stream");
  const text = isStream ? await beginning(response.body) : JSON.stringify(await response.json(), null, 1);
  const url = URL.createObjectURL(new Blob([text], { type: isStream ? "text/plain;charset=utf-8" : type }));
  open(url);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** What an endless stream sends in a second. */
async function beginning(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const end = new Promise((go) => setTimeout(go, 1000, { done: true }));
  let text = "";
  for (;;) {
    const { done, value } = await Promise.race([reader.read(), end]);
    if (done) break;
    text += value;
  }
  reader.cancel();
  return text;
}

/** Listen to the events of the service, for ever, and resume after the last one; at first, begin with
 * the last `before` ones.
 *
 * `on`: open(), lost(error), update(data), event(data). Returns `{stop}`.
 */
export function listen(on, after, before) {
  const end = new AbortController();
  let last = after;

  async function once() {
    const wanted = { Accept: "text/event-stream" };
    if (last !== null) wanted["Last-Event-ID"] = last;
    const address = call(["events"], { last: last === null ? before : null });
    const response = await fetch(address, { headers: headers(wanted), signal: end.signal });
    if (!response.ok) throw await refused(response);
    on.open();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new TypeError("the stream has ended");
      text += value;
      const messages = text.split("\n\n");
      text = messages.pop();
      messages.forEach(take);
    }
  }

  function take(message) {
    const fields = {};
    for (const line of message.split("\n")) {
      const at = line.indexOf(":");
      if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
    }
    if (fields.id !== undefined) last = fields.id;
    if (fields.event === "update") on.update(JSON.parse(fields.data));
    else if (fields.event === "cluster") on.event(JSON.parse(fields.data), Number(fields.id));
  }

  (async () => {
    for (let tries = 0; !end.signal.aborted; tries += 1) {
      const began = Date.now();
      try {
        await once();
      } catch (error) {
        if (end.signal.aborted) return;
        on.lost(error);
        if (error.status === 401) return; // until there is a token
        if (Date.now() - began > 5000) tries = 0;
        await new Promise((go) => setTimeout(go, RETRY[Math.min(tries, RETRY.length - 1)]));
      }
    }
  })();
  return { stop: () => end.abort(), last: () => last };
}
