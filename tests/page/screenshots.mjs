// Takes the pictures of docs/images, of a gateway with some minutes of load: see scripts/page.

import { load, logIn, open, startBrowser, startGateway, until } from "./setting.mjs";

const MINUTES = 2.5;

const server = await startGateway(process.env.GATEWAY);
const browser = await startBrowser();
const start = Date.now();
const since = () => (Date.now() - start) / 1000;
const wave = (base, height, seconds) => () => base + height * (1 + Math.sin((2 * Math.PI * since()) / seconds)) / 2;
const stop = load(server.gateway, [
  { key: "shop", path: "/", rate: wave(10, 30, 45) },
  { key: "app", path: "/", rate: wave(5, 15, 70) },
  { key: "mobile", path: "/search", rate: wave(1, 4, 30) },
  // An attack begins after a minute.
  { key: "scraper", path: "/search", rate: () => (since() > 60 ? 60 : 0) },
  { key: "old integration", path: "/search", rate: () => (since() > 90 ? 12 : 0) },
]);
const views = [
  ["page-light.png", { colorScheme: "light", viewport: { width: 1200, height: 940 } }],
  ["page-dark-phone.png", { colorScheme: "dark", viewport: { width: 390, height: 1000 } }],
];
const pages = await Promise.all(views.map(async ([name, options]) => {
  const page = await open(browser, server.admin, options);
  await logIn(page);
  return { name, page };
}));
await until("the charts are full", () => since() > 60 * MINUTES, 60_000 * (MINUTES + 1));
for (const { name, page } of pages) {
  await page.screenshot({ path: `${process.env.IMAGES}/${name}` });
  if (process.env.FULL) await page.screenshot({ path: `${process.env.FULL}/full-${name}`, fullPage: true });
}
stop();
await browser.close();
server.stop();
