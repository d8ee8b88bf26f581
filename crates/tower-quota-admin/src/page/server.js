// The admin API: requests with the token, and the event stream.

const TOKEN = "tower-quota-token";
const OWN_AUTHENTICATION = document.documentElement.dataset.authentication === "own";
// The page may be mounted under a path.
const BASE = location.pathname.replace(/\/?$/, "/");
const LONGEST_ANSWER_MS = 12_000;
// The server sends a snapshot every second.
const LONGEST_SILENCE_MS = 5000;

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
async function send(method, path, { body, query, reason, match, signal = AbortSignal.timeout(LONGEST_ANSWER_MS) } = {}) {
  const url = new URL(BASE + path, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
  const headers = {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  if (body) headers["Content-Type"] = "application/json";
  if (match) headers["If-Match"] = `"${match.number}-${match.hash}"`;
  // A field holds bytes, and the server reads them as UTF-8.
  if (reason) headers["X-Comment"] = String.fromCharCode(...new TextEncoder().encode(reason));
  const response = await fetch(url, {
    method, headers, body: body && JSON.stringify(body), credentials: "same-origin", cache: "no-store", signal,
  });
  const role = response.headers.get("tower-quota-role");
  // The style hides the buttons that this role cannot use.
  if (role) document.documentElement.dataset.role = role;
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new ApiError(response.status, problem.detail ?? `The server answered ${response.status}.`);
}

/** Returns the JSON of an answer. */
const read = async (path, query) => (await send("GET", path, { query })).json();
const post = async (path, body, reason) => (await send("POST", path, { body, reason })).json();

/** Returns what a request has read, or `null` where the server has no such route or thing. */
const ifFound = request => request.catch(error => {
  if (error.status !== 404) throw error;
  return null;
});

/** Calls `snapshot` with the data of each event, until the stream ends or stays silent, or the session is aborted. */
async function follow(snapshot, session) {
  const stop = new AbortController();
  const wait = () => setTimeout(() => stop.abort(), LONGEST_SILENCE_MS);
  let silence = wait();
  try {
    const response = await send("GET", "v1/events", { signal: AbortSignal.any([stop.signal, session]) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = wait();
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const event of events) {
        const data = event.split("\n").find(line => line.startsWith("data:"));
        if (data) snapshot(JSON.parse(data.slice(5)));
      }
    }
  } finally {
    clearTimeout(silence);
    stop.abort();
  }
}
