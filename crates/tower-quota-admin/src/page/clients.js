// Clients: those that are refused most and busiest, those that a key names, and what is done to them.

const LISTED_CLIENTS = 10;
// Counters of many clients, which no block and no other change of a single client is about.
const GROUPS = { everyone: "all clients", without_key: "clients without a key" };

/** Returns the query for readable keys, where the server has them. */
const keysQuery = () => (state.snapshot?.health.shows_keys ? { show_keys: true } : {});
const nameOf = client => GROUPS[client.who] ?? client.key ?? client.hash;
// A client that was found by its key need not be listed: the server does not know its hash.
const body = (client, rest) => ({ key: client.left ? client.key : `hash:${client.hash}`, ...rest });

/** Joins the limits of a client, which the server lists one by one. */
function byClient(listed, join) {
  const clients = new Map();
  for (const row of listed) {
    const id = `${row.scope} ${row.hash}`;
    const client = clients.get(id) ?? { ...row, limits: [], wait: 0, at_least: 0, at_most: 0 };
    client.limits.push(row.limit);
    client.at_least = join(client.at_least, row.at_least);
    client.at_most = join(client.at_most, row.at_most);
    client.wait = Math.max(client.wait, row.retry_after_ms ?? 0);
    if (row.since && !(client.since < row.since)) client.since = row.since;
    clients.set(id, client);
  }
  return [...clients.values()].slice(0, LISTED_CLIENTS);
}

/** Returns the number of a client's requests: between two bounds if there are more clients than are remembered. */
function between({ at_least: low, at_most: high }) {
  // Sums of instances have no upper bound.
  if (Number.isNaN(high)) return `${number(low)} or more`;
  return low === high ? number(high) : `${number(low)} to ${number(high)}`;
}

const limitNames = ({ limits }) => `${limits.length === 1 ? "limit" : "limits"} ${limits.join(", ")}`;
const sinceText = since => (since ? `; at its limit since ${instant(since)}` : "");
// Shorter waits would come and go with each reading.
const untilText = wait => (wait > 1000 ? `; refused for ${duration(wait)}, until ${instant(Date.now() + wait)}` : "");

/** Shows clients with the buttons of what can be done to them. */
function showClients(id, clients, describe, hold = true) {
  const blocked = new Set(state.blocks?.blocks.filter(block => block.kind === "block").map(block => block.id));
  show(at(id), clients, {
    id: client => `${client.scope} ${client.hash}`,
    hold,
    create: () => makeRow({ Block: blockClient, Unblock: client => unblock(client.hash), Override: override, "Give back": grant, Reset: reset }),
    update: (row, client) => {
      row.main.replaceChildren(make("code", "", nameOf(client)), ` ${describe(client)}`);
      const hash = client.key ? ` ${client.hash}` : "";
      setText(row.detail, `${scopeName(client.scope)}${hash}, ${limitNames(client)}${sinceText(client.since)}${untilText(client.wait)}`);
      const { Block, Unblock, Override } = row.buttons;
      Block.hidden = client.who in GROUPS || !state.blocks || blocked.has(client.hash);
      Unblock.hidden = !blocked.has(client.hash);
      Override.hidden = client.who in GROUPS || !state.overrides;
      nameButtons(row, `client ${client.hash}`);
    },
  });
}

async function pollTop() {
  const window = at("window").value;
  const lists = ["limited", "busy"].map(by => read("v1/top", { by, window, count: 3 * LISTED_CLIENTS, ...keysQuery() }));
  const [limited, busy] = await Promise.all(lists);
  if (at("window").value !== window) return;
  showClients("limited", byClient(limited.clients, (sum, more) => sum + more), client => `${between(client)} refused`);
  showClients("busy", byClient(busy.clients, Math.max), client => `${between(client)} requests`);
}

// --- Changes ---

function blockClient(client) {
  confirmChange({
    title: "Block this client?", action: "Block", asks: ["seconds"], done: blockText,
    text: `All requests of ${scopeName(client.scope)} ${nameOf(client)} get status 403, ${reach()}.`,
    act: ({ reason, seconds, force }) => putBlock({ target: `hash:${client.hash}`, scope: client.scope, force, seconds: Number(seconds), reason }),
  });
}

/** Asks for a limit of the client where it has several. */
function changeLimit(client, { asks = [], ...rest }) {
  const several = client.limits.length > 1;
  confirmChange({ ...rest, asks: several ? ["limit", ...asks] : asks, limits: client.limits });
}

function reset(client) {
  changeLimit(client, {
    title: "Reset this client?", action: "Reset", done: status => `Limit ${status.limit} of ${nameOf(client)} is reset.`,
    text: `The limit begins anew for ${nameOf(client)}, and its penalty ends.`,
    act: ({ reason, limit = client.limits[0] }) => changed(client, post("v1/clients/reset", body(client, { limit }), reason)),
  });
}

function grant(client) {
  changeLimit(client, {
    title: "Give units back to this client?", action: "Give back", asks: ["units"],
    text: `${nameOf(client)} gets used units back, up to a full limit. For more than its quota, give it an override.`,
    done: ({ limit, given }) => `${number(given)} units of limit ${limit} are given back.`,
    act: ({ reason, units, limit = client.limits[0] }) => changed(client,
      post("v1/clients/grant", body(client, { limit, units: Number(units) }), reason)),
  });
}

function override(client) {
  changeLimit(client, {
    title: "Give this client another quota?", action: "Override", asks: ["quota", "seconds"],
    text: `One limit has another quota for ${nameOf(client)}, ${reach()}, until the override ends.`,
    done: ({ limit, quota, until }) => `Limit ${limit} of ${nameOf(client)} is ${quota} until ${instant(until)}.`,
    act: async ({ reason, quota, seconds, limit = client.limits[0] }) => (await send("PUT", "v1/overrides", {
      body: body(client, { limit, quota, for: `${seconds}s`, reason }),
    })).json(),
  });
}

// --- Clients that a key names ---

let found = [];

/** Finds the clients that the key names, with what they have left and why they were refused. */
async function find() {
  const key = at("find-key").value.trim();
  const { clients, network } = await post("v1/clients/find", { key });
  setText(at("found-network"), network ? `The network is ${listedText(network)}.` : "");
  clearRefusals();
  if (clients.length || network) await findRefusals(key);
  found = clients.map(client => ({ ...client, key, limits: client.limits.slice(0, 20), left: {}, wait: 0 }));
  await Promise.all(found.flatMap(client => client.limits.map(limit => peek(client, limit))));
}

/** Reads what a client has left. It is named by its key: the server may not list its hash. */
async function peek(client, limit) {
  const status = await post("v1/clients/peek", { limit, key: client.key });
  client.left[limit] = status;
}

function showFound() {
  const left = client => client.limits.map(limit => client.left[limit]).filter(Boolean)
    .map(({ limit, remaining, capacity, source }) => `${limit}: ${number(remaining)} of ${number(capacity)} left${remaining === capacity ? " (full now)" : ""}${sourceText(source)}`).join("; ");
  const reasons = ({ listed, refused_at: refused }) =>
    `${listed ? `; ${listedText(listed)}` : ""}${refused ? `; last refused ${instant(refused)}` : ""}`;
  for (const client of found) client.wait = Math.max(0, ...Object.values(client.left).map(status => status.retry_after_ms ?? 0));
  showClients("found", found, client => left(client) + reasons(client), false);
}

const sourceText = source => (source && source !== "limit" ? `, ${source}` : "");

/** Says which entry blocks or allows clients, and who has made it. */
function listedText({ kind, id, target, reason, author, until }) {
  const end = until ? `until ${instant(until)}, ` : "";
  return `${kind === "block" ? "blocked" : "allowed"} ${end}by ${id} (${target}) of ${author}${reason ? `: ${reason}` : ""}`;
}

// --- Earlier refusals ---

/** Returns ten minutes around the last such time of day, or no bounds. */
function around(text) {
  if (!text) return {};
  const time = new Date(`${new Date().toDateString()} ${text}`);
  if (time > Date.now()) time.setDate(time.getDate() - 1);
  const [after, before] = [-300_000, 300_000].map(ms => new Date(time.getTime() + ms).toISOString());
  return { after, before };
}

function clearRefusals() {
  setText(at("refusals-note"), "");
  show(at("refusals"), [], { id: ({ place }) => place });
}

async function findRefusals(key) {
  const times = around(at("find-at").value);
  const { instance, since, refusals } = await post("v1/clients/refusals", { key, count: 20, ...times });
  const span = times.after ? ` from ${instant(times.after)} to ${instant(times.before)}` : "";
  const all = refusals.reduce((sum, { count }) => sum + count, 0);
  setText(at("refusals-note"),
    `${all ? `The last ${number(all)} refusals` : "No refusal"}${span} on ${instance}, which remembers its refusals since ${instant(since)}.`);
  show(at("refusals"), refusals.map((refusal, place) => ({ ...refusal, place })), {
    id: ({ place }) => place,
    create: makeRow,
    update: (row, { at: time, count, outcome, limit, route, retry_after_ms: wait, version, request_id: request, trace_id: trace }) => {
      setText(row.main, `${instant(time)}: ${outcome}${limit ? ` by ${limit}` : ""}${count > 1 ? `, ${number(count)} times` : ""}`);
      setText(row.detail, [
        route && `route ${route}`, wait && `told to wait ${duration(wait)}`, version && `version ${version} of the rules`,
        request && `request ${request}`, trace && `trace ${trace}`,
      ].filter(Boolean).join(", "));
    },
  });
}

/** Waits for a change of a client, and shows its new status if it was found by its key. */
async function changed(client, answer) {
  const status = await answer;
  if (client.left) client.left[status.limit] = status;
  showFound();
  return status;
}

at("find").addEventListener("submit", event => {
  event.preventDefault();
  find().then(showFound, report);
});
at("find-key").addEventListener("input", () => {
  found = [];
  showFound();
  at("find-none").hidden = true;
  setText(at("found-network"), "");
  clearRefusals();
});
