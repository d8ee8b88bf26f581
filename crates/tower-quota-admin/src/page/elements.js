// Elements. Texts are set by `textContent` only: keys and names of clients are hostile data.

const at = id => document.getElementById(id);

/** Shows characters that control a terminal or turn the direction of text as what they are: unreadable. */
const plain = text => text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** Makes an element with a class and children, which are elements or texts. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.map(child => (typeof child === "string" ? plain(child) : child)));
  return element;
}

/** Sets a text, and leaves the element alone if it has it already. */
function setText(element, text) {
  const shown = plain(text);
  if (element.textContent !== shown) element.textContent = shown;
}

// The roles whose people see a button, where they are not all who may change something.
const ROLES = { "Roll back": "rules", Show: "", Changes: "" };

/** Makes a row with a text, a detail below it, and buttons. `row.item` is what they act on. */
function makeRow(buttons = {}) {
  const row = make("li");
  row.main = make("span");
  row.detail = make("span", "detail");
  row.buttons = {};
  row.append(make("div", "text", row.main, row.detail));
  const group = make("div", "buttons");
  for (const [text, action] of Object.entries(buttons)) {
    const button = make("button", ROLES[text] ?? "operate", text);
    button.type = "button";
    button.addEventListener("click", async () => {
      try {
        await action(row.item);
      } catch (error) {
        report(error);
      }
    });
    group.append(row.buttons[text] = button);
  }
  if (group.childElementCount) row.append(group);
  return row;
}

/** Names the buttons of a row in full, such as "Block client 3f2a". */
function nameButtons(row, name) {
  for (const [text, element] of Object.entries(row.buttons)) {
    const label = `${text} ${name}`;
    if (element.getAttribute("aria-label") !== label) element.setAttribute("aria-label", label);
  }
}

/**
 * Shows items as the children of a list. The element of an item is kept while the item is listed; those of others are
 * used again. With `hold`, rows keep their places while a person points at the list or has the focus in it, so that a
 * click hits what it aims at. While it has the focus no rows are added: Tab would not come to the end of a list that
 * gets new rows each second.
 */
function show(list, items, { id, create, update, hold = false }) {
  const rows = list.rows ?? new Map();
  if (hold && list.matches(":hover, :focus-within")) {
    const wanted = new Map(items.map(item => [id(item), item]));
    const stay = [...rows.keys()].filter(key => wanted.has(key) || rows.get(key).contains(document.activeElement));
    const added = list.matches(":focus-within") ? [] : [...wanted.keys()].filter(key => !rows.has(key));
    items = [...stay, ...added].map(key => wanted.get(key) ?? rows.get(key).item);
  }
  const keys = new Set(items.map(id));
  const gone = [...rows].filter(([key]) => !keys.has(key)).map(([, row]) => row);
  const losesFocus = gone.some(row => row.contains(document.activeElement));
  // They go first: a row that stays is not moved then, which would take the focus away.
  for (const row of gone) row.remove();
  list.rows = new Map();
  let place = list.firstElementChild;
  for (const item of items) {
    const row = rows.get(id(item)) ?? gone.pop() ?? create();
    row.item = item;
    update(row, item);
    if (row === place) place = place.nextElementSibling;
    else list.insertBefore(row, place);
    list.rows.set(id(item), row);
  }
  if (losesFocus) {
    list.tabIndex = -1;
    list.focus();
  }
  const none = at(`${list.id}-none`);
  if (none) none.hidden = items.length > 0;
}

const scopeName = scope => (scope === "ip" ? "address" : scope);

const counts = new Intl.NumberFormat("en");
const number = value => counts.format(value);
const TIME = { hour: "2-digit", minute: "2-digit", timeZoneName: "short" };
const clock = new Intl.DateTimeFormat("en-GB", { ...TIME, second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { ...TIME, day: "numeric", month: "short", year: "numeric" });

/** Returns a rate with as many digits as help. */
const rate = value => `${value > 0 && value < 10 ? value.toFixed(1) : number(Math.round(value))}/s`;

/** Returns microseconds as milliseconds. */
const milliseconds = micros => (micros < 10_000 ? (micros / 1000).toFixed(micros < 1000 ? 2 : 1) : number(Math.round(micros / 1000)));

/** Returns an instant in local time with its zone, and the day unless it is today. */
function instant(time) {
  const date = new Date(time);
  return (date.toDateString() === new Date().toDateString() ? clock : day).format(date);
}

/** Returns a time to come in its largest fitting units. */
function duration(ms) {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.ceil(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.ceil(seconds / 3600)} h`;
  return `${Math.ceil(seconds / 86_400)} days`;
}

const expanded = {};

/** Returns the first items of a list, or all if the person asked for them. */
function most(list, items, few, unlisted = 0) {
  const all = at(`all-${list}`);
  all.hidden = items.length <= few && !unlisted;
  all.disabled = items.length <= few;
  const more = unlisted ? ` (${number(unlisted)} more are not listed)` : "";
  setText(all, (expanded[list] ? "Show fewer" : `Show all ${number(items.length)}`) + more);
  all.setAttribute("aria-expanded", String(Boolean(expanded[list])));
  return expanded[list] ? items : items.slice(0, few);
}

/** Has the button of a list show all of it. */
function expands(list, draws) {
  at(`all-${list}`).addEventListener("click", () => {
    expanded[list] = !expanded[list];
    draws();
  });
}
