// Rules: versions, their texts and changes, and the audit log.

const LISTED_DIFFERENCES = 200;
const LONGEST_TEXT = 200_000;

let shownVersion = null;

function showVersions() {
  const { in_force: inForce, is_read_only: isReadOnly, store } = state.snapshot.health.rules ?? {};
  const versions = state.history?.versions ?? [];
  at("rules").hidden = !state.history;
  setText(at("rules-source"), isReadOnly ? `The rules are only read from ${store}: change them there.` : "");
  setText(at("versions-none"), inForce ? `${store} has no versions. Version ${inForce.number} is in force here.` : "There are no rules yet.");
  show(at("versions"), most("versions", versions, 5), {
    id: version => version.number,
    create: () => makeRow({ Show: showText, Changes: showChanges, "Roll back": rollBack }),
    update: (row, { number, author, comment, time, rejected, in_force_since: since, in_force_until: until }) => {
      const isInForce = number === inForce?.number;
      const [badge, className] = isInForce ? ["In force", "badge good"] : rejected ? ["Rejected", "badge bad"] : ["", "badge"];
      row.main.replaceChildren(`Version ${number} `, make("span", className, badge));
      // What this instance has seen since its start.
      const fate = rejected ? `. Rejected here: ${rejected}` : since && until ? `. In force here from ${instant(since)} to ${instant(until)}` : "";
      setText(row.detail, `${instant(time)}, by ${author}${comment ? `: ${comment}` : ""}${fate}`);
      row.buttons["Roll back"].hidden = isReadOnly || Boolean(rejected) || number === state.history.current;
      row.buttons.Changes.hidden = number === versions.at(-1).number;
      nameButtons(row, `version ${number}`);
    },
  });
}

/** Shows a text or differences under a title. */
function showBelow(title, text, differences = []) {
  setText(at("shown-title"), title);
  at("text").hidden = text === null;
  setText(at("text"), text ?? "");
  show(at("diff"), differences, {
    id: difference => difference.path,
    create: makeRow,
    update: (row, { path, before, after }) => {
      row.main.replaceChildren(make("code", "", path));
      const value = (text, className) => make("code", className, text === undefined ? "(absent)" : JSON.stringify(text));
      row.detail.replaceChildren(value(before, "before"), " → ", value(after, "after"));
    },
  });
  at("shown-title").focus();
}

async function showText(version) {
  shownVersion = version.number;
  const text = await (await send("GET", `v1/rules/${version.number}`)).text();
  if (shownVersion === version.number) showBelow(`Version ${version.number}`, text.slice(0, LONGEST_TEXT));
}

async function showChanges(version) {
  shownVersion = version.number;
  const before = state.history.versions.find(other => other.number < version.number);
  const { differences, more } = await read("v1/rules/diff", { from: before.number, to: version.number });
  if (shownVersion !== version.number) return;
  const all = differences.length + more;
  const count = all === 1 ? "one value" : all ? `${number(all)} values` : "nothing";
  const first = all > LISTED_DIFFERENCES ? `, of which ${LISTED_DIFFERENCES} are shown` : "";
  showBelow(`Version ${version.number} changed ${count} of version ${before.number}${first}`, null, differences.slice(0, LISTED_DIFFERENCES));
}

/** Asks, and rolls back from the version that the person sees: a change that came first is left alone. */
async function rollBack({ number, author, comment }) {
  const from = state.snapshot.health.rules?.in_force?.number ?? number;
  // A version that cannot be compared is refused later, with its problems.
  const { lost_limits: lost } = await read("v1/rules/diff", { from, to: number }).catch(() => ({ lost_limits: [] }));
  const gone = lost.length ? ` These limits are gone then: ${lost.join(", ")}.` : "";
  const match = state.history.versions.find(version => version.number === state.history.current);
  confirmChange({
    title: `Roll back to version ${number}?`, action: "Roll back", done: `The rules of version ${number} are in force again.`,
    text: `The rules of version ${number} by ${author}${comment ? ` (${comment})` : ""} come into force again as a new version, on all instances.${gone}`,
    act: ({ reason }) => send("POST", "v1/rules/rollback", { match, reason, body: { version: number } }),
  });
}

// --- Audit ---

const ISO = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

function showAudit() {
  at("audits").hidden = !state.audit;
  show(at("audit"), most("audit", state.audit?.records ?? [], 10), {
    id: record => JSON.stringify(record),
    create: makeRow,
    update: (row, { time, who, what, target, before, after, comment }) => {
      setText(row.main, `${who}: ${what.replaceAll("_", " ")} ${target}${comment ? ` (${comment})` : ""}`);
      const change = [before, after].filter(Boolean).join(" → ").replace(ISO, instant);
      setText(row.detail, `${instant(time)}${change ? `, ${change}` : ""}`);
    },
  });
}
expands("versions", showVersions);
expands("audit", showAudit);
