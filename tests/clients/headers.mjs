// Reads header fields with two independent parsers, `ratelimit-header-parser` by the authors of express-rate-limit, and
// `structured-headers` for RFC 9651. The argument is the address of the server.
import assert from "node:assert/strict";
import { parseRateLimit } from "ratelimit-header-parser";
import { parseDictionary, parseList } from "structured-headers";

const server = `http://${process.argv[2]}`;
const QUOTA = 3;
const HOUR = 3600;

/** Returns the answers to one client's requests: as many as its quota admits, and one that is refused. */
async function answers(path, client) {
  const all = [];
  for (let i = 0; i <= QUOTA; i++) all.push(await fetch(server + path, { headers: { "x-client": client } }));
  assert.deepEqual(all.map((answer) => answer.status), [200, 200, 200, 429]);
  return all;
}

/** Asserts that a date is this many seconds away, within a tolerance for the test's own time. */
function assertIn(date, seconds) {
  const off = Math.abs((date.getTime() - Date.now()) / 1000 - seconds);
  assert.ok(off < 10, `${date} is ${off} s off`);
}

for (const path of ["/draft-6", "/draft-7", "/x-delta", "/x-epoch"]) {
  const all = await answers(path, "ann");
  all.forEach((answer, i) => {
    const { limit, used, remaining, reset } = parseRateLimit(answer);
    assert.equal(limit, QUOTA, path);
    assert.equal(remaining, Math.max(0, QUOTA - 1 - i), path);
    assert.equal(used, Math.min(QUOTA, i + 1), path);
    const refused = answer.status === 429;
    const retry = Number(answer.headers.get("retry-after"));
    // In drafts 6 and 7, the reset is the time to retry. In the other styles, the limit is full at the reset.
    assertIn(reset, refused && path.startsWith("/draft") ? retry : (used * HOUR) / QUOTA);
    if (refused) assert.ok(retry > HOUR / QUOTA - 10 && retry <= HOUR / QUOTA, `${retry}`);
  });
  console.log(`ratelimit-header-parser reads ${path}`);
}

const NAME = 'say "hour"';
for (const [i, answer] of (await answers("/draft-11", "ann")).entries()) {
  const [[policy, quota], ...others] = parseList(answer.headers.get("ratelimit-policy"));
  assert.deepEqual([policy, quota.get("q"), quota.get("w"), others.length], [NAME, QUOTA, HOUR, 0]);
  const [[name, standing]] = parseList(answer.headers.get("ratelimit"));
  assert.deepEqual([name, standing.get("r")], [NAME, Math.max(0, QUOTA - 1 - i)]);
  if (answer.status === 429) {
    assert.equal(String(standing.get("t")), answer.headers.get("retry-after"));
    assert.deepEqual((await answer.json())["violated-policies"], [NAME]);
  }
}
const dictionary = parseDictionary((await answers("/draft-7", "bob"))[0].headers.get("ratelimit"));
assert.deepEqual([...dictionary].map(([name, [value]]) => [name, value]).slice(0, 2), [["limit", 3], ["remaining", 2]]);
console.log("structured-headers reads /draft-11 and /draft-7");
