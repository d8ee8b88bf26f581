/** Returns the seconds of `Retry-After`, which is a number or a date. */
export function retryAfter(value) {
  if (/^\d+$/.test(value ?? "")) return Number(value);
  const date = Date.parse(value);
  return Number.isNaN(date) ? 0 : Math.max(0, (date - Date.now()) / 1000);
}

/** Calls `fetch`, and calls again while the server refuses. Waits at most `cap` seconds between two attempts. */
export async function fetchWithRetry(url, options = {}, { attempts = 4, base = 0.5, cap = 30 } = {}) {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, options);
    const jitter = Math.random() * Math.min(cap, base * 2 ** (attempt - 1));
    const wait = retryAfter(response.headers.get("retry-after")) + jitter;
    const isRefused = response.status === 429 || response.status === 503;
    if (!isRefused || attempt >= attempts || wait > cap) return response;
    await response.body?.cancel();
    options.signal?.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  }
}
