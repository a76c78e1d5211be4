// Elements, numbers and values as text.
//
// Everything that comes from a record enters the page here, and only as text nodes: no string is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

const ALIASES = { hook: "data-test", label: "aria-label" };

/** Sets the props of an element, as in `h`. */
export function attrs(element, props) {
  for (const [key, value] of Object.entries(props)) {
    const name = ALIASES[key] ?? key;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value == null || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : ["title", "aria-label", "alt", "placeholder"].includes(name) ? visible(String(value)) : value);
  }
}

// What the terminal escapes too (src/error/text.rs), without ASCII: controls, and those of the direction of text.
const CONTROLS = /[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A text as it is shown. */
export const visible = (text) => text.replace(CONTROLS, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

function append(element, children) {
  for (const child of children) {
    if (child == null || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(typeof child === "string" ? visible(child) : child);
  }
  return element;
}

const maker = (create) => (tag, props, ...children) => {
  const [name, ...classes] = tag.split(".");
  const element = create(name);
  if (classes.length) attrs(element, { class: classes.join(" ") });
  if (props?.constructor !== Object) return append(element, [props, children]);
  attrs(element, props);
  return append(element, children);
};

/**
 * Makes an HTML element. `tag` may have classes: "p.small.muted". Props, an object that may be left out, are attributes; a function under
 * `onNAME` is a listener; null and false take a prop away. `label` is the name for screen readers, and `hook` that for tests.
 */
export const h = maker((name) => document.createElement(name));

/** Makes an SVG element, as `h` does. Drawings fill their box. */
export const svg = maker((name) => {
  const element = document.createElementNS(SVG, name);
  if (name === "svg") attrs(element, { preserveAspectRatio: "none" });
  return element;
});

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Sets the text of an element, unless it is the same: live regions are not read twice. */
export function setText(element, text) {
  if (element.textContent !== visible(text)) element.textContent = visible(text);
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
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  let value = Number(bytes);
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const scale = unit === 0 || value >= 99.5 ? 1 : value >= 9.95 ? 10 : 100;
  return `${Math.round(value * scale) / scale} ${units[unit]}`;
}

/** A float as a person would write it: at most six digits. */
export function float(x) {
  if (typeof x !== "number") return String(x);
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return String(x);
  return String(Number(Math.abs(x) < 1e5 ? x.toPrecision(6) : x.toFixed(2)));
}

/** One value of a byte list as text: its characters, or what it is. */
export function bytesText(value) {
  if (typeof value === "string") return value || '""';
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
  return shown.join(", ") + (feature.n > shown.length ? ` … of ${number(feature.n)}` : "");
}

/** The time of a number with such a name, in seconds since 1970 or their thousandths, millionths or billionths; or null. */
export function timeOf(name, value) {
  if (!/time|date|stamp|(^|[_/])(ts|epoch|at)$/i.test(name ?? "") || !/^\d{9,19}(\.\d+)?$/.test(value)) return null;
  let ms = Number(value) * 1000;
  while (ms > 1e13) ms /= 1000;
  // Between 1980 and 2100: a duration is no time.
  return ms > 3.2e11 && ms < 4.2e12 ? new Date(ms).toISOString().replace(/\.?0*Z$/, "").replace("T", " ") + " UTC" : null;
}

/** The contexts and the other Examples of a record that lists Examples. */
export const examplesOf = ({ examples = [] }) => ["context", "examples"].map((wanted) => examples.filter(({ name }) => name === wanted));

/** A payload that is no Example in one line: the features of its Examples, the named fields of its message, or its bytes. */
export function payloadText(record) {
  const { fields, payload = "" } = record;
  if (record.examples) {
    const [context, [first]] = examplesOf(record);
    const texts = (all) => Object.entries(all?.features ?? {}).slice(0, 12).map(([name, feature]) => `${name}: ${featureText(feature, 4)}`);
    return [...context.flatMap(texts), count(record.total, "Example") + (first ? `, the first: ${texts(first).join(", ")}` : "")].join(", ");
  }
  const one = (value) => {
    if (Array.isArray(value)) return value.every((v) => v?.number) ? `{ ${line(value)} }` : value.map(one).join(", ");
    if (value && typeof value === "object") return bytesText(value);
    return typeof value === "number" ? float(value) : bytesText(String(value ?? ""));
  };
  const line = (all) => all.slice(0, 12).map((f) => `${f.name ?? f.number}: ${timeOf(f.name, f.value) ?? one(f.value)}`).join(", ");
  return fields?.some((f) => f.name) ? line(fields) : record.bytes ? bytesText(payload) : "no bytes";
}

/** A word as a POSIX shell reads it back. */
export function shellWord(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}

// By the first word of a button.
const ICONS = {
  Previous: "m10 3-5 5 5 5", Next: "m6 3 5 5-5 5", Close: "m4 4 8 8m0-8-8 8", Copy: "M6 6h7v7H6zM3 10V3h7",
  Larger: "M3 8h10M8 3v10", Smaller: "M3 8h10", Note: "m8 2 6 11H2zM8 6v3m0 2v.1",
};

/** A picture of a button, drawn as a line. */
export function icon(name) {
  return ICONS[name] && svg("svg.icon", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** A button that calls `onclick`. `hook` names it for tests. */
export function button(label, onclick, hook, props) {
  const word = typeof label === "string" ? label.split(" ")[0] : "";
  return h("button", { type: "button", hook, onclick, ...props }, word !== "Next" && icon(word), label, word === "Next" && icon(word));
}

export const iconButton = (label, onclick, hook, props) =>
  h("button", { type: "button", hook, label, title: label, onclick, ...props }, icon(label.split(" ")[0]));

export const hbox = (...parts) => h("div.row", parts);
export const vbox = (...parts) => h("div.column", parts);

export const muted = (...text) => h("p.small.muted", text);
export const aside = (...text) => h("span.small.muted", text);

/** The words of an error: as a note, and in the place of what failed. */
export const problem = (message) => h("p.note.error", { role: "alert", hook: "error" }, message);
export const sorry = (error) => h("p.error.small", error.message);

/** A table: heads of columns, and rows whose first cell is a head too. `right`: the cells are numbers. */
export function table(heads, rows, right = false, kind = "") {
  const side = right ? "number" : null;
  return h("div.scroll-x", { tabindex: "0" }, h("table", { class: `data ${kind}` },
    heads && h("thead", h("tr", heads.map((text, i) => h("th", { scope: "col", class: i ? side : null }, text)))),
    h("tbody", rows.map(([head, ...cells]) => h("tr", h("th", { scope: "row" }, head), cells.map((cell) => h("td", { class: side }, cell)))))));
}

export const field = (label, ...control) => h("label.field", h("span", label), control);

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
