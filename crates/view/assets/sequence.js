// Feature lists and long features over their steps: frames, lines and texts under one cursor.

import { attrs, count, featureText, h, muted, number, replace, setText, sorry, svg, vbox } from "./dom.js";
import { bytesUrl, values } from "./api.js";
import { brief } from "./histogram.js";
import { allValues, arrayOf, paint, range } from "./media.js";

const LONG = 64; // values of a feature that is drawn as a line
const MOST = 1 << 22; // values that are fetched for one line
const FEW = 8; // lines of an array, or of a list of few steps
const SERIES = 32; // lines in one chart, one colour each
/** The width of a chart in its own units. */
export const COLUMNS = 1000; // of more than 2,000 values, a column has the mean on the line and the range as a band

/** The svg paths of a band, a line and its lone points, in a box of `COLUMNS` x 100. Values that are not finite are gaps. */
function linePath(values, span, low, high) {
  const x = (i) => (span > 1 ? (i / (span - 1)) * COLUMNS : COLUMNS / 2);
  const y = (v) => (high > low ? 98 - (96 * (v - low)) / (high - low) : 50);
  const at = (i, v) => `${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
  const parts = [];
  let band = "";
  let ends = []; // of the band so far: the largest value of each column, then the smallest from the right
  let pen = false;
  const point = (i, v) => {
    if (Number.isFinite(v)) parts.push((pen ? "L" : "M") + at(i, v));
    pen = Number.isFinite(v);
  };
  if (values.length <= 2 * COLUMNS) values.forEach((v, i) => point(i, v));
  else {
    for (let c = 0; c <= COLUMNS; c++) {
      const from = Math.floor((c * values.length) / COLUMNS), to = Math.floor(((c + 1) * values.length) / COLUMNS);
      const found = values.slice(from, to).filter(Number.isFinite);
      const [least, most] = spanOf([found]);
      const middle = (from + to - 1) / 2;
      point(middle, found.reduce((sum, v) => sum + v / found.length, found.length ? 0 : NaN));
      if (found.length) ends.splice(ends.length / 2, 0, at(middle, most), at(middle, least));
      else if (ends.length) [band, ends] = [`${band}M${ends.join("L")}Z`, []];
    }
  }
  // A lone point has no line: it is a dot, drawn as a line of no length with round caps.
  const dots = parts.filter((p, i) => p[0] === "M" && (parts[i + 1]?.[0] ?? "M") === "M").map((p) => `${p}h.01`);
  return [band, parts.join(""), dots.join("")];
}

// Line `i` of a chart. Its hue is far from those of the lines before.
function line(i, d, kind = "") {
  const path = svg("path", { class: `line ${kind}`, d });
  path.style.setProperty("--hue", 250 + 137.5 * i);
  return path;
}

function spanOf(series) {
  let [low, high] = [Infinity, -Infinity];
  for (const s of series) for (const v of s) if (Number.isFinite(v)) [low, high] = [Math.min(low, v), Math.max(high, v)];
  return [low, high];
}

const lines = (series, span, ends) => series.map((s, i) => linePath(s, span, ...ends).map((d, kind) => d && line(i, d, ["band", "", "dots"][kind])));

/** A chart of several series, with a legend of the values at the cursor as `text(x)`. `move(x)` gets a share of the width. */
export function chart(name, series, span, move, text = null) {
  const [low, high] = spanOf(series);
  if (low > high) return { element: muted("no finite value"), at() {} };
  const cursor = svg("line.cursor", { x1: 0, x2: 0, y1: 0, y2: 100 });
  const drag = (e) => {
    if (e.type === "pointerdown") e.currentTarget.setPointerCapture(e.pointerId);
    else if (!e.buttons) return;
    const box = e.currentTarget.getBoundingClientRect();
    move?.(Math.min(1, Math.max(0, (e.clientX - box.left) / box.width)));
  };
  const element = h("div.chart",
    h("div.scale.small.muted", { "aria-hidden": "true" }, h("span", brief(high)), h("span", low < high ? brief(low) : "")),
    svg("svg", { viewBox: `0 0 ${COLUMNS} 100`, role: "img", hook: "lines", onpointerdown: drag, onpointermove: drag,
      label: `${name}: ${series.length > 1 ? `${series.length} lines of ` : ""}${count(span, "value")} between ${brief(low)} and ${brief(high)}` },
      lines(series, span, [low, high]), move ? cursor : null));
  const texts = text ? series.map(() => h("span.mono.number")) : [];
  return {
    element: text ? vbox(element, h("ul.legend.small", { hook: "legend", label: `${name} at the cursor` }, texts.map((box, d) => h("li",
      svg("svg", { viewBox: "0 0 20 8", width: 20, height: 8, "aria-hidden": "true" }, line(d, "M0 4H20")),
      series.length > 1 && h("span.muted", d), box)))) : element,
    at(i) {
      texts.forEach((box, d) => setText(box, text(series[d][i])));
      const x = span > 1 ? (i / (span - 1)) * COLUMNS : COLUMNS / 2;
      attrs(cursor, { x1: x, x2: x });
    },
  };
}

// The lines of an array, or null if it has more than `FEW` of them.
function linesOf(all, [n = 1, wide = 1]) {
  if (all.length !== n * wide || Math.min(n, wide) > FEW) return null;
  return wide <= FEW ? Array.from({ length: wide }, (_, d) => all.filter((_, i) => i % wide === d))
    : Array.from({ length: n }, (_, d) => all.subarray(d * wide, (d + 1) * wide));
}

/** A small drawing of the numbers of a record: of a feature list, a long feature or an array; null without. */
export function sketch(record, roles) {
  const list = Object.entries(record.lists ?? {}).find(([name, { kind, steps }]) =>
    ["float", "int64"].includes(kind) && steps > 1 && (!roles.sequence.length || roles.sequence.includes(name)));
  const isLine = (name) => {
    const shape = roles.arrays?.[name]?.shape;
    return (record.features[shape]?.int64 ?? shape)?.length === 1;
  };
  const [name, found] = list ?? Object.entries(record.features ?? {})
    .find(([name, f]) => (f.n >= LONG && f.n <= MOST && f.float) || (f.bytes && isLine(name))) ?? [];
  if (!name) return null;
  const box = svg("svg.sketch", { viewBox: `0 0 ${COLUMNS} 100`, role: "img", label: name, hook: "sketch" });
  const load = !list && roles.arrays?.[name] ? arrayOf(record, name, roles.arrays[name])
    : values(record.id, name, null, found.kind).then((all) => ({ all, sides: list ? [found.steps, found.first[0]?.n ?? 1] : [found.n] }));
  load.then(({ all, sides }) => {
    const series = linesOf(all, sides) ?? [all];
    box.append(...lines(series, series[0].length, spanOf(series)).flat().filter(Boolean));
  }).catch(() => {}); // The values are on the page of the record, or their error.
  return box;
}

// Tracks that share a slider: { name, element, at(step) -> text }.
function group(label, span, tracks) {
  const slider = h("input", {
    type: "range", class: "wide", min: 0, max: span - 1, value: 0, hook: "slider", label: `Step of ${label}`,
    oninput: () => show(Number(slider.value)), onkeydown: (e) => e.stopPropagation(),
  });
  const place = h("output.small.number");
  const rows = tracks((share) => show(Math.round(share * (span - 1))));
  function show(step) {
    slider.value = step;
    setText(place, `step ${number(step)} of ${number(span)}`);
    slider.ariaValueText = place.textContent;
    for (const row of rows) setText(row.text, row.at(step));
  }
  for (const row of rows) {
    row.text = h("span.mono.small");
    row.changed = () => setText(row.text, row.at(Number(slider.value)));
  }
  show(0);
  return h("section.column", { label: label }, h("div.row.steps", { hidden: span < 2 }, slider, place),
    rows.map((row) => h("figure.track", h("figcaption.row", h("strong", row.name), row.text), row.element)));
}

// A track whose values come from the server: `load(box)` fills its box and gives its `at`.
function later(name, load) {
  const box = h("div.slot", muted("Reading …"));
  const track = { name, element: box, at: () => "" };
  load(box).then((at) => {
    track.at = at;
    track.changed();
  }, (error) => replace(box, sorry(error)));
  return track;
}

// Steps of a few values are lines over the steps; of longer ones, the values of the step at the cursor are drawn.
const numbers = (record, name, list, span, move) => later(name, async (box) => {
  const all = await values(record.id, name, null, list.kind);
  const widths = list.first.map((f) => f.n);
  // The steps that do not come with the record have the same width, or they are left out.
  const rest = list.steps - widths.length;
  const width = (all.length - widths.reduce((sum, n) => sum + n, 0)) / rest;
  if (rest > 0 && widths.every((n) => n === width)) while (widths.length < list.steps) widths.push(width);
  const note = widths.length < list.steps ? muted(`Steps of different lengths: the first ${number(widths.length)} of ${number(list.steps)} are drawn.`) : null;
  const starts = [0];
  for (const n of widths) starts.push(starts.at(-1) + n);
  const widest = widths.reduce((a, b) => Math.max(a, b), 0);
  const series = (_, c) => Float64Array.from(widths, (n, i) => (c < n ? all[starts[i] + c] : NaN));
  const drawn = widest <= Math.max(FEW, Math.min(SERIES, list.steps))
    ? chart(name, Array.from({ length: widest }, series), span, move, widest > 1 ? brief : null) : null;
  if (drawn) replace(box, drawn.element, note);
  return (i) => {
    drawn?.at(i);
    const step = i < widths.length ? all.subarray(starts[i], starts[i + 1]) : [];
    if (!drawn) replace(box, step.length ? chart(`${name}, step ${i}`, [step], step.length).element : null, note);
    if (!step.length) return i < widths.length ? "no value" : i < list.steps ? "not drawn" : "no step";
    if (drawn && widest > 1) return "";
    return Array.from(step.slice(0, 8), brief).join(", ") + (step.length > 8 ? `, … (${number(step.length)} values)` : "");
  };
});

function frames(record, name, list) {
  const image = h("img.frame", { alt: "", hook: "record-image", onerror: () => { image.hidden = true; } });
  return {
    name,
    element: image,
    at(i) {
      image.hidden = i >= list.steps || list.first[i]?.n === 0;
      if (image.hidden) return "no image";
      image.src = bytesUrl(record.id, name, { step: i });
      attrs(image, { alt: `${name}, step ${i}` });
      return "";
    },
  };
}

// Long features of an Example: those of the same length share a slider.
function longFeatures(record, roles) {
  const found = new Map();
  for (const [name, feature] of Object.entries(record.features ?? {})) {
    if (feature.n < LONG || feature.bytes || name === roles.pixels?.feature || roles.arrays?.[name]) continue;
    found.set(feature.n, [...(found.get(feature.n) ?? []), name]);
  }
  return [...found].map(([n, names]) => group(names.join(", "), n, (move) => names.slice(0, 20).map((name) => later(name, async (box) => {
    if (n > MOST) throw new Error(`${number(n)} values are too many to draw.`);
    const all = await allValues(record, name);
    const line = chart(name, [all], n, move);
    replace(box, line.element);
    return (i) => (line.at(i), brief(all[i]));
  }))));
}

// Arrays: lines, or slices of the last two dimensions as pixels.
function arrays(record, roles) {
  const wanted = Object.entries(roles.arrays ?? {}).filter(([name]) => record.features?.[name]?.n && name !== roles.pixels?.feature);
  return wanted.slice(0, 20).map(([name, of]) => {
    const box = h("div.slot", muted("Reading …"));
    arrayOf(record, name, of).then(({ all, sides }) => {
      const series = linesOf(all, sides);
      const channels = sides.length > 2 && [3, 4].includes(sides.at(-1)) ? sides.pop() : 1;
      const [rows, columns] = sides.slice(-2);
      const size = rows * columns * channels;
      const [low, high] = spanOf([all]);
      const ends = channels > 1 ? range(all) : [low, high > low ? high : low + 1];
      replace(box, group(name, series ? series[0].length : all.length / size, (move) => {
        const line = series && chart(name, series, series[0].length, move, series[1] && brief);
        const canvas = h("canvas.frame.pixels", { role: "img", label: name, hook: "slice" });
        return [{ name, element: line?.element ?? canvas, at(i) {
          line?.at(i);
          return line ? (series[1] ? "" : brief(series[0][i])) : paint(canvas, all.subarray(i * size, (i + 1) * size), [rows, columns, channels], ends);
        } }];
      }));
    }).catch((error) => replace(box, sorry(error)));
    return box;
  });
}

/** The feature lists, the long features and the arrays of a record. Hidden if it has none. */
export function sequence(record, context) {
  const roles = context.roles() ?? {};
  const lists = Object.entries(record.lists ?? {}).filter(([, list]) => list.steps > 0);
  const wanted = lists.filter(([name]) => roles.sequence?.includes(name));
  const isFrames = ([, list]) => list.first.some((f) => f.bytes?.some((v) => v.type?.startsWith("image/")));
  const shown = (wanted.length ? wanted : lists).sort((a, b) => isFrames(b) - isFrames(a));
  const groups = [...arrays(record, roles), ...longFeatures(record, roles)];
  if (shown.length) {
    const span = shown.reduce((n, [, list]) => Math.max(n, list.steps), 1);
    groups.unshift(group("the feature lists", span, (move) => shown.map(([name, list]) => {
      if (list.kind === "int64" || list.kind === "float") return numbers(record, name, list, span, move);
      if (isFrames([name, list])) return frames(record, name, list);
      return { name, element: null, at: (i) => (i >= list.steps ? "no step" : i < list.first.length ? featureText(list.first[i]) || "no value" : "not shown") };
    })));
  }
  return h("div.column.sequence", { hidden: !groups.length }, groups);
}
