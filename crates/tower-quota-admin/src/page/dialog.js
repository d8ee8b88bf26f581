// The dialog that confirms a change and asks for its reason.

let confirmed = null;

/**
 * Asks for a reason, and calls `act({ reason, seconds, target, scope, force, units })` when the person confirms. It stays
 * open with the error if that fails. `done` is shown after the change, a text or a function of what `act` returns.
 */
function confirmChange({ title, text, action, done, askTarget = false, askLength = false, askUnits = false, act }) {
  setText(at("dialog-title"), title);
  setText(at("dialog-text"), text);
  setText(at("dialog-confirm"), action);
  setText(at("dialog-error"), "");
  at("dialog-target-field").hidden = !askTarget;
  at("dialog-target").required = askTarget;
  at("dialog-target").value = "";
  at("dialog-scope").replaceChildren(make("option", "", "Any kind of key"), ...state.scopes.map(scope => make("option", "", scope)));
  at("dialog-scope").options[0].value = "";
  at("dialog-force").checked = false;
  at("dialog-length-field").hidden = !askLength;
  at("dialog-units-field").hidden = !askUnits;
  at("dialog-units").required = askUnits;
  at("dialog-units").value = "";
  at("dialog-reason").value = "";
  at("dialog-confirm").disabled = false;
  confirmed = { act, done };
  at("dialog").showModal();
  at(askTarget ? "dialog-target" : askUnits ? "dialog-units" : "dialog-reason").focus();
}

at("dialog-cancel").addEventListener("click", () => at("dialog").close());
at("dialog-form").addEventListener("submit", async event => {
  event.preventDefault();
  const { act, done } = confirmed;
  const values = {
    reason: at("dialog-reason").value.trim(),
    seconds: Number(at("dialog-length").value),
    target: at("dialog-target").value.trim(),
    scope: at("dialog-scope").value || undefined,
    force: at("dialog-force").checked,
    units: Number(at("dialog-units").value),
  };
  if (!values.reason) {
    setText(at("dialog-error"), "Give a reason: it is kept in the audit log.");
    at("dialog-reason").focus();
    return;
  }
  // A second press of the key repeats nothing.
  at("dialog-confirm").disabled = true;
  try {
    const result = await act(values);
    at("dialog").close();
    say(typeof done === "function" ? done(result) : done);
    await refresh();
  } catch (error) {
    if (at("dialog").open) {
      setText(at("dialog-error"), error.message);
      at("dialog-confirm").disabled = false;
    } else {
      report(error);
    }
  }
});

let hushed;

/** Shows what was done for some seconds, and says it to screen readers. */
function say(text) {
  setText(at("done"), text);
  clearTimeout(hushed);
  hushed = setTimeout(() => setText(at("done"), ""), 8000);
}
