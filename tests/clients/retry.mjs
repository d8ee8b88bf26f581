// Checks the client for JavaScript. The arguments are the file of the client and the address of the server.
import assert from "node:assert/strict";

const { fetchWithRetry, retryAfter } = await import(process.argv[2]);
const url = `http://${process.argv[3]}/retry`;
const options = { method: "PUT", headers: { "x-client": "javascript" }, body: "hello" };

const start = Date.now();
for (let i = 0; i < 4; i++) {
  const response = await fetchWithRetry(url, options);
  assert.deepEqual([response.status, await response.text()], [200, "hello"]);
}
assert.ok(Date.now() - start >= 1000, "the client waited");

// The wait is longer than half a second.
const statuses = await Promise.all(Array.from({ length: 4 }, () => fetchWithRetry(url, options, { cap: 0.5 })));
assert.ok(statuses.some(({ status }) => status === 429));

const date = new Date(Date.now() + 60_000).toUTCString();
assert.ok(retryAfter(date) > 50 && retryAfter(date) <= 60);
assert.deepEqual(["7", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", null].map(retryAfter), [7, 0, 0, 0]);
console.log("the client for JavaScript waits and retries");
