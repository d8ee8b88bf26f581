// The page: the log-in, the snapshots, and the lists that they do not contain.

const SLOW_POLL_MS = 5000;
const PAUSE_MS = 1000;
const STALE_MS = 4000;
// Blocks of penalties can be many: the page lists those that began last.
const LISTED_BLOCKS = 100;
const MAY = { read: "you may only read", operate: "you may not change rules" };

const state = {
  snapshot: null, seconds: [], blocks: null, overrides: null, history: null, audit: null,
  session: null, seen: 0, stale: false,
};

// --- Log-in and connection ---

function askForToken(text = "") {
  state.session?.abort();
  state.session = null;
  token.clear();
  at("page").hidden = at("log-out").hidden = true;
  at("login").hidden = false;
  if (at("dialog").open) at("dialog").close();
  setText(at("login-error"), text);
  setBadge("connection", "Not connected");
  setBadge("healthy", "");
  at("token").value = "";
  at("token").focus();
}

function setBadge(id, text, className = "") {
  setText(at(id), text);
  at(id).className = `badge ${className}`;
}

/** Shows an error of a request that no dialog waits for. */
function report(error) {
  if (error.status === 401 && !OWN_AUTHENTICATION) askForToken(token.get() ? "The server does not accept this token." : "");
  // Without an answer the page soon says that it has no data.
  else if (error.status) setText(at("failure"), error.message);
  else if (error.name !== "TypeError" && error.name !== "AbortError" && error.name !== "TimeoutError") throw error;
}

/** Follows the stream until the person logs out. */
async function run() {
  const session = state.session = new AbortController();
  while (!session.signal.aborted) {
    try {
      await follow(snapshot, session.signal);
    } catch (error) {
      if (!session.signal.aborted) report(error);
    }
    // A stream ends after ten minutes; the pause keeps a broken server from being asked all the time.
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS));
  }
}

function start() {
  at("login").hidden = true;
  at("page").hidden = false;
  at("log-out").hidden = OWN_AUTHENTICATION;
  setBadge("connection", "Connecting");
  state.seen = performance.now();
  run();
}

at("login-form").addEventListener("submit", async event => {
  event.preventDefault();
  token.set(at("token").value.trim());
  try {
    await read("v1/health");
    start();
  } catch (error) {
    if (error.status === 401) report(error);
    else setText(at("login-error"), error.message);
  }
});
at("log-out").addEventListener("click", () => {
  token.clear();
  location.reload();
});

// --- Snapshots ---

function snapshot(data) {
  const earlier = state.snapshot?.health;
  state.seen = performance.now();
  state.snapshot = data;
  // Behind a balancer, the next stream may be of another instance.
  if (earlier?.instance !== data.health.instance) state.seconds = [];
  const first = data.seconds[0]?.at_ms ?? Infinity;
  const kept = state.seconds.filter(({ at_ms: at }) => at < first && at > data.at_ms - SPAN_MS);
  state.seconds = [...kept, ...data.seconds];
  showState();
  if (document.hidden) return;
  showHealth(data);
  showShedding(data.health.shedding ?? []);
  showLimits();
  const changed = earlier?.rules?.in_force?.number !== data.health.rules?.in_force?.number;
  if (!earlier || changed) refresh();
}

/** Says how old the figures are, and whose: in the head of the page, and in its title for a tab that is not seen. */
function showState() {
  const { snapshot, seen } = state;
  const stale = performance.now() - seen > STALE_MS;
  const changed = stale !== state.stale;
  state.stale = stale;
  document.body.classList.toggle("stale", stale);
  if (!snapshot) return stale ? setBadge("connection", "No answer", "bad") : undefined;
  const { title = "tower-quota", instance, healthy, shedding = [] } = snapshot.health;
  const time = clock.format(snapshot.at_ms);
  const refusing = snapshot.limits.filter(({ limit }) => latest(limit)[2] > 0).length;
  setText(at("title"), title);
  setText(at("instance"), [instance, MAY[document.documentElement.dataset.role]].filter(Boolean).join("; "));
  if (stale) setBadge("connection", `No data since ${time}`, "bad");
  else setBadge("connection", "Live", "good");
  setText(at("updated"), stale ? "" : `last update ${time}`);
  setBadge("healthy", stale ? "" : healthy ? "Healthy" : "Has problems", healthy ? "good" : "bad");
  const refuses = refusing === 1 ? "1 limit refuses" : `${refusing} limits refuse`;
  const sheds = shedding.some(layer => layer.is_shedding);
  const news = stale ? "No data" : !healthy ? "Problems" : sheds ? "Sheds load" : refusing ? refuses : "Calm";
  document.title = plain(`${news}: ${title}, ${instance}`);
  if (stale && changed) showLimits();
}
setInterval(() => {
  if (state.session) showState();
}, 500);

function showHealth({ health: { problems, outage, rules, stores, waiting, refusal_cache: cache, mistakes }, store_latency: latency }) {
  const seen = mistakes.map(({ message, last_seen: last }) => `${message} Last seen ${instant(last)}.`);
  const lines = [...problems.map(problem => problem.replace(ISO, instant)), ...seen];
  show(at("problems"), lines, { id: text => text, create: () => make("li", "problem"), update: setText });

  const inForce = rules?.in_force;
  const figures = [
    ...(rules ? [["Rules", inForce ? `Version ${inForce.number}` : "None", `${inForce ? `since ${instant(inForce.since)}, ` : ""}from ${rules.store}`]] : []),
    ...stores.map(store => [`Store ${store.name}`, ...storeText(store, latency, outage)]),
    latency
      ? ["Store latency", `${milliseconds(latency.p99_us)} ms`, `99 % of ${number(latency.calls)} calls in ten seconds; half within ${milliseconds(latency.p50_us)} ms`]
      : ["Store latency", "No calls", "in the last ten seconds"],
    ["Queue", number(waiting), "requests wait for their turn"],
    ["Refusal cache", number(cache.answered), "requests refused without the store"],
  ];
  show(at("health"), figures, {
    id: figure => figure[0],
    create: () => make("li", "", make("div", "note"), make("div", "value"), make("div", "note")),
    update: (card, figure) => figure.forEach((text, part) => setText(card.children[part], text)),
  });
}

/** Returns the state of a store, and its figures in words. A store that nobody has asked says nothing about itself. */
function storeText({ available, figures }, latency, outage) {
  const { entries, capacity, bytes, definitions, breakers_closed: closed, breakers_open: open, ...others } = figures;
  const isMemory = definitions !== undefined;
  const value = isMemory ? `${number(entries)} counters` : open > 0 || (!available && !outage) ? "Does not answer" : outage ? "Fails" : latency ? "Answers" : "Not asked";
  const parts = Object.entries(others).filter(([, value]) => value > 0).map(([name, value]) => `${name.replaceAll("_", " ")}: ${number(value)}`);
  if (isMemory) parts.unshift(`room for ${number(capacity)}`);
  if (open !== undefined) parts.unshift(open > 0 ? `breaker open (${open} of ${open + closed})` : "breaker closed");
  return [value, parts.join(", ")];
}

/** Shows the layers that shed load. */
function showShedding(layers) {
  const latencyText = (what, micros) => (micros === null ? "" : `${milliseconds(micros)} ms ${what}`);
  show(at("shedding"), layers, {
    id: ({ layer }) => layer,
    create: () => makeRow(),
    update: (row, { layer, limit, in_progress: used, long_bodies: long, waiting, is_shedding: sheds, refused, ...latency }) => {
      setText(row.main, `Layer ${layer} ${sheds ? "sheds load" : "is calm"}: limit ${number(limit)}, ${number(used)} in progress`);
      row.main.className = sheds ? "refused" : "";
      setText(row.detail, [
        long ? `${number(long)} long bodies` : "",
        waiting ? `${number(waiting)} wait for a place` : "",
        latencyText("to the head of a response", latency.latency_us),
        latencyText("without pressure", latency.base_latency_us),
        ...refused.map(({ priority, cause, requests }) => `${number(requests)} ${priority} refused in ten seconds (${cause})`),
      ].filter(Boolean).join(", "));
    },
  });
}

// --- Limits ---

/** Returns the requests of a limit per second, in the last seconds: admitted, refused by others, refused. */
function latest(limit) {
  const last = state.seconds.slice(-3);
  const seconds = last.reduce((sum, { lasts_ms: lasts }) => sum + lasts, 0) / 1000;
  return [0, 1, 2].map(part => last.reduce((sum, { limits }) => sum + (limits[limit]?.[part] ?? 0), 0) / (seconds || 1));
}

const scopeText = scope => (scope === "everyone" ? "all clients together" : `by ${scopeName(scope)}`);

function showLimits() {
  const { more_limits: more, at_ms: end } = state.snapshot;
  const { limits } = state.snapshot;
  const wanted = at("filter").value.trim().toLowerCase();
  const rates = new Map(limits.map(({ limit }) => [limit, latest(limit)]));
  const refusing = limits.map(({ limit }) => limit).filter(limit => rates.get(limit)[2] > 0);
  const isBusy = new Set(state.seconds.flatMap(second => Object.keys(second.limits)));
  const listed = limits.filter(({ limit }) => limit.toLowerCase().includes(wanted));
  // The server lists limits by their refusals.
  const sorted = [...listed.filter(({ limit }) => isBusy.has(limit)), ...listed.filter(({ limit }) => !isBusy.has(limit))];
  show(at("limits"), most("limits", sorted, wanted ? 50 : 6, more), {
    id: ({ limit }) => limit,
    create: () => {
      const card = make("li");
      const part = (name, tag, className) => card.append(card[name] = make(tag, className));
      part("name", "span", "name");
      part("quota", "span", "note");
      card.append(make("div", "", card.admitted = make("span", "figure admitted"), " ", card.refused = make("span", "figure")));
      part("extra", "span", "note");
      part("canvas", "canvas");
      card.canvas.setAttribute("role", "img");
      return card;
    },
    update: (card, { limit, quota, scope, shadowed }) => {
      const [admitted, elsewhere, refused] = rates.get(limit);
      const share = refused > 0 ? ` (${Math.max(1, Math.round((100 * refused) / (admitted + refused)))} %)` : "";
      const uncounted = state.seconds.reduce((sum, { limits }) => sum + (limits[limit]?.[3] ?? 0), 0);
      const others = refusing.filter(other => other !== limit);
      setText(card.name, limit);
      setText(card.quota, `${quota.replace("/", " per ").replaceAll("_", " ").replace(/\d{4,}/g, digits => number(Number(digits)))}, ${scopeText(scope)}`);
      setText(card.admitted, isBusy.has(limit) ? `${rate(admitted)} admitted` : "");
      setText(card.refused, isBusy.has(limit) ? `${rate(refused)} refused${share}` : "");
      card.refused.className = `figure ${refused > 0 ? "refused" : "note"}`;
      setText(card.extra, [
        isBusy.has(limit) ? "" : "no requests in five minutes",
        elsewhere > 0 ? `${rate(elsewhere)} refused by ${others.length === 1 ? others[0] : "other limits"}` : "",
        shadowed ? `${number(shadowed)} would be refused (shadow)` : "",
        uncounted ? `${number(uncounted)} passed uncounted in five minutes` : "",
      ].filter(Boolean).join(", "));
      card.classList.toggle("idle", !isBusy.has(limit));
      card.canvas.setAttribute("aria-label", `Requests per second of limit ${limit} in the last five minutes`);
      const [bars, name] = [barsOf(limit, state.seconds), state.stale ? clock.format(end) : "now"];
      // A new card has no width yet.
      requestAnimationFrame(() => draw(card.canvas, bars, end, name));
    },
  });
}
expands("limits", showLimits);
at("filter").addEventListener("input", showLimits);

// --- Blocks, allowances and overrides ---

const why = ({ until, author, reason }) => `until ${instant(until)}, by ${author}${reason ? `: ${reason}` : ""}`;
const keyName = ({ target, id }) => target.key?.text ?? target.key?.hash ?? id;

function showBlocks() {
  at("exceptions").hidden = !state.blocks;
  const unlisted = Math.max(0, (state.snapshot?.health.rules?.blocks ?? 0) - LISTED_BLOCKS);
  show(at("blocks"), most("blocks", state.blocks?.blocks ?? [], 10, unlisted), {
    id: block => block.id,
    create: () => makeRow({ Remove: block => unblock(block.id, block.kind) }),
    update: (row, block) => {
      row.main.replaceChildren(block.kind === "block" ? "Blocked: " : "Allowed: ", make("code", "", keyName(block)));
      setText(row.detail, `${block.target.key ? `${scopeName(block.target.key.scope)}, ` : ""}${why(block)}`);
      nameButtons(row, block.id);
    },
  });
}
expands("blocks", showBlocks);

function showOverrides() {
  at("overrides-part").hidden = !state.overrides;
  show(at("overrides"), most("overrides", state.overrides?.overrides ?? [], 10), {
    id: entry => entry.id,
    create: () => makeRow({ "End now": endOverride }),
    update: (row, entry) => {
      row.main.replaceChildren(make("code", "", keyName(entry)), ` has ${entry.quota} of limit ${entry.limit}`);
      setText(row.detail, `${scopeName(entry.target.key.scope)}, ${why(entry)}`);
      nameButtons(row, entry.id);
    },
  });
}
expands("overrides", showOverrides);

function endOverride(entry) {
  confirmChange({
    title: "End this override?", action: "End now", done: ({ reach }) => `The override of ${keyName(entry)} has ended on ${reach}.`,
    text: `Limit ${entry.limit} of ${keyName(entry)} has its own quota again at once, ${reach()}.`,
    act: ({ reason }) => post("v1/overrides/remove", { id: entry.id }, reason),
  });
}

/** Says where blocks and overrides hold. */
const reach = () => (state.snapshot?.health.rules?.blocks_are_shared ? "on all instances" : "on this instance only, and lost when it restarts");

/** Says which clients an answer of `PUT /v1/blocks` is about, and where the block holds. */
function blockText({ id, kind, target, until, reach, note }) {
  const client = target.key ? `${scopeName(target.key.scope)} ${id}` : id;
  const doubt = note ? ` It may have no effect: ${note}.` : "";
  return `${client} is ${kind === "block" ? "blocked" : "allowed"} until ${instant(until)}, on ${reach}.${doubt}`;
}

const putBlock = async body => (await send("PUT", "v1/blocks", { body })).json();

function unblock(id, kind = "block") {
  const word = kind === "block" ? "block" : "allowance";
  confirmChange({
    title: `Remove this ${word}?`, action: "Remove", done: ({ reach }) => `The ${word} of ${id} is removed on ${reach}.`,
    text: `The ${word} of ${id} ends at once, ${reach()}.`,
    act: ({ reason }) => post("v1/blocks/remove", { target: id }, reason),
  });
}

for (const [id, kind, action, effect] of [["add-block", "block", "Block", "get status 403"], ["add-allowance", "allow", "Allow", "pass uncounted"]]) {
  at(id).addEventListener("click", () => confirmChange({
    title: `${action} a client or network`, action, asks: ["target", "seconds"], done: blockText,
    text: `All requests of these clients ${effect}, ${reach()}.`,
    act: ({ reason, seconds, target, scope, force }) =>
      putBlock({ target: target.trim(), scope: scope || undefined, force, kind, seconds: Number(seconds), reason }),
  }));
}

// --- What snapshots do not contain ---

/**
 * Reads the lists again. They are `null` where the server has no such routes: code makes the policy. A list that cannot be
 * read stays as it was.
 */
async function refresh() {
  let failure;
  const list = async (name, path, draw, query) => {
    try {
      state[name] = await ifFound(read(path, query));
      draw();
    } catch (error) {
      failure = error;
    }
  };
  await Promise.all([
    list("blocks", "v1/blocks", showBlocks, { count: LISTED_BLOCKS, ...keysQuery() }), list("overrides", "v1/overrides", showOverrides, keysQuery()),
    list("history", "v1/rules/history", showVersions), list("audit", "v1/audit", showAudit, { count: 50 }),
  ]);
  if (!failure) setText(at("failure"), "");
  // The problems say already that the source of the rules does not answer.
  else if (state.session && !(failure.status === 503 && state.snapshot?.health.healthy === false)) report(failure);
}

/** Calls a function again and again, with a pause after each call, while the page is seen and the server answers. */
async function poll(pause, call) {
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, pause));
    if (state.session && state.snapshot && !state.stale && !document.hidden) await call();
  }
}

const pollClients = () => pollTop().catch(error => state.session && report(error));
poll(SLOW_POLL_MS, refresh);
poll(PAUSE_MS, pollClients);
at("window").addEventListener("change", pollClients);

if (OWN_AUTHENTICATION || token.get()) start();
else askForToken();
