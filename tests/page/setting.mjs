// Starts the gateway, the load and a browser. Every wait has a condition and a deadline.

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

export const TOKEN = "a token of the tests";

/** Starts the gateway. */
export async function startGateway(program) {
  const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => (await lines.next()).value;
  const [gateway, admin, own, metrics] = [await line(), await line(), await line(), await line()];
  return {
    gateway, admin, own: `${own}/limits`, metrics,
    /** Refuses one request of each of 100,000 clients. */
    flood: async () => {
      child.stdin.write("flood\n");
      return line();
    },
    signal: name => child.kill(name),
    stop: () => child.stdin.end(),
  };
}

export function freePort() {
  return new Promise(resolve => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const { port } = listener.address();
      listener.close(() => resolve(port));
    });
  });
}

/** Starts a Redis server, which keeps nothing on disk. */
export function startRedis(port) {
  const child = spawn("redis-server", ["--port", port, "--bind", "127.0.0.1", "--save", ""], { stdio: "ignore" });
  return { stop: () => child.kill("SIGKILL") };
}

/** Starts the server of gateways, with rules in a file, or with counters and rules in the Redis at a URL. */
export async function startServer(program, rules) {
  const [http, admin] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const source = rules.startsWith("redis:") ? ["--rules", "redis", "--redis", rules] : ["--rules", rules];
  // The default deadline of 15 ms is too short for a busy machine.
  const ports = ["--http", http, "--admin", admin, "--grpc", "127.0.0.1:0", "--deadline", "1s"];
  const environment = { ...process.env, TOWER_QUOTA_ADMIN_TOKEN: TOKEN };
  const child = spawn(program, [...source, ...ports], { stdio: ["ignore", "ignore", "inherit"], env: environment });
  const server = { gateway: `http://${http}`, forwards: true, admin: `http://${admin}`, stop: () => child.kill("SIGKILL") };
  await until("the server listens", () => fetch(server.admin).then(() => true, () => false));
  return server;
}

/** Calls the admin API as the person on call. Returns the text of the answer. */
export async function admin(server, method, path, body, { contentType = "application/json", comment = "" } = {}) {
  const headers = { authorization: `Bearer ${TOKEN}`, "if-match": "*", "content-type": contentType, "x-comment": comment };
  const response = await fetch(`${server.admin}/v1/${path}`, { method, headers, body, signal: AbortSignal.timeout(10_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text;
}

/** Sends requests of clients at rates a second until it is stopped. Returns the function that stops it. */
export function load(server, clients) {
  const timers = clients.map(({ key, path, rate }) => {
    let due = 0;
    return setInterval(() => {
      for (due += (typeof rate === "function" ? rate() : rate) / 10; due >= 1; due -= 1) {
        request(server, path, key).catch(() => {});
      }
    }, 100);
  });
  return () => timers.forEach(clearInterval);
}

/** Returns the status of a client's request. A server that only decides is asked as by a gateway. */
export async function request({ gateway, forwards }, path, key) {
  const forwarded = { "x-forwarded-method": "GET", "x-forwarded-uri": path, "x-forwarded-host": "localhost", "x-forwarded-for": "127.0.0.1" };
  const headers = { "x-api-key": key, ...(forwards ? forwarded : {}) };
  const response = await fetch(gateway + (forwards ? "/v1/auth" : path), { headers, signal: AbortSignal.timeout(5000) });
  await response.arrayBuffer();
  return response.status;
}

export function startBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
}

/** Opens a page in a fresh profile. `page.faults` lists errors of scripts and of the content security policy. */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", error => page.faults.push(String(error)));
  page.on("console", message => {
    // The browser also logs errors of the API.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) page.faults.push(message.text());
  });
  await page.goto(address);
  return page;
}

export async function logIn(page, token = TOKEN) {
  await page.getByLabel("Token of the admin API").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** Waits until a check holds. */
export async function until(what, check, deadline = 15_000) {
  const end = Date.now() + deadline;
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`not within ${deadline} ms: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}
