// The page: the log-in, the snapshots, and the lists that they do not contain.

const SLOW_POLL_MS = 5000;
const RECONNECT_MS = 1000;
// Blocks of penalties can be many: the page lists those that began last.
const LISTED_BLOCKS = 100;
const LISTED_DIFFERENCES = 200;

const state = { snapshot: null, blocks: [], scopes: [], versions: [], audit: [], histories: new Map(), expanded: {}, chose: false, session: null };

// --- Log-in and connection ---

function askForToken(text = "") {
  state.session?.abort();
  state.session = null;
  token.clear();
  at("page").hidden = true;
  at("log-out").hidden = true;
  at("login").hidden = false;
  if (at("dialog").open) at("dialog").close();
  setText(at("login-error"), text);
  connection("Not connected", "");
  at("token").value = "";
  at("token").focus();
}

function connection(text, className) {
  setText(at("connection"), text);
  at("connection").className = `badge ${className}`;
}

/** Shows an error of a request that no dialog waits for. */
function report(error) {
  if (error.status === 401 && !OWN_AUTHENTICATION) {
    askForToken(token.get() ? "The server does not accept this token." : "");
  } else {
    connection(error.name === "ApiError" || error.status ? error.message : "Connection lost", "bad");
  }
}

/** Follows the stream until the person logs out. */
async function run() {
  const session = new AbortController();
  state.session = session;
  while (!session.signal.aborted) {
    try {
      await follow(snapshot, session.signal);
    } catch (error) {
      if (!session.signal.aborted) report(error);
    }
    // A stream ends after ten minutes; the pause keeps a broken server from being asked all the time.
    await new Promise(resolve => setTimeout(resolve, RECONNECT_MS));
  }
}

function start() {
  at("login").hidden = true;
  at("page").hidden = false;
  at("log-out").hidden = OWN_AUTHENTICATION;
  connection("Connecting", "");
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
  const earlier = state.snapshot?.health.rules;
  state.snapshot = data;
  connection("Live", "good");
  addToHistories(data.limits);
  if (!document.hidden) {
    showHealth(data.health, data.store_latency);
    showLimits();
  }
  const { rules } = data.health;
  const changed = ["in_force", "shadow"].some(part => earlier?.[part]?.number !== rules[part]?.number);
  if (!earlier || changed) refresh();
}

function showHealth({ healthy, rules, stores, waiting, refusal_cache: cache, mistakes }, latency) {
  setText(at("healthy"), healthy ? "Healthy" : "Has problems");
  at("healthy").className = `badge ${healthy ? "good" : "bad"}`;
  const problems = mistakes.map(mistake => mistake.message);
  if (rules.last_error) problems.unshift(`Rules: ${rules.last_error} (since ${instant(rules.failing_since)})`);
  if (!rules.is_reachable) problems.unshift(`The source of the rules does not answer since ${instant(rules.reachable_since)}.`);
  show(at("problems"), problems, { id: text => text, create: () => make("li"), update: setText });

  const figures = [
    rules.in_force
      ? ["Rules", `Version ${rules.in_force.number}`, `since ${instant(rules.in_force.since)}, from ${rules.store}`]
      : ["Rules", "None", `from ${rules.store}`],
    ...stores.map(store => [`Store ${store.name}`, store.available ? "Answers" : "Does not answer", storeFigures(store.figures)]),
    latency
      ? ["Store latency", `${milliseconds(latency.p99_us)} ms`, `99 % of ${counts.format(latency.calls)} calls in a second; half within ${milliseconds(latency.p50_us)} ms`]
      : ["Store latency", "No calls", "decisions from memory call no store"],
    ["Queue", counts.format(waiting), "requests wait for their turn"],
    ["Refusal cache", counts.format(cache.answered), `refused without the store; ${counts.format(cache.remembered)} remembered`],
  ];
  show(at("health"), figures, {
    id: figure => figure[0],
    create: () => make("li", "", make("div", "name"), make("div", "value"), make("div", "detail")),
    update: (card, figure) => figure.forEach((text, part) => setText(card.children[part], text)),
  });
}

function storeFigures(figures) {
  const { breakers_closed: closed, breakers_open: open, ...others } = figures;
  const parts = Object.entries(others).filter(([, value]) => value > 0)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${counts.format(value)}`);
  if (open !== undefined) parts.unshift(open > 0 ? `breaker open (${open} of ${open + closed})` : "breaker closed");
  return parts.join(" · ");
}

// --- Limits ---

function addToHistories(limits) {
  const now = Date.now();
  const histories = new Map();
  for (const totals of limits) {
    const history = state.histories.get(totals.limit) ?? new History();
    history.add(now, totals.allowed + totals.queued + totals.shadowed + totals.degraded, totals.limited);
    histories.set(totals.limit, history);
  }
  state.histories = histories;
}

function showLimits() {
  const names = state.snapshot.limits.map(totals => totals.limit);
  const refuses = name => state.histories.get(name).points.some(point => point[2] > 0);
  const [refusing, others] = [names.filter(refuses), names.filter(name => !refuses(name))];
  const totals = new Map(state.snapshot.limits.map(limit => [limit.limit, limit]));
  const now = Date.now();
  show(at("limits"), most("limits", [...refusing, ...others], 6, state.snapshot.more_limits), {
    id: name => name,
    hold: true,
    create: createChart,
    update: (card, name) => {
      const history = state.histories.get(name);
      const { shadowed, degraded } = totals.get(name);
      const { admitted, refused } = history?.latest() ?? { admitted: 0, refused: 0 };
      const share = refused > 0 ? ` (${Math.max(1, Math.round((100 * refused) / (admitted + refused)))} %)` : "";
      setText(card.name, name);
      setText(card.admitted, `${rate(admitted)}/s admitted`);
      setText(card.refused, `${rate(refused)}/s refused${share}`);
      card.refused.classList.toggle("none", refused === 0);
      setText(card.note, [
        shadowed ? `${counts.format(shadowed)} would be refused (shadow)` : "",
        degraded ? `${counts.format(degraded)} passed uncounted` : "",
      ].filter(Boolean).join(", "));
      const label = `Requests a second of limit ${name} in the last five minutes`;
      if (card.canvas.getAttribute("aria-label") !== label) card.canvas.setAttribute("aria-label", label);
      draw(card.canvas, history?.points ?? [], now);
    },
  });
  const list = at("limit-names");
  if (list.dataset.names !== names.join("\n")) {
    list.dataset.names = names.join("\n");
    list.replaceChildren(...names.map(name => Object.assign(make("option"), { value: name })));
    at("find-limit").value ||= names[0] ?? "";
  }
}

function createChart() {
  const card = make("li");
  card.name = make("span", "name");
  card.admitted = make("span", "figure admitted");
  card.refused = make("span", "figure refused");
  card.note = make("span", "note");
  card.canvas = make("canvas");
  card.canvas.setAttribute("role", "img");
  card.append(make("div", "", card.name), make("div", "", card.admitted, ", ", card.refused), card.note, card.canvas);
  return card;
}

/** Returns the first items of a list, or all if the person asked for them. */
function most(list, items, few, unlisted = 0) {
  const all = at(`all-${list}`);
  all.hidden = items.length <= few && !unlisted;
  all.disabled = items.length <= few;
  const more = unlisted ? ` (${counts.format(unlisted)} more are not listed)` : "";
  setText(all, (state.expanded[list] ? "Show fewer" : `Show all ${counts.format(items.length)}`) + more);
  all.setAttribute("aria-expanded", String(Boolean(state.expanded[list])));
  return state.expanded[list] ? items : items.slice(0, few);
}

for (const [list, draws] of Object.entries({ limits: showLimits, blocks: showBlocks, versions: showVersions, audit: showAudit })) {
  at(`all-${list}`).addEventListener("click", () => {
    state.expanded[list] = !state.expanded[list];
    draws();
  });
}

// --- Blocks and allowances ---

function showBlocks() {
  const unlisted = Math.max(0, (state.snapshot?.health.rules.blocks ?? 0) - LISTED_BLOCKS);
  show(at("blocks"), most("blocks", state.blocks, 10, unlisted), {
    id: block => block.id,
    create: () => makeRow({ Remove: block => unblock(block.id, block.kind) }),
    update: (row, block) => {
      row.main.replaceChildren(block.kind === "block" ? "Blocked: " : "Allowed: ", make("code", "", block.id));
      const scope = block.target.key ? `${block.target.key.scope}, ` : "";
      setText(row.detail, `${scope}until ${instant(block.until)}, by ${block.author}${block.reason ? `: ${block.reason}` : ""}`);
      nameButtons(row, block.id);
    },
  });
}

/** Says which clients an answer of `PUT /v1/blocks` is about. */
function blockText({ id, kind, target, until }) {
  const client = target.key ? `${target.key.scope} ${id}` : id;
  return `${client} is ${kind === "block" ? "blocked" : "allowed"} until ${instant(until)}.`;
}

function unblock(id, kind = "block") {
  const word = kind === "block" ? "block" : "allowance";
  confirmChange({
    title: `Remove this ${word}?`, action: "Remove", done: `The ${word} of ${id} is removed.`,
    text: `The ${word} of ${id} ends at once, on all instances.`,
    act: ({ reason }) => send("POST", "v1/blocks/remove", { query: { comment: reason }, body: { target: id } }),
  });
}

for (const [id, kind, effect] of [["add-block", "block", "get status 403"], ["add-allowance", "allow", "pass uncounted"]]) {
  at(id).addEventListener("click", () => confirmChange({
    title: kind === "block" ? "Block a client or network" : "Allow a client or network",
    action: kind === "block" ? "Block" : "Allow", askTarget: true, askLength: true, done: blockText,
    text: `All requests of these clients ${effect}, on all instances.`,
    act: async ({ reason, seconds, target, scope, force }) =>
      (await send("PUT", "v1/blocks", { body: { target, scope, force, kind, seconds, reason } })).json(),
  }));
}

// --- Rules ---

function showVersions() {
  const inForce = state.snapshot?.health.rules.in_force?.number;
  const shadow = state.snapshot?.health.rules.shadow?.number;
  show(at("versions"), most("versions", state.versions, 8), {
    id: version => version.number,
    create: () => makeRow({ Changes: showChangesOf, "Roll back": rollBack }),
    update: (row, { number, author, comment, time }) => {
      const badge = number === inForce ? "In force" : number === shadow ? "Shadow" : "";
      row.main.replaceChildren(`Version ${number} `, make("span", number === inForce ? "badge good" : "badge", badge));
      setText(row.detail, `${instant(time)}, by ${author}${comment ? `: ${comment}` : ""}`);
      row.buttons["Roll back"].hidden = number === inForce || number === shadow;
      row.buttons.Changes.hidden = number === state.versions.at(-1).number;
      row.buttons.Changes.setAttribute("aria-label", `Changes of version ${number}`);
      row.buttons["Roll back"].setAttribute("aria-label", `Roll back to version ${number}`);
    },
  });
  const numbers = state.versions.map(version => String(version.number));
  for (const [id, preset] of [["diff-from", numbers[1] ?? numbers[0]], ["diff-to", numbers[0]]]) {
    const select = at(id);
    if (select.dataset.numbers === numbers.join()) continue;
    const chosen = state.chose && numbers.includes(select.value) ? select.value : preset;
    select.dataset.numbers = numbers.join();
    select.replaceChildren(...numbers.map(number => Object.assign(make("option", "", `Version ${number}`), { value: number })));
    if (chosen) select.value = chosen;
  }
  // The newest change, until the person chooses versions.
  const pair = `${at("diff-from").value} ${at("diff-to").value}`;
  if (numbers.length > 1 && at("diff").dataset.pair !== pair) compare();
}

function showChangesOf({ number }) {
  const older = state.versions.map(version => version.number).filter(other => other < number);
  at("diff-from").value = String(Math.max(...older));
  at("diff-to").value = String(number);
  state.chose = true;
  compare();
  at("diff-title").scrollIntoView({ block: "nearest" });
}

async function compare() {
  const [from, to] = [at("diff-from").value, at("diff-to").value];
  if (!from || !to) return;
  at("diff").dataset.pair = `${from} ${to}`;
  try {
    const { differences, more } = await read("v1/rules/diff", { from, to });
    if (at("diff").dataset.pair !== `${from} ${to}`) return;
    const listed = differences.slice(0, LISTED_DIFFERENCES);
    const all = differences.length + more;
    const first = listed.length < all ? `, the first ${listed.length} of them below` : "";
    const number = all === 1 ? "One value differs" : `${counts.format(all)} values differ`;
    setText(at("diff-none"), all ? `${number}${first}.` : "These versions say the same.");
    show(at("diff"), listed, {
      id: difference => difference.path,
      create: makeRow,
      update: (row, { path, before, after }) => {
        row.main.replaceChildren(make("code", "", path));
        const value = (text, className) => make("code", className, text === undefined ? "(absent)" : JSON.stringify(text));
        row.detail.replaceChildren(value(before, "before"), " → ", value(after, "after"));
      },
    });
    at("diff-none").hidden = false;
  } catch (error) {
    show(at("diff"), [], { id: String });
    setText(at("diff-none"), error.message);
  }
}
for (const id of ["diff-from", "diff-to"]) {
  at(id).addEventListener("change", () => {
    state.chose = true;
    compare();
  });
}

/** Returns the entity tag of a version. */
function tag({ number, hash }) {
  return `"${number}-${hash}"`;
}

/** Asks, and rolls back from the version that the person sees: a change that came first is left alone. */
function rollBack({ number, author, comment }) {
  const current = state.versions.find(version => version.number === state.current);
  confirmChange({
    title: `Roll back to version ${number}?`, action: "Roll back", done: `The rules of version ${number} are in force again.`,
    text: `The rules of version ${number} by ${author}${comment ? ` (${comment})` : ""} come into force again as a new version, on all instances.`,
    act: ({ reason }) => send("POST", "v1/rules/rollback", {
      query: { comment: reason }, headers: { "If-Match": tag(current) }, body: { version: number },
    }),
  });
}

// --- Audit ---

function showAudit() {
  show(at("audit"), most("audit", state.audit, 10), {
    id: record => JSON.stringify(record),
    create: makeRow,
    update: (row, { time, who, what, target, before, after, comment }) => {
      setText(row.main, `${who}: ${what.replaceAll("_", " ")} ${target}${comment ? ` (${comment})` : ""}`);
      const change = [before, after].filter(Boolean).join(" → ");
      setText(row.detail, `${instant(time)}${change ? `, ${change}` : ""}`);
    },
  });
}

// --- What snapshots do not contain ---

/** Reads the lists again. */
async function refresh() {
  try {
    const [blocks, history, audit] = await Promise.all([
      read("v1/blocks", { limit: LISTED_BLOCKS }), read("v1/rules/history"), read("v1/audit", { limit: 50 }),
    ]);
    state.blocks = blocks.blocks;
    state.scopes = blocks.scopes;
    state.versions = history.versions;
    state.current = history.current;
    state.audit = audit.records;
    showBlocks();
    showVersions();
    showAudit();
    await showShadow();
  } catch (error) {
    if (state.session) report(error);
  }
}

/** Calls a function again and again, with a pause after each call, while the page is seen. */
async function poll(pause, call) {
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, pause));
    if (state.session && !document.hidden) await call();
  }
}

poll(SLOW_POLL_MS, refresh);
poll(RECONNECT_MS, pollTop);
at("window").addEventListener("change", pollTop);

if (OWN_AUTHENTICATION || token.get()) start();
else askForToken();
