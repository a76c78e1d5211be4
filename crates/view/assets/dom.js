// Elements, numbers and values as text.
//
// Everything that comes from a record enters the page here, and only as text nodes: no string is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Makes an HTML element. Props are attributes; a function under `onNAME` is a listener; null and false leave a prop out. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Makes an SVG element, as `h` does. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Puts new children in place of all others. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Sets the text of an element, and leaves the page alone if it is the same (so that live regions are not read twice). */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** "1,281,167" */
export function number(n) {
  if (typeof n === "string") return n;
  return Number.isFinite(n) ? n.toLocaleString("en-US", { maximumFractionDigits: 2 }) : String(n);
}

/** "1 record", "1,281,167 records" */
export function count(n, noun, plural = noun + "s") {
  return `${number(n)} ${n === 1 ? noun : plural}`;
}

/** "14 MB": decimal units, three digits at most. */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = Number(bytes);
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
  return `${value.toFixed(digits).replace(/\.0+$/, "")} ${units[unit]}`;
}

/** A float as a person would write it: at most six digits. */
export function float(x) {
  if (typeof x !== "number") return String(x);
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return String(x);
  return String(Number(x.toPrecision(6)));
}

/** One value of a byte list as text: its characters, or what it is. */
export function bytesText(value) {
  if (typeof value === "string") return value;
  if (typeof value.text === "string") return value.text + "…";
  if (value.type) {
    const pixels = value.width && value.height ? `, ${value.width} × ${value.height}` : "";
    return `${value.type}${pixels}, ${size(value.bytes)}`;
  }
  const { hex = "" } = value;
  return value.bytes > hex.length / 2 ? `0x${hex}… (${size(value.bytes)})` : `0x${hex}`;
}

/** The kind of a FEATURE of the API: "int64", "float", "bytes", or null for one without a kind. */
export function kindOf(feature) {
  if (!feature) return null;
  return feature.int64 ? "int64" : feature.float ? "float" : feature.bytes ? "bytes" : null;
}

/** The values of a FEATURE that came with it. */
export function valuesOf(feature) {
  return feature?.int64 ?? feature?.float ?? feature?.bytes ?? [];
}

/** A number, with its name if it is the number of a class. `names`: the names of 0, 1, .. */
export function named(x, names) {
  return names?.[x] === undefined ? float(x) : `${x} ${JSON.stringify(names[x])}`;
}

/** The first values of a FEATURE in one line. `names` as in named(). */
export function featureText(feature, limit = 8, names = undefined) {
  const kind = kindOf(feature);
  if (kind === null) return "";
  const values = valuesOf(feature);
  const shown = values.slice(0, limit).map((v) => (kind === "bytes" ? bytesText(v) : kind === "float" ? float(v) : names ? named(v, names) : String(v)));
  return shown.join(", ") + (feature.n > shown.length ? ", …" : "");
}

/** A word as a POSIX shell reads it back. */
export function shellWord(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}

/** A button that calls `onclick`. `hook` names it for tests. */
export function button(label, onclick, hook, props) {
  return h("button", { type: "button", "data-test": hook, onclick, ...props }, label);
}

/** Calls `f` once, `ms` after the last of a run of calls. */
export function debounce(f, ms) {
  let timer = 0;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
