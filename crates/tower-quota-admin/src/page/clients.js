// Clients: those that are limited and busy, and one found by its key.

function showClients(limited, busy) {
  const blocked = new Set(state.blocks.filter(block => block.kind === "block").map(block => block.id));
  const list = (id, clients, describe) => show(at(id), clients, {
    id: client => `${client.limit} ${client.hash}`,
    hold: true,
    create: () => makeRow({ Block: blockClient, Unblock: client => unblock(client.hash), Reset: resetClient, Grant: grantToClient }),
    update: (row, client) => {
      row.main.replaceChildren(make("code", "", client.key ?? client.hash), ` ${describe(client)}`);
      setText(row.detail, `limit ${client.limit}, ${client.scope}${untilText(client)}`);
      row.buttons.Block.hidden = blocked.has(client.hash);
      row.buttons.Unblock.hidden = !blocked.has(client.hash);
      nameButtons(row, `client ${client.hash}, limit ${client.limit}`);
    },
  });
  list("limited", limited, client => `${atLeast(client)} refused`);
  list("busy", busy, client => `${atLeast(client)} requests`);
}

/** Returns the number of a client's requests: between two bounds if there are more clients than are remembered. */
function atLeast({ at_least: low, at_most: high }) {
  return low === high ? counts.format(high) : `${counts.format(low)} to ${counts.format(high)}`;
}

function untilText({ retry_after_ms: wait }) {
  return wait > 0 ? `; limited for ${duration(wait)}, until ${instant(Date.now() + wait)}` : "";
}

async function pollTop() {
  const window = at("window").value;
  if (window === "1m") return;
  try {
    const [limited, busy] = await Promise.all(["limited", "busy"].map(by => read("v1/top", { by, window, limit: 10 })));
    if (at("window").value === window) showClients(limited.clients, busy.clients);
  } catch (error) {
    if (state.session) report(error);
  }
}

function blockClient(client) {
  confirmChange({
    title: "Block this client?", action: "Block", askLength: true, done: `Client ${client.hash} is blocked.`,
    text: `All requests of client ${client.hash} (${client.scope}) get status 403, on all instances.`,
    act: ({ reason, seconds }) =>
      send("PUT", `v1/top/${encodeURIComponent(client.hash)}/block`, { query: { comment: reason }, body: { seconds } }),
  });
}

const listedPath = ({ hash, limit }) => `v1/top/${encodeURIComponent(hash)}/limits/${encodeURIComponent(limit)}`;

function resetClient({ hash, limit }) {
  confirmReset(`client ${hash}`, limit, query => send("DELETE", listedPath({ hash, limit }), { query }));
}

function grantToClient({ hash, limit }) {
  confirmGrant(`client ${hash}`, limit, (query, body) => send("POST", `${listedPath({ hash, limit })}/grant`, { query, body }));
}

function confirmReset(client, limit, act) {
  confirmChange({
    title: "Reset this client?", action: "Reset", done: `Limit ${limit} of ${client} is reset.`,
    text: `Limit ${limit} begins anew for ${client}, and its penalty ends.`,
    act: ({ reason }) => act({ comment: reason }),
  });
}

function confirmGrant(client, limit, act) {
  confirmChange({
    title: "Grant units to this client?", action: "Grant", askUnits: true, done: `Limit ${limit} of ${client} has more units.`,
    text: `Limit ${limit} gives these units back to ${client}, up to a full limit.`,
    act: ({ reason, units }) => act({ comment: reason }, { units }),
  });
}

// --- A client that is named by its key ---

const clientPath = () => `v1/clients/${encodeURIComponent(at("find-limit").value)}/${encodeURIComponent(at("find-key").value)}`;

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
    await showFound(send("GET", clientPath()));
    offerChanges(true);
  } catch (error) {
    setText(at("found"), error.message);
  }
});
at("find").addEventListener("input", () => offerChanges(false));
at("find-reset").addEventListener("click", () => {
  const path = clientPath();
  confirmReset("this client", at("find-limit").value, query => showFound(send("DELETE", path, { query })));
});
at("find-grant").addEventListener("click", () => {
  const path = clientPath();
  confirmGrant("this client", at("find-limit").value, (query, body) => showFound(send("POST", `${path}/grant`, { query, body })));
});
