// The admin API: requests with the token, and the event stream.

const TOKEN = "tower-quota-token";
const OWN_AUTHENTICATION = document.documentElement.dataset.authentication === "own";
// The page may be mounted under a path.
const BASE = location.pathname.replace(/\/?$/, "/");
const LONGEST_ANSWER_MS = 12_000;
const LONGEST_SILENCE_MS = 20_000;

const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: value => sessionStorage.setItem(TOKEN, value),
  clear: () => sessionStorage.removeItem(TOKEN),
};

/** An answer of the API that is an error. */
class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Sends a request. The field with the token is the proof that this page sent it: no other site can set it. */
async function send(method, path, { body, query, headers, signal } = {}) {
  const url = new URL(BASE + path, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
  const fields = { ...headers };
  if (token.get()) fields.Authorization = `Bearer ${token.get()}`;
  if (body !== undefined) fields["Content-Type"] = "application/json";
  const response = await fetch(url, {
    method, headers: fields, body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "same-origin", cache: "no-store", signal: signal ?? AbortSignal.timeout(LONGEST_ANSWER_MS),
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new ApiError(response.status, problem.detail ?? `The server answered ${response.status}.`);
}

/** Returns the JSON of an answer. */
async function read(path, query) {
  return (await send("GET", path, { query })).json();
}

/** Calls `snapshot` with the data of each event, until the stream ends or stays silent, or the session is aborted. */
async function follow(snapshot, session) {
  const stop = new AbortController();
  let silence = setTimeout(() => stop.abort(), LONGEST_SILENCE_MS);
  try {
    const response = await send("GET", "v1/events", { signal: AbortSignal.any([stop.signal, session]) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), LONGEST_SILENCE_MS);
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const event of events) {
        const data = event.split("\n").filter(line => line.startsWith("data:")).map(line => line.slice(5)).join("\n");
        if (data) snapshot(JSON.parse(data));
      }
    }
  } finally {
    clearTimeout(silence);
    stop.abort();
  }
}
