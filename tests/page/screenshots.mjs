// Takes ten pictures of the page, after some minutes of load. Run by scripts/page.

import { admin, freePort, load, logIn, open, startBrowser, startGateway, startRedis, startServer, until } from "./setting.mjs";

// The pictures in the docs. If you change the page, look at all other pictures too.
const SHOWN = ["attack", "block", "phone", "redis-down"];
const DESK = { colorScheme: "light", viewport: { width: 1100, height: 860 } };

const server = await startGateway(process.env.GATEWAY);
const browser = await startBrowser();
const start = Date.now();
const since = () => (Date.now() - start) / 1000;
const wave = (base, height, seconds) => () => base + height * (1 + Math.sin((2 * Math.PI * since()) / seconds)) / 2;
const ordinary = [
  { key: "shop", path: "/", rate: wave(3, 5, 45) },
  { key: "app", path: "/", rate: wave(2, 4, 70) },
  { key: "mobile", path: "/search", rate: wave(1, 2, 30) },
];
const stops = [load(server, ordinary)];
const at = seconds => until(`second ${seconds} of the load`, () => since() > seconds, 180_000);

async function live(address, options) {
  const page = await open(browser, address, options);
  await logIn(page);
  await page.getByText("Live", { exact: true }).waitFor();
  return page;
}

async function take(page, name) {
  const folder = SHOWN.includes(name) ? process.env.IMAGES : process.env.OTHERS;
  await page.screenshot({ path: `${folder}/page-${name}.png` });
  if (process.env.OTHERS) await page.screenshot({ path: `${process.env.OTHERS}/full-${name}.png`, fullPage: true });
}

const desk = await live(server.admin, DESK);
const phone = await live(server.admin, { colorScheme: "dark", viewport: { width: 390, height: 844 } });

// Start a second gateway with rules and counters in Redis, while the load of the first gateway grows.
const port = await freePort();
let redis = startRedis(port);
const instance = await startServer(process.env.SERVER, `redis://127.0.0.1:${port}`);
stops.push(load(instance, ordinary.map(client => ({ ...client, key: `pro_${client.key}` }))));
const shared = await live(instance.admin, { ...DESK, colorScheme: "dark" });
await shared.getByText("No rules are in force yet").waitFor();
await at(5);
await take(shared, "no-rules");
await admin(instance, "PUT", "rules", "limits:\n  - { name: second, quota: 10/second burst 20, key: header x-api-key }\n", { contentType: "application/yaml" });

await at(75);
await take(desk, "calm");
stops.push(load(server, [
  { key: "scraper", path: "/search", rate: 60 },
  { key: "old integration", path: "/search", rate: () => (since() > 90 ? 12 : 0) },
]));
redis.stop();
await shared.getByText("does not answer").first().waitFor();
await at(110);
await take(shared, "redis-down");
await at(150);
await take(desk, "attack");
await take(phone, "phone");
await desk.getByLabel("Filter limits by name").fill("mi");
await take(desk, "filtered");
await desk.getByLabel("Filter limits by name").fill("");
await desk.locator("#limited li").first().getByRole("button", { name: "Block" }).click();
await desk.getByLabel("Reason, for the audit log").fill("a scraper, ticket 4711");
await take(desk, "block");
await desk.locator("#dialog-cancel").click();
const rules = await admin(server, "GET", "rules");
const twice = rules.replace("5/second", "10/second");
await admin(server, "PUT", "rules", twice, { contentType: "application/yaml", comment: "twice the searches" });
await desk.locator("#versions li", { hasText: "twice the searches" }).waitFor();
await at(170);
await desk.locator("#rules").scrollIntoViewIfNeeded();
await desk.locator("#rules").evaluate(section => section.scrollIntoView());
await take(desk, "rules");
await desk.evaluate(() => scrollTo(0, 0));
for (const [name, signal] of [["hung", "SIGSTOP"], ["gone", "SIGKILL"]]) {
  server.signal(signal);
  await desk.getByText(/No data since/).waitFor();
  await take(desk, name);
}

for (const stop of stops) stop();
await browser.close();
instance.stop();
redis.stop();
