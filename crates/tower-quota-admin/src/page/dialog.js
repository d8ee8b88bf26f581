// The dialog that confirms a change and asks for its reason.

const fields = [...document.querySelectorAll("#dialog fieldset")];
let confirmed = null;

/** Shows a field of the dialog, or hides it so that it takes no part in the form. */
function offer(name, isOffered) {
  const field = fields.find(field => field.dataset.field === name);
  field.hidden = field.disabled = !isOffered;
}

/**
 * Asks for the named fields and a reason, and calls `act` with their values when the person confirms. It stays open with
 * the error if that fails. `done` is shown after the change, a text or a function of what `act` returns.
 */
function confirmChange({ title, text, action, asks = [], limits = [], act, done }) {
  at("dialog-form").reset();
  for (const field of fields) offer(field.dataset.field, ["reason", ...asks].includes(field.dataset.field));
  setText(at("dialog-title"), title);
  setText(at("dialog-text"), text);
  setText(at("dialog-confirm"), action);
  setText(at("dialog-error"), "");
  setText(at("dialog-meant"), "");
  at("dialog-limit").replaceChildren(...limits.map(limit => make("option", "", limit)));
  showQuota();
  at("dialog-confirm").disabled = false;
  confirmed = { act, done };
  at("dialog").showModal();
  // Lengths have a default that is right most times.
  at("dialog-form").querySelector("fieldset:enabled :required").focus();
}

/** Begins with the quota that the limit has, whichever limit is chosen. */
function showQuota() {
  const chosen = state.snapshot?.limits.find(({ limit }) => limit === at("dialog-limit").value);
  at("dialog-quota").value = chosen?.quota ?? "";
}

at("dialog-limit").addEventListener("change", showQuota);
at("dialog-cancel").addEventListener("click", () => at("dialog").close());
at("dialog-form").addEventListener("submit", async event => {
  event.preventDefault();
  const { act, done } = confirmed;
  const values = Object.fromEntries(new FormData(at("dialog-form")));
  // A second press of the key repeats nothing.
  at("dialog-confirm").disabled = true;
  try {
    const result = await act({ ...values, reason: values.reason.trim(), force: "force" in values || undefined });
    at("dialog").close();
    say(typeof done === "function" ? done(result) : done);
    await refresh();
  } catch (error) {
    if (!at("dialog").open) return report(error);
    // The server names this way out where a block would be huge, or reach the person who makes it.
    const [message, way] = error.message.split(/: send `"force": true`/);
    setText(at("dialog-error"), message);
    offer("force", way !== undefined);
    at("dialog-confirm").disabled = false;
  }
});

// --- What a block is about ---

const NETWORK = /^(?=.*[.:])[0-9a-f.:]+(\/\d+)?$/i;
let typing;

at("dialog-target").addEventListener("input", () => {
  clearTimeout(typing);
  offer("scope", false);
  offer("force", false);
  setText(at("dialog-meant"), "");
  setText(at("dialog-error"), "");
  typing = setTimeout(() => showMeant(at("dialog-target").value.trim()).catch(report), 250);
});

/** Says which clients a text names, and lets the person choose if it may be several. */
async function showMeant(text) {
  if (!text) return;
  if (NETWORK.test(text)) return setText(at("dialog-meant"), `All requests from ${text}.`);
  const { clients } = await post("v1/clients/find", { key: text });
  if (at("dialog-target").value.trim() !== text) return;
  const name = ({ scope, hash, limits }) => `${scopeName(scope)} ${hash}: counted by ${limits.slice(0, 5).join(", ")}${limits.length > 5 ? " and others" : ""}`;
  const meant = clients.length === 1 ? `${name(clients[0])}.` : clients.length ? "" : "No limit counts by such a key.";
  setText(at("dialog-meant"), meant);
  offer("scope", clients.length > 1);
  at("dialog-scope").replaceChildren(...[{ scope: "" }, ...clients].map(client =>
    Object.assign(make("option", "", client.scope && name(client)), { value: client.scope })));
}

let hushed;

/** Shows what was done for some seconds, and says it to screen readers. */
function say(text) {
  setText(at("done"), text);
  clearTimeout(hushed);
  hushed = setTimeout(() => setText(at("done"), ""), 8000);
}
