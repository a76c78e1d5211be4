// Histograms in svg. A bar is a filter: it knows the condition (docs/filters.md) that its records meet.
import { count, h, number, setText, svg } from "./dom.js";
import { go, state } from "./state.js";

// Words of the grammar that are no names.
const WORDS = new Set(["and", "or", "not", "in", "record"]);
const LEAST = 5; // places of a histogram: a bar as wide as the chart looks like a frame

// Prints a number: integers whole, others with four digits or more. Infinities, NaN and integers beyond 2^53 come as strings.
export function brief(x) {
  if (typeof x === "string" && /^-?\d+$/.test(x)) return BigInt(x).toLocaleString("en-US");
  if (typeof x !== "number" || !Number.isFinite(x)) return x == null ? "" : String(x);
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
  return `${share === 0 || share === 100 ? share : (Math.round(share * 10) / 10).toFixed(1)} %`;
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

// An edge of a bucket for a condition, which compares floats of 32 bits: the next of them that is not below the edge, as its shortest text.
function edgeText(x) {
  const float = new Float32Array([x]);
  if (float[0] < x) new Int32Array(float.buffer)[0] += float[0] < 0 ? -1 : 1;
  for (let digits = 4; digits < 9; digits++) if (Math.fround(float[0].toPrecision(digits)) === float[0]) return Number(float[0].toPrecision(digits));
  return float[0];
}

// Several values in one record are an error where one is tested, so lists ask for any of them.
export const subject = (feature) => feature.lengths?.max > 1 ? `any(${quoteName(feature.name)})` : quoteName(feature.name);

export function valueText(entry) {
  if (entry.value === undefined) return `a value of ${number(entry.length)} bytes`;
  if (typeof entry.value === "object") {
    const bytes = Array.from(atob(entry.value.base64), (c) => c.charCodeAt(0).toString(16).padStart(2, "0"));
    return `bytes ${bytes.slice(0, 12).join(" ")}${bytes.length > 12 ? " .." : ""}`;
  }
  if (typeof entry.value === "string") return entry.value.replace(/[\x00-\x1f\x7f]/g, (c) => quote(c).slice(1, -1)) || '""';
  return entry.name ? `${brief(entry.value)} ${quote(entry.name)}` : brief(entry.value);
}

// The condition of one frequent value, or null: long strings come as hashes.
export function valueCondition(feature, kind, entry) {
  const v = entry.value;
  if (v === undefined) return null;
  if (kind === "bytes") return `${subject(feature)} == ${quote(v)}`;
  return `${subject(feature)} == ${v}`;
}

const complete = (stats) => stats.distinct.exact && !stats.top_error && stats.distinct.count <= stats.top.length;

// The bars of a feature's values of one kind: [{label, count, where}], the texts at the ends of the axis, and its note. `filters` is false for
// feature lists, which conditions do not reach.
export function barsOf(feature, kind = feature.kind, filters = feature.steps === undefined) {
  const stats = feature[kind];
  if (!stats || !stats.values) return null;
  const bar = (label, count, where) => ({ label, count, where: filters && count ? where : null });
  const single = (entry) => bar(valueText(entry), entry.count, valueCondition(feature, kind, entry));
  if (kind === "bytes") return { bars: stats.top.map(single), first: "most frequent", last: "" };
  if (!stats.bars) return null;
  const { scale, buckets } = stats.bars;
  const ends = { first: brief(stats.min), last: brief(stats.max) };
  const whole = kind === "int64";
  const one = (b) => b.low === b.high;
  // Values with their names. A few that are far from each other stand side by side.
  const top = new Map(stats.top.map((entry) => [entry.value, entry]));
  if (whole && complete(stats) && !buckets.every(one)) return { bars: [...stats.top].sort((a, b) => a.value - b.value).map(single), ...ends, note: "values" };
  const on = subject(feature);
  const bars = buckets.map((b, i) => {
    if (one(b)) return whole ? single({ ...top.get(b.low), value: b.low, count: b.count }) : bar(brief(b.low), b.count, `${on} == ${b.low}`);
    const label = rangeText(b);
    if (whole) return bar(label, b.count, `${on} in ${b.low}..=${b.high}`);
    return bar(label, b.count, `${on} in ${edgeText(b.low)}${i === buckets.length - 1 ? "..=" : ".."}${edgeText(b.high)}`);
  });
  return { bars, ...ends, note: scale === "log" ? "log scale" : "" };
}

export const rangeText = ({ low, high }) => (low === high ? brief(low) : `${brief(low)} to ${brief(high)}`);

// By default a bar narrows the present view to its records.
const narrow = (condition) => go({ where: and(state.where, condition), at: null, sel: null });

// Draws bars. One is a tab stop, arrow keys move between them, Enter and Space apply the filter.
export function histogram(name, data, { pick = narrow, small = false, unit = "values" } = {}) {
  const { bars, note = "" } = data;
  const n = bars.length;
  const most = bars.reduce((m, b) => Math.max(m, b.count), 1);
  const all = bars.reduce((sum, b) => sum + b.count, 0);
  const place = axis(data, bars);
  const text = (bar) => `${bar.label}: ${count(bar.count, unit.slice(0, -1))}, ${percent(bar.count, all)}`;
  const groups = bars.map((bar, i) => {
    const height = heightOf(bar.count, most, small);
    return svg("g", {
      class: bar.where ? "column-bar" : "column-bar fixed", hook: "bar", role: bar.where ? "button" : "img", tabindex: "-1",
      label: `${name} ${text(bar)}${bar.where ? ", filter" : ""}`,
    }, svg("title", text(bar)), svg("rect.hit", { x: i * 10, y: 0, width: 10, height: 100 }),
      svg("rect.fill", { x: i * 10 + 0.5, y: 100 - height, width: 9, height }));
  });
  let focus = Math.max(0, bars.findIndex((b) => b.where));
  groups[focus]?.setAttribute("tabindex", "0");
  const indexOf = (event) => groups.indexOf(event.target.closest?.("g"));
  const show = (i) => { setText(place.readout, i >= 0 ? text(bars[i]) : n < LEAST ? "" : note); };
  show(-1);
  const apply = (i) => { if (bars[i]?.where) pick(bars[i].where); };
  const chart = svg("svg", {
    viewBox: viewBox(n), role: "group", label: `${name}: ${n} bars`,
    onclick: (e) => apply(indexOf(e)),
    onpointerover: (e) => show(indexOf(e)), onpointerleave: () => show(-1),
    onfocusin: (e) => show(indexOf(e)), onfocusout: () => show(-1),
    onkeydown: (e) => {
      const i = indexOf(e);
      if (i < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "Enter" || e.key === " ") apply(i);
      else {
        const next = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: n - 1 }[e.key];
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
  return small ? h("div.histogram.spark", { hook: "histogram" }, chart) : framed("histogram", most, all, chart, place.element);
}

const framed = (kind, most, all, chart, axis) => h("div", { class: kind, hook: "histogram" },
  h("div.scale.small.muted", { "aria-hidden": "true" }, h("span", percent(most, all)), h("span", "0")), chart, axis);

const viewBox = (n) => `${Math.min(0, n - LEAST) * 5} 0 ${Math.max(n, LEAST) * 10} 100`;

// The height of a bar of 100. One with few values is a pixel high.
const heightOf = (count, most, small) => (count ? Math.max(100 / (small ? 24 : 64), 100 * count / most) : 0);

// The ends of the axis, under the bars. A few bars have their labels.
function axis({ first, last }, bars) {
  const readout = h("span.readout");
  const few = bars.length < LEAST;
  const element = h("div", { class: few ? "axis few" : "axis", "aria-hidden": "true" },
    few ? [readout, bars.map((bar) => h("span", bar.label))] : [h("span", first), readout, h("span", last)]);
  return { element, readout };
}

// A small histogram for the head of a table's column; null for a feature without values.
export function sparkline(feature) {
  const data = feature && barsOf(feature);
  return data && data.bars.length ? histogram(feature.name, data, { small: true, unit: feature.lengths?.max > 1 ? "values" : "records" }) : null;
}

// Draws two distributions as shares: bars, and a line over them. `bars`: [{label, a, b}].
export function overlay(name, bars, names, ends) {
  const [p, q] = ["a", "b"].map((side) => {
    const all = bars.reduce((sum, bar) => sum + bar[side], 0) || 1;
    return bars.map((bar) => bar[side] / all);
  });
  const most = Math.max(...p, ...q, 1e-12);
  const y = (x) => 100 - heightOf(x, most);
  const line = q.map((x, i) => `${i ? "L" : "M"}${i * 10} ${y(x)}H${i * 10 + 10}`).join("");
  const text = (i) => `${bars[i].label}: ${percent(p[i], 1)} of ${names[0]}, ${percent(q[i], 1)} of ${names[1]}`;
  const largest = p.map((x, i) => [Math.abs(x - q[i]), i]).sort((r, s) => s[0] - r[0])[0]?.[1] ?? 0;
  const place = axis(ends, bars);
  const show = (i) => { setText(place.readout, i >= 0 ? text(i) : bars.length < LEAST ? "" : ends.note); };
  show(-1);
  return framed("histogram overlay", most, 1, svg("svg", {
    viewBox: viewBox(p.length), role: "img",
    label: `${name}: shares of values in ${p.length} groups. The largest difference is at ${text(largest)}`,
    onpointerover: (e) => show(Number(e.target.dataset?.i ?? -1)), onpointerleave: () => show(-1),
  }, p.map((x, i) => svg("rect.fill", { x: i * 10 + 0.5, y: y(x), width: 9, height: 100 - y(x) })),
    svg("path.second", { d: line }),
    p.map((_, i) => svg("rect.hit", { "data-i": i, x: i * 10, y: 0, width: 10, height: 100 }, svg("title", text(i))))), place.element);
}
