// The state of the page is its address: `#view=grid&at=9000000&where=label==3&seed=7`.
//
// So the back button, a reload and a link sent to a colleague all give the same page. The token is never part of it.

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // An address cut in the middle of %C3%A9.
  }
}

function encode(text) {
  return encodeURIComponent(text).replace(/%(3D|3C|3E|21|2C|2F|3A|5B|5D)/g, decodeURIComponent);
}

function parse(hash) {
  const found = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at > 0) found[decode(part.slice(0, at))] = decode(part.slice(at + 1));
  }
  return Object.freeze(found);
}

/** The state: a frozen object of strings. */
export let state = parse(location.hash);

const listeners = new Set();

function read() {
  state = parse(location.hash);
  for (const listener of listeners) listener(state);
}

/** The address of the page with these changes: null and "" remove a key. */
export function href(changes) {
  const next = { ...state, ...changes };
  const parts = Object.entries(next)
    .filter(([, value]) => value != null && value !== "")
    .map(([key, value]) => `${encode(key)}=${encode(String(value))}`);
  return "#" + parts.join("&");
}

/** Changes the state. A new entry of the history, unless `replace`. */
export function go(changes, { replace = false } = {}) {
  const to = href(changes);
  if (to === href({})) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  read();
}

/** Remembers a change of the state without telling the listeners: a scroll position, which the page shows already. */
export function note(changes) {
  history.replaceState(null, "", href(changes));
  state = parse(location.hash);
}

/** Calls `f(state)` after each change. Returns a function that ends it. */
export function onChange(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

// The back button and a typed address; pushState and replaceState above fire no event.
addEventListener("hashchange", read);
