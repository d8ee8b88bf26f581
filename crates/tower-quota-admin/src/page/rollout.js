// The roll-out under way, and its end.

let candidate = null;

async function showRollout() {
  candidate = state.snapshot?.health.rules.candidate && await readRollout();
  at("rollout").hidden = !candidate;
  if (!candidate) return;
  const { number, author, rollout, differences, all_instances: total } = candidate;
  const seen = total ?? differences;
  setText(at("rollout-promote"), `Promote version ${number}`);
  setText(at("rollout-abandon"), `Abandon version ${number}`);
  const percent = rollout.percent;
  const mode = percent === undefined ? "as a dry run, which decides no request" : `for ${percent} % of the clients`;
  const where = total ? ` on ${counts.format(total.instances)} instances` : "";
  const refused = seen
    ? ` It refused ${counts.format(seen.candidate_refused)} of ${counts.format(seen.candidate_requests)} requests${where}; the rules in force ${counts.format(seen.current_refused)} of ${counts.format(seen.current_requests)}.`
    : "";
  setText(at("rollout-text"), `Version ${number} by ${author} is rolled out ${mode}.${refused}`);
  show(at("rollout-limits"), Object.entries(seen?.limits ?? {}).slice(0, 50), {
    id: ([name]) => name,
    create: makeRow,
    update: (row, [name, limit]) => {
      setText(row.main, `Limit ${name}`);
      setText(row.detail, `refused by version ${number}: ${counts.format(limit.candidate_refused)}, by the rules in force: ${counts.format(limit.current_refused)}`);
    },
  });
}

/** Returns the roll-out; nothing if it has ended since the last snapshot. */
async function readRollout() {
  try {
    return await read("v1/rules/rollout");
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/** Asks, and sends a change of the roll-out that the person sees: another one that has taken its place is left alone. */
function endRollout({ number }, { method, path, ...texts }) {
  confirmChange({
    ...texts,
    act: ({ reason }) => send(method, path, { query: { comment: reason }, headers: { "If-Match": `"${number}"` } }),
  });
}

at("rollout-promote").addEventListener("click", () => endRollout(candidate, {
  title: `Promote version ${candidate.number}?`, action: "Promote", done: `The rules of version ${candidate.number} are in force.`,
  text: `The rules of version ${candidate.number} come into force for all clients, on all instances.`,
  method: "POST", path: "v1/rules/rollout/promote",
}));
at("rollout-abandon").addEventListener("click", () => endRollout(candidate, {
  title: `Abandon version ${candidate.number}?`, action: "Abandon", done: `The roll-out of version ${candidate.number} has ended.`,
  text: `The roll-out of version ${candidate.number} ends: the rules in force decide for all clients, on all instances.`,
  method: "DELETE", path: "v1/rules/rollout",
}));
