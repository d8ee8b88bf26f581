// Plays two incidents against a gateway, with a real Prometheus and the alerts of ops/. A client attacks, and a limit
// in the rules loses a zero. Prints the observations and actions, and takes pictures of the live page. Run by
// scripts/page.

import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { admin, freePort, load, logIn, open, startBrowser, startGateway, TOKEN, until } from "./setting.mjs";

const MINUTE = 60_000;
const start = Date.now();
const clock = () => new Date(Date.now() - start).toISOString().slice(14, 19);
const say = text => console.log(`${clock()}  ${text}`);

const server = await startGateway(process.env.GATEWAY);
const browser = await startBrowser();
const prometheus = await startPrometheus();

/** Runs the command line against the gateway, and prints what it says. */
function tool(...words) {
  const environment = { ...process.env, TOWER_QUOTA_ADMIN: server.admin, TOWER_QUOTA_TOKEN: TOKEN };
  const shown = words.map(word => (word.includes(" ") ? `"${word}"` : word)).join(" ");
  say(`$ tower-quota ${shown}`);
  const ran = spawnSync(process.env.TOOL, words, { env: environment, encoding: "utf8", timeout: 30_000 });
  console.log((ran.stdout + ran.stderr).trimEnd());
}

async function startPrometheus() {
  const port = await freePort();
  const target = new URL(server.metrics).host;
  writeFileSync("prometheus.yml", `global: { scrape_interval: 5s, evaluation_interval: 5s }
rule_files: ['${process.env.ALERTS}']
scrape_configs: [{ job_name: gateway, static_configs: [{ targets: ['${target}'] }] }]
`);
  const options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=127.0.0.1:${port}`];
  const child = spawn("prometheus", options, { stdio: "ignore" });
  return { url: `http://127.0.0.1:${port}`, stop: () => child.kill() };
}

/** Returns the alerts that fire now, by their summary. */
async function firing() {
  const answer = await fetch(`${prometheus.url}/api/v1/alerts`, { signal: AbortSignal.timeout(5000) });
  const { data } = await answer.json();
  return new Map(data.alerts.filter(({ state }) => state === "firing")
    .map(({ labels, annotations }) => [`${labels.alertname} ${labels.route ?? labels.layer ?? ""}`.trim(), annotations.summary]));
}

let known = new Map();
const watcher = setInterval(async () => {
  const now = await firing().catch(() => known);
  for (const [name, summary] of now) if (!known.has(name)) say(`FIRING    ${name}: ${summary}`);
  for (const name of known.keys()) if (!now.has(name)) say(`RESOLVED  ${name}`);
  known = now;
}, 1000);
const fires = name => until(`${name} fires`, () => known.has(name), 9 * MINUTE);
const resolves = name => until(`${name} resolves`, () => !known.has(name), 9 * MINUTE);

/** Prints what the page says about limits and clients, and takes a picture. */
async function look(name) {
  say(`the page: ${await page.title()}`);
  for (const line of await page.locator("#limits li:not(.idle), #limited li").evaluateAll(rows => rows.slice(0, 6).map(row => row.innerText))) {
    console.log(`  ${line.replaceAll(/\n+/g, " | ")}`);
  }
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${process.env.IMAGES}/incident-${name}.png` });
}

async function confirm(page, reason) {
  await page.getByLabel("Reason, for the audit log").fill(reason);
  await page.locator("#dialog-confirm").click();
  await page.locator("#dialog").waitFor({ state: "hidden" });
}

// Forty clients stay below the limits, with two requests a second.
const clients = Array.from({ length: 40 }, (_, number) => ({ key: `client ${number}`, path: "/", rate: 2 }));
const stopLoad = load(server, clients.map(client => ({ ...client, rate: () => (Math.random() < 0.2 ? 10 : 0) })));
const page = await open(browser, server.admin, { colorScheme: "light", viewport: { width: 1100, height: 860 } });
await logIn(page);
await page.getByText("Live", { exact: true }).waitFor();
say("40 clients send 2 requests a second each");
await until("the charts have a minute", () => Date.now() - start > MINUTE, 2 * MINUTE);

say("one client begins to send as much as it can");
const attack = spawn("wrk", ["-t", "1", "-c", "8", "-d", "1200", "-H", "x-api-key: a stolen key", `${server.gateway}/search`],
  { stdio: "ignore" });
await fires("TowerQuotaBusyClient gateway");
await look("attack");
// The first row shows the most refused client.
await page.locator("#limited li").first().getByRole("button", { name: "Block" }).click();
await confirm(page, "one client, a stolen key");
say("blocked, on the page");
tool("blocks");
await resolves("TowerQuotaBusyClient gateway");
attack.kill();
say("the client gives up");

writeFileSync("rules.yaml", (await admin(server, "GET", "rules")).replace("600/minute", "60/minute"));
tool("put", "rules.yaml", "--expect", "2", "--comment", "tidy the limits");
await fires("TowerQuotaRefusalsHigh /");
await look("rules");
await page.getByRole("button", { name: "Changes version 3", exact: true }).click();
await page.locator("#diff li").first().waitFor();
console.log(`  ${await page.locator("#shown-title").innerText()}: ${(await page.locator("#diff").innerText()).replaceAll("\n", " ")}`);
await page.getByRole("button", { name: "Roll back version 2", exact: true }).click();
await confirm(page, "60 a minute was meant to be 600");
say("rolled back, on the page");
await resolves("TowerQuotaRefusalsHigh /");
tool("audit", "--count", "3");

clearInterval(watcher);
stopLoad();
await browser.close();
prometheus.stop();
server.stop();
