// Tests the live page in headless Chromium, with a gateway under load. Run by scripts/page.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  TOKEN, admin, freePort, load, logIn, open, request, startBrowser, startGateway, startRedis, startServer, until,
} from "./setting.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const GREEDY = "the secret key of the greedy client";
let server, browser, began, stopLoad;

before(async () => {
  server = await startGateway(process.env.GATEWAY);
  browser = await startBrowser();
  // All tests run while a hundred thousand clients are limited. Wait for the end of the flood before the first test.
  // During the flood, the greedy client sends too small a share of all requests to appear in the list.
  assert.equal(await server.flood(), "flooded");
  began = Date.now();
  stopLoad = load(server, [
    { key: GREEDY, path: "/export", rate: 40 },
    { key: "calm", path: "/", rate: 10 },
  ]);
}, { timeout: 120_000 });

after(async () => {
  stopLoad?.();
  await browser?.close();
  server?.stop();
});

/** Returns the page, logged in and with its first data. */
async function live(options, token) {
  const page = await open(browser, server.admin, options);
  await logIn(page, token);
  await page.getByText("Live", { exact: true }).waitFor();
  await page.locator("#versions li").first().waitFor();
  return page;
}

const cardOf = (page, limit) => page.locator("#limits li", { has: page.locator(".name", { hasText: limit }) });
const greedy = page => page.locator("#limited li", { hasText: /limit export/ }).first();

/** Gives a reason in the dialog and confirms. */
async function confirm(page, reason) {
  await page.getByLabel("Reason, for the audit log").fill(reason);
  await page.locator("#dialog-confirm").click();
  await page.locator("#dialog").waitFor({ state: "hidden" });
  await page.locator("#audit li", { hasText: reason }).first().waitFor();
}

async function assertAccessible(page, what) {
  // Inject axe with `evaluate`, because the content security policy of the page blocks other scripts.
  await page.evaluate(axe);
  const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => `${node.html} ${node.failureSummary}`).join("\n")}`);
  assert.deepEqual(found, [], what);
}

async function close(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

test("each response has a policy with its own nonce", async () => {
  const policies = await Promise.all([1, 2].map(async () => (await fetch(server.admin)).headers.get("content-security-policy")));
  const rest = policies.map(policy => policy.replaceAll(/nonce-[0-9a-f]{32}/g, "nonce"));
  assert.notEqual(policies[0], policies[1]);
  assert.equal(rest[0], "default-src 'none'; script-src 'nonce'; style-src 'nonce'; connect-src 'self'; "
    + "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
});

test("log-in refuses a wrong token and keeps the right one", async () => {
  const page = await open(browser, server.admin);
  await logIn(page, "not the token");
  await page.getByText("The server does not accept this token.").waitFor();
  await assertAccessible(page, "log-in");
  await logIn(page);
  await page.getByText("Live", { exact: true }).waitFor();
  await page.reload();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token of the admin API").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await close(page);
});

test("own authentication asks for no token", async () => {
  const page = await open(browser, server.own);
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByText("Version 2", { exact: false }).first().waitFor();
  await close(page);
});

test("charts move and show refusals", async () => {
  const page = await live();
  const card = cardOf(page, "export");
  await card.getByText(/[1-9][0-9]*\/s refused/).waitFor();
  await cardOf(page, "addresses").getByText(/[1-9][0-9]*\/s admitted/).waitFor();
  const picture = () => card.locator("canvas").evaluate(canvas => canvas.toDataURL());
  const first = await picture();
  await until("the chart moves", async () => (await picture()) !== first);
  const refused = await card.locator("canvas").evaluate(canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let red = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] > 150 && data[at + 1] < 90 && data[at + 3] > 100) red += 1;
    return red;
  });
  assert.ok(refused > 0, "refusals are drawn");
  await close(page);
});

test("limited client is blocked, unblocked and reset", async () => {
  const page = await live();
  await greedy(page).getByText(/refused for .*, until/).waitFor();
  assert.ok(!(await page.content()).includes(GREEDY), "keys are hashed");

  await greedy(page).getByRole("button", { name: "Block" }).click();
  await page.locator("#dialog-confirm").click();
  assert.ok(await page.locator("#dialog").isVisible(), "a reason is required");
  await confirm(page, "an attack");
  await page.locator("#blocks li", { hasText: "an attack" }).waitFor();
  await until("requests are blocked", async () => (await request(server, "/export", GREEDY)) === 403);

  await page.locator("#blocks li", { hasText: "an attack" }).getByRole("button", { name: "Remove" }).click();
  await confirm(page, "the attack is over");
  await page.locator("#blocks-none").waitFor();
  await until("requests are counted", async () => (await request(server, "/export", GREEDY)) !== 403);

  await greedy(page).getByRole("button", { name: "Reset" }).click();
  await confirm(page, "a client of ours");
  await page.locator("#audit li", { hasText: /on-call: reset .*a client of ours/ }).waitFor();
  await close(page);
});

test("listed client gets units back", async () => {
  const page = await live();
  await greedy(page).getByRole("button", { name: "Give back" }).click();
  await page.getByRole("spinbutton", { name: "Units" }).fill("2");
  await assertAccessible(page, "dialog of units");
  await confirm(page, "a good customer");
  await page.locator("#audit li", { hasText: /on-call: grant export .*a good customer/ }).waitFor();
  await close(page);
});

test("network is allowed by its name", async () => {
  const page = await live();
  await page.getByRole("button", { name: "Allow a client or network" }).click();
  await page.getByRole("textbox", { name: "Client or network" }).fill("198.51.100.0/24");
  await confirm(page, "our own probes");
  await page.locator("#blocks li", { hasText: "Allowed: 198.51.100.0/24" }).waitFor();
  await close(page);
});

test("refusals of client are found by key and time", async () => {
  const page = await live();
  await page.locator("#find-key").fill(GREEDY);
  await page.getByRole("button", { name: "Find" }).click();
  await page.locator("#refusals li", { hasText: /limited by export/ }).first().waitFor();
  await page.getByText(/^The last [0-9,]+ refusals on .*, which remembers its refusals since/).waitFor();
  await assertAccessible(page, "refusals");
  // Eight hours ago, in the zone of the browser.
  const past = new Date(Date.now() - 8 * 3_600_000).toTimeString().slice(0, 8);
  await page.locator("#find-at").fill(past);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText(/^No refusal from .* to .* on/).waitFor();
  await close(page);
});

test("client is found by its key and reset", async () => {
  const page = await live();
  await page.locator("#find-key").fill("calm");
  await page.getByRole("button", { name: "Find" }).click();
  const client = page.locator("#found li", { hasText: /header x-api-key/ });
  await client.getByText(/minute: [0-9,]+ of (600|1,200) left/).waitFor();
  await client.getByRole("button", { name: "Give back" }).click();
  await page.getByLabel("Limit", { exact: true }).selectOption("minute");
  await page.getByLabel("Reason, for the audit log").fill("no units");
  await page.locator("#dialog-confirm").click();
  assert.ok(await page.locator("#dialog").isVisible(), "a number of units is required");
  await page.getByRole("spinbutton", { name: "Units" }).fill("20");
  await confirm(page, "für den Ausfall");
  await page.locator("#audit li", { hasText: /on-call: grant minute .*für den Ausfall/ }).waitFor();
  await client.getByRole("button", { name: "Reset" }).click();
  await page.getByLabel("Limit", { exact: true }).selectOption("minute");
  await confirm(page, "calm again");
  await client.getByText(/minute: (600|1,200) of (600|1,200) left/).waitFor();
  await close(page);
});

test("client gets another quota, until it is ended", async () => {
  const page = await live();
  // The client sends no requests, so the server does not list the client.
  const find = async () => {
    await page.locator("#find-key").fill("a quiet customer");
    await page.getByRole("button", { name: "Find" }).click();
  };
  await find();
  const client = page.locator("#found li", { hasText: /header x-api-key/ });
  await client.getByRole("button", { name: "Override" }).click();
  await page.getByLabel("Limit", { exact: true }).selectOption("search");
  await page.getByLabel("Limit", { exact: true }).selectOption("minute");
  await assertAccessible(page, "dialog of an override");
  assert.equal(await page.getByLabel("Quota", { exact: true }).inputValue(), "600/minute", "it begins with the quota of the limit");
  await page.getByLabel("Quota", { exact: true }).fill("6000 a minute");
  await page.getByLabel("Reason, for the audit log").fill("launch day");
  await page.locator("#dialog-confirm").click();
  await page.locator("#dialog-error", { hasText: "6000 a minute" }).waitFor();
  await page.getByLabel("Quota", { exact: true }).fill("6000/minute");
  await confirm(page, "launch day");
  const override = page.locator("#overrides li", { hasText: /has 6000\/minute of limit minute.*by on-call: launch day/ });
  await override.waitFor();
  await until("the quota is in force", async () => {
    await find();
    return /minute: 6,000 of 6,000 left \(full now\)/.test(await client.textContent());
  });
  await override.getByRole("button", { name: "End now" }).click();
  await confirm(page, "the launch is over");
  await page.locator("#overrides-none").waitFor();
  await close(page);
});

test("page names the service, its limits and the text of its rules", async () => {
  const page = await live();
  await page.getByRole("heading", { name: "gateway, tests" }).waitFor();
  await until("the title says the state", async () => (await page.title()).startsWith("1 limit refuses: gateway, tests, test-1"));
  await page.locator("#updated", { hasText: /last update [0-9:]{8} [A-Z]/ }).waitFor();
  await cardOf(page, "export").getByText("5 per 10 seconds, by header x-api-key").waitFor();
  // The flood began less than a minute ago.
  const names = await page.locator("#limits li .name").allTextContents();
  assert.deepEqual(names.filter(name => name !== "once")[0], "export", "the refusing limit is first");
  await cardOf(page, "addresses").getByText(/refused by export/).waitFor();
  await page.getByLabel("Filter limits by name").fill("sea");
  await until("one limit is left", async () => (await page.locator("#limits li").count()) === 1);
  await page.getByRole("button", { name: "Show version 1", exact: true }).click();
  await page.locator("#text", { hasText: "quota: 1200/minute" }).waitFor();
  await close(page);
});

test("page begins with the history of the server", async () => {
  await until("the load is older than the page", () => Date.now() - began > 20_000, 30_000);
  const page = await live();
  await page.locator("#limits li canvas").first().waitFor();
  const columns = () => cardOf(page, "export").locator("canvas").evaluate(canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const columns = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at] > 150 && data[at + 1] < 90 && data[at + 3] > 100) columns.add((at / 4) % canvas.width);
    return columns.size;
  });
  // Ten seconds of the chart are less than 10 pixels wide, because the load began long before.
  await until("the minute before is drawn", async () => (await columns()) > 10, 5000);
  await close(page);
});

test("dialog says what a block is about", async () => {
  const page = await live();
  await page.getByRole("button", { name: "Block a client or network" }).click();
  await page.getByRole("textbox", { name: "Client or network" }).fill("some key");
  await page.locator("#dialog-meant", { hasText: /header x-api-key [0-9a-f]{16}: counted by minute/ }).waitFor();
  await page.getByRole("textbox", { name: "Client or network" }).fill("0.0.0.0/0");
  await page.locator("#dialog-meant", { hasText: "All requests from 0.0.0.0/0." }).waitFor();
  await page.getByLabel("Reason, for the audit log").fill("a mistake");
  await page.locator("#dialog-confirm").click();
  await page.locator("#dialog-error", { hasText: "is larger than" }).waitFor();
  assert.ok(await page.getByLabel("Block it all the same").isVisible());
  await page.locator("#dialog-cancel").click();
  await close(page);
});

for (const [what, stop] of [["hangs", "SIGSTOP"], ["is gone", "SIGKILL"]]) {
  test(`page says within seconds that the server ${what}`, async () => {
    const other = await startGateway(process.env.GATEWAY);
    const page = await open(browser, other.admin);
    await logIn(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText("Healthy", { exact: true }).waitFor();
    other.signal(stop);
    await page.getByText(/No data since [0-9:]{8}/).waitFor({ timeout: 10_000 });
    assert.equal(await page.locator("#healthy").isVisible(), false);
    assert.match(await page.title(), /^No data: /);
    if (stop === "SIGSTOP") {
      other.signal("SIGCONT");
      await page.getByText("Live", { exact: true }).waitFor();
    }
    await page.context().close();
    other.signal("SIGKILL");
  });
}

test("page shows layers that shed load", async () => {
  const other = await startGateway(process.env.GATEWAY);
  const page = await open(browser, other.admin);
  await logIn(page);
  const layer = page.locator("#shedding li");
  await layer.getByText("Layer slow work is calm: limit 2, 0 in progress").waitFor();
  // Each request takes a second in the gateway.
  const stop = load(other, [{ key: "ann", path: "/slow", rate: 20 }]);
  await layer.getByText("Layer slow work sheds load: limit 2, 2 in progress").waitFor();
  await layer.getByText(/[0-9.,]+ ms to the head of a response, [0-9.,]+ ms without pressure, [0-9,]+ low refused in ten seconds \(limit\)/).waitFor();
  await until("the title says the state", async () => (await page.title()).startsWith("Sheds load: "));
  await assertAccessible(page, "page of a service that sheds load");
  stop();
  await close(page);
  other.stop();
});

test("page says what an outage of Redis means, and when it is over", async () => {
  const port = await freePort();
  let redis = startRedis(port);
  const shared = await startServer(process.env.SERVER, `redis://127.0.0.1:${port}`);
  const page = await open(browser, shared.admin);
  await logIn(page);
  await page.getByText("No rules are in force yet: every request gets status 503 until you put rules.").waitFor();
  await admin(shared, "PUT", "rules", "limits: [{ name: second, quota: 10/second }]", { contentType: "application/yaml" });
  await page.getByText("Healthy", { exact: true }).waitFor();
  redis.stop();
  const stop = load(shared, [{ key: "pro_1", path: "/", rate: 20 }]);
  await page.locator("#problems", { hasText: /The source of the rules fails since .*Version 1 stays in force/ }).waitFor();
  await page.locator("#problems", { hasText: /[0-9]+ requests\/s pass uncounted: / }).waitFor();
  assert.equal(await page.locator("#problems li").count(), 2);
  await cardOf(page, "second").getByText(/passed uncounted in five minutes/).waitFor();
  // A page opened now cannot load the list of versions, and must not claim that the list is empty.
  await page.reload();
  await page.locator("#problems li").nth(1).waitFor();
  await page.getByText("Block a client or network").waitFor();
  assert.equal(await page.locator("#versions-none").isVisible(), false);
  assert.equal(await page.locator("#failure").isVisible(), false);
  redis = startRedis(port);
  await page.getByText("Healthy", { exact: true }).waitFor({ timeout: 30_000 });
  await page.locator("#versions li", { hasText: "In force" }).waitFor();
  stop();
  await close(page);
  shared.stop();
  redis.stop();
});

test("rollback puts an earlier version in force", async () => {
  const page = await live();
  await page.getByRole("button", { name: "Changes version 2", exact: true }).click();
  await page.locator("#diff li", { hasText: "limits[minute].quota" }).getByText("600/minute").waitFor();
  await page.getByRole("button", { name: "Roll back version 1", exact: true }).click();
  await confirm(page, "too strict");
  await page.locator("#versions li", { hasText: "Version 3" }).getByText("In force").waitFor();
  await page.locator("#audit li", { hasText: /on-call: rollback/ }).waitFor();
  await close(page);
});

test("rules of a file are changed in the file alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rules-"));
  const path = join(folder, "rules.yaml");
  const put = quota => writeFileSync(path, `limits: [{ name: second, quota: ${quota} }]\n`);
  put("10/second");
  const follower = await startServer(process.env.SERVER, path);
  const page = await open(browser, follower.admin);
  await logIn(page);
  await page.getByText(`The rules are only read from file ${path}: change them there.`).waitFor();
  put("20/second");
  await page.locator("#versions li", { hasText: "Version 2" }).getByText("In force").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Roll back/ }).count(), 0);
  await close(page);
  follower.stop();
  rmSync(folder, { recursive: true });
});

test("hostile comment is shown as text", async () => {
  const comment = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";
  const rules = await admin(server, "GET", "rules");
  await admin(server, "PUT", "rules", rules, { contentType: "application/yaml", comment });
  const page = await live();
  await page.locator("#versions li", { hasText: comment }).waitFor();
  assert.match(await page.title(), /gateway, tests/);
  assert.equal(await page.locator("main img").count(), 0);
  await close(page);
});

test("each role sees the buttons that it may use", async () => {
  const [show, ofClient, ofAll, rollBack] = [/^Show version/, /^Block client/, /^Block a client/, /^Roll back/];
  for (const [token, may, visible, hidden] of [
    ["a token of the dashboard", "; you may only read", [show], [ofClient, ofAll, rollBack]],
    ["a token of support", "; you may not change rules", [show, ofClient, ofAll], [rollBack]],
    [TOKEN, "", [show, ofClient, ofAll, rollBack], []],
  ]) {
    const page = await live({}, token);
    await greedy(page).waitFor();
    await page.getByText(`test-1${may}`, { exact: true }).waitFor();
    for (const name of visible) await page.getByRole("button", { name }).first().waitFor();
    for (const name of hidden) assert.equal(await page.getByRole("button", { name }).count(), 0, `${token} sees no ${name}`);
    await close(page);
  }
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [390, 1280]) {
    test(`${colorScheme} page of ${width} pixels is accessible and does not scroll sideways`, async () => {
      const page = await live({ colorScheme, viewport: { width, height: 800 } });
      await greedy(page).waitFor();
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(Number(/\d+/.exec(ground)[0]) < 128, colorScheme === "dark", ground);
      const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(await overflow(), 0);
      await assertAccessible(page, "page");
      await page.getByRole("button", { name: "Block a client or network" }).click();
      assert.equal(await overflow(), 0);
      await assertAccessible(page, "dialog");
      await close(page);
    });
  }
}

test("keyboard alone logs in, blocks and cancels", async () => {
  const page = await open(browser, server.admin);
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim());
  const tabTo = async label => {
    for (let presses = 0; !label.test(await focused()); presses += 1) {
      assert.ok(presses < 200, `Tab reaches ${label}`);
      await page.keyboard.press("Tab");
    }
  };
  // The field has the focus at the start.
  await page.keyboard.type(TOKEN);
  await page.keyboard.press("Enter");
  await greedy(page).waitFor();
  await tabTo(/^Block client [0-9a-f]{16}$/);
  const opener = await focused();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.locator("#dialog").waitFor({ state: "hidden" });
  assert.equal(await focused(), opener, "the focus returns");
  await page.keyboard.press("Enter");
  await page.keyboard.type("by keyboard");
  await page.keyboard.press("Enter");
  // The client has sent most of the traffic by now, so the page asks once more.
  await page.getByText("more than half of the traffic").waitFor();
  while (await page.evaluate(() => document.activeElement.id) !== "dialog-force") await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await page.locator("#blocks li", { hasText: "by keyboard" }).waitFor();
  await tabTo(/^Remove [0-9a-f]{16}$/);
  await page.keyboard.press("Enter");
  await page.keyboard.type("no more");
  await page.keyboard.press("Enter");
  await page.locator("#audit li", { hasText: "no more" }).waitFor();
  await close(page);
});

test("hundred thousand limited clients do not slow the page", async () => {
  const page = await live();
  await page.getByLabel("Counted over").selectOption("10m");
  await page.locator("#limited li", { hasText: "limit once" }).first().waitFor();
  // The page redraws the chart every second, for every snapshot.
  const picture = () => page.locator("#limits canvas").first().evaluate(canvas => canvas.toDataURL());
  for (let drawn = 0; drawn < 3; drawn += 1) {
    const last = await picture();
    await until("a snapshot is drawn", async () => (await picture()) !== last, 5000);
  }
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(elements < 2000, `${elements} elements`);
  const blocking = await page.evaluate(() => new Promise(resolve => {
    const start = performance.now();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)));
  }));
  assert.ok(blocking < 1000, `two frames take ${blocking} ms`);
  await close(page);
});
