// Clients: those that are limited and busy, and one found by its key.

// Counters that no single client has, so that no block of them would have an effect.
const GROUPS = { everyone: "all clients", without_key: "clients without a key" };

function showClients(limited, busy) {
  const blocked = new Set(state.blocks.filter(block => block.kind === "block").map(block => block.id));
  const list = (id, clients, describe) => show(at(id), clients, {
    id: client => `${client.limit} ${client.hash}`,
    hold: true,
    create: () => makeRow({ Block: blockClient, Unblock: client => unblock(client.hash), Reset: resetClient, Grant: grantToClient }),
    update: (row, client) => {
      const name = GROUPS[client.who] ?? client.key ?? client.hash;
      row.main.replaceChildren(make("code", "", name), ` ${describe(client)}`);
      setText(row.detail, `limit ${client.limit}, ${client.scope}${untilText(client)}`);
      row.buttons.Block.hidden = blocked.has(client.hash) || client.who in GROUPS;
      row.buttons.Unblock.hidden = !blocked.has(client.hash);
      nameButtons(row, `client ${client.hash}, limit ${client.limit}`);
    },
  });
  list("limited", limited, client => `${atLeast(client)} refused`);
  list("busy", busy, client => `${atLeast(client)} requests`);
}

/** Returns the number of a client's requests: between two bounds if there are more clients than are remembered. */
function atLeast({ at_least: low, at_most: high }) {
  // Sums of instances have no upper bound.
  if (high === undefined) return `${counts.format(low)} or more`;
  return low === high ? counts.format(high) : `${counts.format(low)} to ${counts.format(high)}`;
}

function untilText({ retry_after_ms: wait }) {
  return wait > 0 ? `; limited for ${duration(wait)}, until ${instant(Date.now() + wait)}` : "";
}

async function pollTop() {
  const window = at("window").value;
  try {
    const [limited, busy] = await Promise.all(["limited", "busy"].map(by => read("v1/top", { by, window, limit: 10 })));
    if (at("window").value === window) showClients(limited.clients, busy.clients);
  } catch (error) {
    if (state.session) report(error);
  }
}

function blockClient(client) {
  confirmChange({
    title: "Block this client?", action: "Block", askLength: true, done: blockText,
    text: `All requests of client ${client.hash} (${client.scope}) get status 403, on all instances.`,
    act: async ({ reason, seconds }) =>
      (await send("PUT", "v1/blocks", { body: { target: `hash:${client.hash}`, scope: client.scope, seconds, reason } })).json(),
  });
}

function resetClient({ hash, limit }) {
  confirmReset(`client ${hash}`, { limit, key: `hash:${hash}` });
}

function grantToClient({ hash, limit }) {
  confirmGrant(`client ${hash}`, { limit, key: `hash:${hash}` });
}

function confirmReset(client, { limit, key }, shown = answer => answer) {
  confirmChange({
    title: "Reset this client?", action: "Reset", done: `Limit ${limit} of ${client} is reset.`,
    text: `Limit ${limit} begins anew for ${client}, and its penalty ends.`,
    act: ({ reason }) => shown(send("POST", "v1/clients/reset", { query: { comment: reason }, body: { limit, key } })),
  });
}

function confirmGrant(client, { limit, key }, shown = answer => answer) {
  confirmChange({
    title: "Grant units to this client?", action: "Grant", askUnits: true, done: `Limit ${limit} of ${client} has more units.`,
    text: `Limit ${limit} gives these units back to ${client}, up to a full limit.`,
    act: ({ reason, units }) =>
      shown(send("POST", "v1/clients/grant", { query: { comment: reason }, body: { limit, key, units } })),
  });
}

// --- A client that is named by its key ---

const namedClient = () => ({ limit: at("find-limit").value, key: at("find-key").value });

function leftText(status) {
  const until = untilText({ retry_after_ms: status.retry_after_ms ?? 0 });
  return `${counts.format(status.remaining)} of ${counts.format(status.capacity)} left: ${status.outcome}${until}.`;
}

/** Shows the status that an answer has. */
async function showFound(answer) {
  setText(at("found"), leftText(await (await answer).json()));
}

function offerChanges(offers) {
  at("find-reset").hidden = at("find-grant").hidden = !offers;
}

at("find").addEventListener("submit", async event => {
  event.preventDefault();
  offerChanges(false);
  try {
    await showFound(send("POST", "v1/clients/peek", { body: namedClient() }));
    offerChanges(true);
  } catch (error) {
    setText(at("found"), error.message);
  }
});
at("find").addEventListener("input", () => offerChanges(false));
at("find-reset").addEventListener("click", () => confirmReset("this client", namedClient(), showFound));
at("find-grant").addEventListener("click", () => confirmGrant("this client", namedClient(), showFound));
