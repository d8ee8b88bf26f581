// The shadow document, and its end.

let shadow = null;

async function showShadow() {
  shadow = state.snapshot?.health.rules.shadow && await readShadow();
  at("shadow").hidden = !shadow;
  if (!shadow) return;
  const { number, author, differences, all_instances: total } = shadow;
  const seen = total ?? differences;
  setText(at("shadow-promote"), `Promote version ${number}`);
  setText(at("shadow-abandon"), `Abandon version ${number}`);
  const where = total ? ` on ${counts.format(total.instances)} instances` : "";
  const refused = seen
    ? ` Of ${counts.format(seen.requests)} requests${where}, it would have refused ${counts.format(seen.shadow_refused)}; the rules in force refused ${counts.format(seen.current_refused)}.`
    : "";
  setText(at("shadow-text"), `Version ${number} by ${author} decides no request, and is counted.${refused}`);
  show(at("shadow-limits"), Object.entries(seen?.limits ?? {}).slice(0, 50), {
    id: ([name]) => name,
    create: makeRow,
    update: (row, [name, limit]) => {
      setText(row.main, `Limit ${name}`);
      setText(row.detail, `refused by version ${number}: ${counts.format(limit.shadow_refused)}, by the rules in force: ${counts.format(limit.current_refused)}`);
    },
  });
}

/** Returns the shadow document; nothing if it has ended since the last snapshot. */
async function readShadow() {
  try {
    return await read("v1/rules/shadow");
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/** Asks, and ends the shadow document that the person sees. Another one that has taken its place is left alone. */
function endShadow(version, { method, path, ...texts }) {
  confirmChange({
    ...texts,
    act: ({ reason }) => send(method, path, { query: { comment: reason }, headers: { "If-Match": tag(version) } }),
  });
}

at("shadow-promote").addEventListener("click", () => endShadow(shadow, {
  title: `Promote version ${shadow.number}?`, action: "Promote", done: `The rules of version ${shadow.number} are in force.`,
  text: `The rules of version ${shadow.number} come into force on all instances.`,
  method: "POST", path: "v1/rules/shadow/promote",
}));
at("shadow-abandon").addEventListener("click", () => endShadow(shadow, {
  title: `Abandon version ${shadow.number}?`, action: "Abandon", done: `Version ${shadow.number} is abandoned.`,
  text: `Version ${shadow.number} is not counted any more, on all instances. The rules in force stay.`,
  method: "DELETE", path: "v1/rules/shadow",
}));
