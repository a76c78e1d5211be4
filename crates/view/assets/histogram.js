// Histograms in svg. A bar is a filter: it knows the condition (docs/filters.md) that its records meet. The arithmetic of comparing two
// distributions is here too, since it works on the same buckets.
import { h, number, svg } from "./dom.js";
import { go, state } from "./state.js";

// Words of the grammar that are no names.
const WORDS = new Set(["and", "or", "not", "in", "record"]);
const LEAST = 5; // places of a histogram: a bar as wide as the chart looks like a frame

// Prints a number of an axis or a table: integers whole, others with four digits or more. Infinities and NaN come as strings.
export function brief(x) {
  if (typeof x !== "number" || !Number.isFinite(x)) return x === null || x === undefined ? "" : String(x);
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return number(x);
  const size = Math.abs(x);
  if (size >= 1000 && size < 1e15) return number(size < 1e6 ? Number(x.toPrecision(6)) : Math.round(x));
  if (size >= 1e15 || size < 1e-3) return x.toExponential(3).replace(/\.?0*e\+?/, "e");
  return String(Number(x.toPrecision(4)));
}

export function percent(part, all) {
  const share = all ? 100 * part / all : 0;
  // "100.0 %" and "0.0 %" are kept for all and none: a single absent record must not vanish by rounding.
  if (part && share < 0.1) return "< 0.1 %";
  if (part < all && share > 99.9) return "> 99.9 %";
  return `${share.toFixed(share === 0 || share === 100 ? 0 : 1)} %`;
}

// A string of the grammar. `value` is text, or {base64} for bytes that are not UTF-8.
export function quote(value) {
  const raw = typeof value === "object";
  let out = "";
  for (const c of raw ? atob(value.base64) : value) {
    if (c === "\"" || c === "\\") out += "\\" + c;
    else if (c < " " || c === "\x7f" || (raw && c > "~")) out += "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0");
    else out += c;
  }
  return `"${out}"`;
}

export function quoteName(name) {
  return /^[A-Za-z_][\w/.:-]*$/.test(name) && !name.includes("..") && !WORDS.has(name) ? name : quote(name);
}

// Joins a condition to the present one. `or` binds loosest, so a text that may contain one goes into parentheses.
export function and(present, condition) {
  if (!present || present === condition || present.endsWith(` and ${condition}`)) return present || condition;
  return `${/\bor\b/.test(present) ? `(${present})` : present} and ${condition}`;
}

// An edge of a bucket for a condition. Conditions compare floats with 32 bits, so it is the next such float that is not below the edge:
// the same values are on each side of it. Its text is the shortest that means it.
function edgeText(x) {
  const float = new Float32Array([x]);
  if (float[0] < x) new Int32Array(float.buffer)[0] += float[0] < 0 ? -1 : 1;
  for (let digits = 4; digits < 9; digits++) if (Math.fround(float[0].toPrecision(digits)) === float[0]) return Number(float[0].toPrecision(digits));
  return float[0];
}

// Several values in one record are an error where one is tested, so lists ask for any of them.
export const subject = (feature) => feature.lengths?.max > 1 ? `any(${quoteName(feature.name)})` : quoteName(feature.name);

// Prints a value of `top` for people.
export function valueText(entry) {
  if (entry.value === undefined) return `a value of ${number(entry.length)} bytes`;
  if (typeof entry.value === "object") {
    const bytes = Array.from(atob(entry.value.base64), (c) => c.charCodeAt(0).toString(16).padStart(2, "0"));
    return `bytes ${bytes.slice(0, 12).join(" ")}${bytes.length > 12 ? " .." : ""}`;
  }
  if (typeof entry.value === "string") return entry.value.replace(/[\x00-\x1f\x7f]/g, (c) => quote(c).slice(1, -1)) || "the empty string";
  return entry.name ? `${brief(entry.value)} ${quote(entry.name)}` : brief(entry.value);
}

// The condition of one frequent value, or null: integers beyond 2^53 may have been rounded on their way, and long strings come as hashes.
export function valueCondition(feature, kind, entry) {
  const v = entry.value;
  if (v === undefined) return null;
  if (kind === "bytes") return `${subject(feature)} == ${quote(v)}`;
  if (typeof v === "number" && kind === "int64" && !Number.isSafeInteger(v)) return null;
  return `${subject(feature)} == ${v}`;
}

const complete = (stats) => stats.distinct.exact && !stats.top_error && stats.distinct.count <= stats.top.length;

// The bars of a feature's values of one kind: [{label, count, where}], with the texts at the ends of the axis. `filters` is false for
// feature lists, which conditions do not reach.
export function barsOf(feature, kind = feature.kind, filters = feature.steps === undefined) {
  const stats = feature[kind];
  if (!stats || !stats.values) return null;
  const bar = (label, count, where) => ({ label, count, where: filters && count ? where : null });
  const single = (entry) => bar(valueText(entry), entry.count, valueCondition(feature, kind, entry));
  if (kind === "bytes") return { bars: stats.top.map(single), first: "most frequent", last: "" };
  if (kind === "int64" && complete(stats)) {
    const top = [...stats.top].sort((a, b) => a.value - b.value);
    const low = Number(stats.min), span = Number(stats.max) - low;
    if (span >= 20) return { bars: top.map(single), first: brief(stats.min), last: brief(stats.max) };
    // Few integers near each other: one bar each, also for those that do not occur, so that the axis is true.
    const bars = Array.from({ length: span + 1 }, (_, i) => single({ value: low + i, count: 0 }));
    for (const entry of top) bars[entry.value - low] = single(entry);
    return { bars, first: brief(stats.min), last: brief(stats.max) };
  }
  const buckets = stats.histogram ?? [];
  if (!buckets.length) return null;
  const on = subject(feature);
  // All values equal: one bar. The buckets have no width then.
  if (stats.min === stats.max) {
    return { bars: [bar(brief(stats.min), buckets.reduce((sum, b) => sum + b.count, 0), `${on} == ${stats.min}`)], first: brief(stats.min), last: "" };
  }
  const bars = buckets.map((b, i) => {
    const end = i === buckets.length - 1;
    let { low, high } = b;
    if (kind === "int64") {
      // Integers compare with integers only. Beyond 2^53 the edges are rounded, and a condition would not fit its bar.
      low = Math.ceil(low);
      high = end ? high : Math.ceil(high);
      if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high)) return bar(`${brief(b.low)} to ${brief(b.high)}`, b.count, null);
    }
    if (kind === "float") [low, high] = [edgeText(low), edgeText(high)];
    return bar(`${brief(b.low)} to ${brief(b.high)}`, b.count, `${on} in ${low}${end ? "..=" : ".."}${high}`);
  });
  return { bars, first: brief(stats.min), last: brief(stats.max) };
}

// By default a bar narrows the present view to its records.
const narrow = (condition) => go({ where: and(state.where, condition), at: null, sel: null });

// Draws bars. One bar is a tab stop, arrow keys move between them, Enter and Space apply the filter: twenty stops a feature would make
// the page endless for the keyboard.
export function histogram(name, data, { pick = narrow, small = false, unit = "values" } = {}) {
  const { bars, first, last } = data;
  const most = bars.reduce((m, b) => Math.max(m, b.count), 1);
  const readout = h("span", { class: "readout" });
  const groups = bars.map((bar, i) => {
    // A rare value keeps a visible height.
    const height = bar.count ? Math.max(3, 100 * bar.count / most) : 0;
    const text = `${bar.label}: ${number(bar.count)} ${unit}`;
    return svg("g", {
      class: bar.where ? "column-bar" : "column-bar fixed", "data-test": "bar", role: bar.where ? "button" : "img", tabindex: "-1",
      "aria-label": `${name} ${text}${bar.where ? ", filter" : ""}`,
    }, svg("title", {}, text), svg("rect", { class: "hit", x: i * 10, y: 0, width: 10, height: 100 }),
      svg("rect", { class: "fill", x: i * 10 + 0.5, y: 100 - height, width: 9, height }));
  });
  let focus = Math.max(0, bars.findIndex((b) => b.where));
  groups[focus]?.setAttribute("tabindex", "0");
  const indexOf = (event) => groups.indexOf(event.target.closest?.("g"));
  const show = (i) => { readout.textContent = i < 0 ? "" : `${bars[i].label}: ${number(bars[i].count)}`; };
  const apply = (i) => { if (bars[i]?.where) pick(bars[i].where); };
  const chart = svg("svg", {
    viewBox: `0 0 ${Math.max(bars.length, LEAST) * 10} 100`, preserveAspectRatio: "none", role: "group", "aria-label": `${name}: ${bars.length} bars`,
    onclick: (e) => apply(indexOf(e)),
    onpointerover: (e) => show(indexOf(e)), onpointerleave: () => show(-1),
    onfocusin: (e) => show(indexOf(e)), onfocusout: () => show(-1),
    onkeydown: (e) => {
      const i = indexOf(e);
      if (i < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "Enter" || e.key === " ") apply(i);
      else {
        const next = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: bars.length - 1 }[e.key];
        if (next === undefined) return;
        if (groups[next]) {
          groups[focus].setAttribute("tabindex", "-1");
          focus = next;
          groups[next].setAttribute("tabindex", "0");
          groups[next].focus();
        }
      }
      e.preventDefault();
      e.stopPropagation();
    },
  }, groups);
  return h("div", { class: small ? "histogram spark" : "histogram", "data-test": "histogram" }, chart,
    small ? null : axis(bars.length, first, readout, last));
}

// The ends of the axis, under the bars.
function axis(n, first, readout, last) {
  const element = h("div", { class: "axis", "aria-hidden": "true" }, h("span", {}, first), readout, h("span", {}, n > 1 ? last : ""));
  if (n > 1 && n < LEAST) element.style.maxWidth = `${100 * n / LEAST}%`;
  return element;
}

// A small histogram for the head of a table's column; null for a feature without values.
export function sparkline(feature) {
  const data = feature && barsOf(feature);
  return data && data.bars.length ? histogram(feature.name, data, { small: true, unit: feature.lengths?.max > 1 ? "values" : "records" }) : null;
}

// Comparing two sets.

// The share of values up to x, from the edges of the buckets and the quantiles: exact there, a line between them. Many equal values make a
// step, which is why an edge has a share before and after it.
function cumulative(stats) {
  const steps = new Map();
  const add = (x, part) => {
    const [low, high] = steps.get(x) ?? [part, part];
    steps.set(x, [Math.min(low, part), Math.max(high, part)]);
  };
  add(Number(stats.min), 0);
  add(Number(stats.max), 1);
  for (const [name, x] of Object.entries(stats.quantiles ?? {})) add(x, Number(name.slice(1)) / 100);
  const all = stats.histogram.reduce((sum, b) => sum + b.count, 0) || 1;
  let sum = 0;
  for (const b of stats.histogram.slice(0, -1)) add(b.high, (sum += b.count) / all);
  const edges = [...steps].sort((p, q) => p[0] - q[0]);
  return (x) => {
    const i = edges.findLastIndex(([edge]) => edge <= x);
    if (i < 0) return 0;
    const [[from, [, low]], [to, [high]]] = [edges[i], edges[i + 1] ?? [Infinity, [1]]];
    return i === edges.length - 1 ? 1 : Math.max(low, low + (high - low) * (x - from) / (to - from));
  };
}

// The share of the values at the first edge, and then between the edges.
const parts = (share, edges) => edges.map((x, i) => Math.max(0, share(x) - (i ? share(edges[i - 1]) : 0)));
const joined = ([at, next, ...rest]) => [at + next, ...rest];

// The square root of the Jensen-Shannon divergence to base 2 of two lists of counts: 0 for equal shares, 1 for nothing in common.
export function distance(a, b) {
  const sum = (list) => list.reduce((s, x) => s + x, 0);
  const [all, other] = [sum(a), sum(b)];
  if (!all || !other) return null;
  let bits = 0;
  for (let i = 0; i < a.length; i++) {
    const p = a[i] / all, q = b[i] / other, m = (p + q) / 2;
    if (p) bits += p * Math.log2(p / m) / 2;
    if (q) bits += q * Math.log2(q / m) / 2;
  }
  return Math.sqrt(Math.min(1, Math.max(0, bits)));
}

// Compares a feature of two sets: {labels, a, b, distance, note}, or null if their kinds differ or one has no values.
export function compare(one, two) {
  const kind = one?.kind;
  if (!kind || kind !== two?.kind) return null;
  const [x, y] = [one[kind], two[kind]];
  if (!x?.values || !y?.values) return null;
  if (kind === "bytes" || (complete(x) && complete(y) && kind === "int64")) return byValue(x, y, kind);
  if (!x.histogram?.length || !y.histogram?.length) return null; // NaN and infinities alone
  const low = Math.min(Number(x.min), Number(y.min)), high = Math.max(Number(x.max), Number(y.max));
  const n = low < high ? 20 : 1;
  const [p, q] = [cumulative(x), cumulative(y)];
  const edges = Array.from({ length: n + 1 }, (_, i) => (i < n ? low + (high - low) * i / n : high));
  // In wide buckets a long tail would hide all differences, so the distance has the quantiles as edges too.
  const fine = [...new Set([...edges, ...Object.values(x.quantiles ?? {}), ...Object.values(y.quantiles ?? {})])].map(Number).sort((s, t) => s - t);
  return {
    labels: edges.slice(1).map((edge, i) => (n === 1 ? brief(low) : `${brief(edges[i])} to ${brief(edge)}`)), a: joined(parts(p, edges)), b: joined(parts(q, edges)), first: brief(low), last: brief(high),
    distance: distance(parts(p, fine), parts(q, fine)),
  };
}

// Values whose counts are known in both sets stay apart. All others are one group, so the distance is never too large: joining groups
// cannot make it larger.
function byValue(x, y, kind) {
  const table = (stats) => new Map(stats.top.map((t) => [JSON.stringify([t.value, t.length, t.xxh3]), t]));
  const [one, two] = [table(x), table(y)];
  const rows = [];
  for (const key of new Set([...one.keys(), ...two.keys()])) {
    const p = one.get(key), q = two.get(key);
    if ((p || complete(x)) && (q || complete(y))) rows.push({ entry: p ?? q, a: p?.count ?? 0, b: q?.count ?? 0 });
  }
  if (!rows.length) return { note: "No value is known of both sets: only the most frequent ones are." };
  rows.sort(kind === "bytes" ? (r, s) => s.a / x.values + s.b / y.values - r.a / x.values - r.b / y.values : (r, s) => r.entry.value - s.entry.value);
  const rest = [x.values - rows.reduce((s, r) => s + r.a, 0), y.values - rows.reduce((s, r) => s + r.b, 0)];
  const labels = rows.map((r) => valueText(r.entry)), a = rows.map((r) => r.a), b = rows.map((r) => r.b);
  const others = rest[0] > 0 || rest[1] > 0;
  if (others) { labels.push("all other values"); a.push(Math.max(0, rest[0])); b.push(Math.max(0, rest[1])); }
  return {
    labels, a, b, distance: distance(a, b), lower: others, first: labels[0] ?? "", last: labels.length > 1 ? labels.at(-1) : "",
    note: others ? "A bar per value. Values outside the most frequent ones of a set are one group, so the distance is a lower bound." : "A bar per value.",
  };
}

// Draws two distributions as shares of their values: the first as bars, the second as a line over them.
export function overlay(name, both, names) {
  const share = (list) => { const all = list.reduce((s, x) => s + x, 0) || 1; return list.map((x) => x / all); };
  const [p, q] = [share(both.a), share(both.b)];
  const most = Math.max(...p, ...q, 1e-12);
  const y = (x) => 100 - (x ? Math.max(2, 98 * x / most) : 0);
  const line = q.map((x, i) => `${i ? "L" : "M"}${i * 10} ${y(x)}H${i * 10 + 10}`).join("");
  const text = (i) => `${both.labels[i]}: ${percent(p[i], 1)} of ${names[0]}, ${percent(q[i], 1)} of ${names[1]}`;
  const largest = p.map((x, i) => [Math.abs(x - q[i]), i]).sort((r, s) => s[0] - r[0])[0]?.[1] ?? 0;
  const readout = h("span", { class: "readout" });
  return h("div", { class: "histogram overlay", "data-test": "histogram" },
    svg("svg", {
      viewBox: `0 0 ${Math.max(p.length, LEAST) * 10} 100`, preserveAspectRatio: "none", role: "img",
      "aria-label": `${name}: shares of values in ${p.length} groups. The largest difference is at ${text(largest)}`,
      onpointerover: (e) => { const i = Number(e.target.dataset?.i ?? -1); readout.textContent = i < 0 ? "" : text(i); },
      onpointerleave: () => { readout.textContent = ""; },
    }, p.map((x, i) => svg("rect", { class: "fill", x: i * 10 + 0.5, y: y(x), width: 9, height: 100 - y(x) })),
      svg("path", { class: "second", d: line }),
      p.map((_, i) => svg("rect", { class: "hit", "data-i": i, x: i * 10, y: 0, width: 10, height: 100 }, svg("title", {}, text(i))))),
    axis(p.length, both.first, readout, both.last));
}
