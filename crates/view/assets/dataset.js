// The view "data": statistics as they come in, schema, shards and damage.

import { attrs, button, count, h, hbox, muted, number, problem, replace, setText, shellWord, size, svg, table, vbox } from "./dom.js";
import { aborted, get } from "./api.js";
import { and, barsOf, brief, histogram, percent, quoteName, subject, valueCondition, valueText } from "./histogram.js";
import { go, href, note, state } from "./state.js";

const PAGE = 50; // features drawn at once: sets with thousands of features stay fast
const TOP = 6; // frequent values shown at first

export const meter = (label, value, max) => h("progress", { label, value, max: Math.max(1, max) });
export const section = (name, hook, ...parts) => h("section.panel", { hook, label: name }, h("h2", name), ...parts);
const details = (label, content, props) => h("details", props, h("summary", label), content);

/** The part of a list that the page `p` of the address shows, and buttons to turn pages. */
export function paged(list) {
  const last = Math.max(0, Math.ceil(list.length / PAGE) - 1);
  const page = Math.min(last, Math.max(0, Math.floor(Number(state.p) || 0)));
  const turn = (to, label, hook) => button(label, () => go({ p: to || null }), hook, { disabled: to < 0 || to > last });
  const shown = list.slice(page * PAGE, (page + 1) * PAGE);
  const place = h("span", `${number(page + 1)} of ${number(last + 1)}`);
  return [shown, last ? [turn(page - 1, "Previous", "previous"), place, turn(page + 1, "Next", "next")] : null];
}

/** Asks for the answer of a scan until it is done, fails or `signal` ends it. */
export async function follow(path, params, signal, changed, fail) {
  let after;
  try {
    for (;;) {
      const answer = await get(path, { ...params, after }, { signal });
      if (signal.aborted) return;
      if (answer.error) return fail(answer.error);
      changed(answer);
      if (answer.done) return;
      after = answer.version;
      // The server waits for a change itself.
      await new Promise((resolve) => setTimeout(resolve, 250));
      if (signal.aborted) return;
    }
  } catch (error) {
    if (!aborted(error) && !signal.aborted) fail(error.message);
  }
}

const KINDS = { example: ["Example", "Examples"], sequence_example: ["SequenceExample", "SequenceExamples"], bytes: ["other record", "other records"] };
const PAYLOADS = { event: "TensorBoard events", example_list_with_context: "ExampleListWithContext" };

/** "9,769 Examples", "3 other records (text)" */
export function recordsText(stats) {
  const parts = Object.entries(KINDS).filter(([kind]) => stats.kinds?.[kind]).map(([kind, words]) => count(stats.kinds[kind], ...words));
  return (parts.join(", ") || count(stats.records, "record")) + (stats.payloads ? ` (${PAYLOADS[stats.payloads] ?? stats.payloads})` : "");
}

/** All features and feature lists: [name that tells them apart, feature]. */
export const featuresOf = (stats) => [...(stats.features ?? []), ...(stats.feature_lists ?? [])]
  .map((f) => [f.steps === undefined ? f.name : `${f.name} (feature list)`, f]);

/** "distinct" of statistics in words: estimates say so. */
export const distinctText = (distinct) => `${distinct.exact ? "" : "about "}${number(distinct.count)}`;

const between = (d) => (d.min === d.max ? brief(d.min) : `${brief(d.min)} to ${brief(d.max)}`);

export function mount(root, context) {
  const lifetime = new AbortController(); // of the view
  let scan = new AbortController(); // of the statistics
  let stats = null;
  let ready; // a promise of the first content
  let scanned = null; // the condition of the statistics on show
  let held = false; // the pointer is down
  let late = false; // and the features are to be drawn afterwards
  const open = new Set(); // <details> that stay open when a row is drawn anew

  const title = h("h1", "Data set");
  const what = h("p.muted");
  const notes = vbox();
  const totals = h("dl.totals");
  const search = h("input", {
    type: "search", label: "Search features", placeholder: "Search features",
    oninput: () => context.go({ q: search.value, p: null }, { replace: true }),
  });
  const pages = hbox();
  const searchRow = h("div.row.spread", { hidden: true }, search, pages);
  const features = h("div.features");
  const boxes = [loadSchema, loadShards, loadDamage].map((load) => {
    const box = vbox();
    load(box, context, lifetime.signal);
    return box;
  });
  const { damage, shards } = context.dataset;
  const damaged = section(damage.ranges ? `Damage: ${count(damage.ranges, "range")} left out` : "Damage", "damage", boxes[2]);
  const sections = [
    prepared(context),
    section("Features", "stats", searchRow, features),
    section("Schema", "schema", boxes[0]),
    section(count(shards, "shard"), "shards", boxes[1]),
  ].filter(Boolean);
  sections.splice(damage.ranges ? 0 : sections.length, 0, damaged);
  const line = () => context.command("stats", state.where ? `--where ${shellWord(state.where)}` : "");
  const copy = context.copyCommand(line);
  replace(root, h("div.page.data-view",
    h("header.column", title, what, notes, totals,
      h("div.row.spread", h("nav.row", { label: "Parts of this page" }, sections.map((s) => button(s.getAttribute("aria-label"), () => s.scrollIntoView()))),
        copy)),
    sections));

  // A click is lost if its element is replaced before the release.
  features.addEventListener("pointerdown", () => { held = true; });
  for (const name of ["pointerup", "pointercancel"]) {
    addEventListener(name, () => {
      held = false;
      if (late) setTimeout(drawFeatures);
    }, { signal: lifetime.signal });
  }

  function start() {
    scan.abort();
    scan = new AbortController();
    scanned = state.where ?? "";
    stats = null;
    copy.hidden = false;
    setText(what, "Reading the records …");
    const filter = scanned ? h("div.note.row", "Statistics of the records that meet ", h("code", scanned),
      button("Show these records", () => context.go({ view: context.listView(), at: null })), button("All records", () => context.go({ where: null }))) : null;
    replace(notes, filter);
    let seen;
    ready = new Promise((resolve) => { seen = resolve; });
    follow("/api/stats", { where: scanned }, scan.signal, (answer) => {
      if (answer.stats) stats = answer.stats;
      const part = answer.done ? "" : `${number(answer.read)} of ${count(answer.records, "record")} read`;
      replace(notes, part ? meter("Records read for the statistics", answer.read, answer.records) : null, filter);
      setText(what, part && `${part} so far`);
      if (stats) setText(title, `${recordsText(stats)} in ${count(stats.shards ?? shards, "shard")}`);
      if (!answer.stats) return;
      setText(searchRow.previousSibling, count(featuresOf(stats).length, "feature"));
      drawTotals();
      drawFeatures();
      seen();
      if (answer.done) context.announce(`Statistics of ${recordsText(stats)} are complete.`);
    }, (message) => {
      replace(notes, filter, problem(message));
      if (!stats) {
        copy.hidden = true; // of a condition that cannot be
        setText(what, "There are no statistics.");
        replace(features, muted(scanned ? "Change the condition, or take it away." : "Reload the page to try again."));
      }
      seen();
    });
  }

  function drawTotals() {
    const { sizes, distinct_payloads: distinct } = stats;
    const term = (name, value, why) => (value ? h("div", { title: why }, h("dt", name), h("dd", value)) : null);
    replace(totals,
      term("Records", number(stats.records)),
      term("Payload", size(stats.payload_bytes)),
      sizes && term("Record size", sizes.min === sizes.max ? size(sizes.min) : `${size(sizes.min)} to ${size(sizes.max)}, median ${size(sizes.quantiles.p50)}`),
      distinct && term("Distinct records", distinctText(distinct)),
      term("Features", number(featuresOf(stats).length)),
      stats.skipped ? term("Left out", number(stats.skipped), "Damaged or malformed records") : null,
      stats.not_counted ? term("Features not counted", number(stats.not_counted), "Left out to save memory") : null);
  }

  function drawFeatures() {
    late = held;
    if (held || !stats || scan.signal.aborted) return;
    const all = featuresOf(stats);
    const found = state.q ? all.filter(([key]) => key.toLowerCase().includes(state.q.toLowerCase())) : all;
    const [shown, turns] = paged(found);
    searchRow.hidden = all.length <= 20;
    if (document.activeElement !== search) search.value = state.q ?? "";
    replace(pages, h("span.muted", state.q ? `${number(found.length)} of ${count(all.length, "feature")}` : count(all.length, "feature")), turns);
    const rows = shown.map(([key, feature]) => row(key, feature));
    if (!rows.length) {
      const none = stats.records ? "The records have no features." : scanned ? "No record meets the condition." : "There are no records.";
      const why = all.length ? `No name of a feature contains “${state.q}”.` : none;
      rows.push(!all.length && stats.fields?.length ? fieldsTable(stats.fields) : h("p.muted", { hook: "empty" }, why));
    }
    // The element with the focus is found again by its path in the tree.
    const path = [];
    const active = document.activeElement;
    if (features.contains(active)) for (let e = active; e !== features; e = e.parentNode) path.unshift([...e.parentNode.children].indexOf(e));
    replace(features, rows);
    const again = path.reduce((e, i) => e?.children[i], features);
    if (path.length && again?.nodeName === active.nodeName) again.focus({ preventScroll: true });
  }

  const pick = (where) => context.go({ view: context.listView(), where: and(state.where, where), at: null, sel: null });

  function row(key, feature) {
    const list = feature.steps !== undefined;
    const total = feature.present + feature.absent + (list ? 0 : feature.kindless + feature.empty);
    const kinds = ["int64", "float", "bytes"].filter((kind) => feature[kind]);
    const { lengths, steps } = feature;
    const spread = (d, noun, rest = "") => (d.min === d.max ? count(d.min, noun)
      : `${number(d.min)} to ${number(d.max)} ${noun}s, median ${number(d.quantiles.p50)}`) + rest;
    return h("article.feature", { label: key },
      h("div.who",
        h("h3", feature.name),
        hbox(h("span.chip", kinds.length > 1 ? `several kinds: ${kinds.join(", ")}` : feature.kind ?? "no kind"), list && h("span.chip", "feature list")),
        share(feature.present, total, feature.present === total ? "in all records" : `in ${number(feature.present)}, ${percent(feature.present, total)}`),
        feature.present < total && !list && button(`missing in ${number(total - feature.present)}`,
          () => pick(`absent(${quoteName(feature.name)})`), "absent", { class: "link small" }),
        steps ? muted(spread(steps, "step")) : null,
        lengths && (lengths.min !== 1 || lengths.max !== 1) && muted(spread(lengths, "value", list ? " per step" : " per record"))),
      kinds.length ? kinds.map((kind) => valuesRow(key, feature, kind, list, kinds.length > 1)) : muted("no values"));
  }

  function valuesRow(key, feature, kind, list, titled) {
    const values = feature[kind];
    const unit = list || feature.lengths?.max > 1 ? "values" : "records";
    const figures = [];
    const add = (term, value) => value && figures.push(h("div", h("dt", term), h("dd", value)));
    const kept = (name, label, content) => {
      const id = `${key} ${kind} ${name}`;
      const fill = () => element.childElementCount < 2 && element.append(content());
      const element = details(label, null, { ontoggle: () => { open[element.open ? "add" : "delete"](id); fill(); } });
      if (open.has(id)) fill(element.open = true);
      return element;
    };
    let chart, more;
    if (kind === "bytes") {
      const { top, images } = values;
      const differ = values.distinct.exact && values.distinct.count === values.values && values.values > 1;
      const examples = differ ? top.filter((entry) => entry.value !== undefined).slice(0, 3) : top.slice(0, TOP);
      chart = top.length ? h("div", { hook: "histogram", role: "group", label: `${key}: frequent values` },
        differ && muted(`all values differ${examples.length ? "; for example" : ""}`), topRows(feature, kind, list, examples),
        top.length > TOP && !differ && kept("top", `${number(top.length - TOP)} more`, () => topRows(feature, kind, list, top.slice(TOP)))) : null;
      add("bytes each", values.lengths && between(values.lengths));
      add("not text", values.not_utf8 && percent(values.not_utf8, values.values));
      for (const [format, n] of Object.entries(images?.formats ?? {})) add(format, n && count(n, "image"));
      add("pixels", images?.width && `${between(images.width)} × ${between(images.height)}`);
      add("broken images", images?.undecodable && number(images.undecodable));
    } else {
      const data = barsOf(feature, kind);
      chart = data && histogram(key, data, { pick, unit });
      add("mean", brief(values.mean));
      add("std", brief(values.std));
      add("median", brief(values.quantiles?.p50));
      add("zeros", values.zeros && percent(values.zeros, values.values));
      for (const [name, term, test] of [["nan", "NaN", "is nan"], ["positive_infinity", "+∞", "== +inf"], ["negative_infinity", "−∞", "== -inf"]]) {
        if (!values[name]) continue;
        const n = number(values[name]);
        add(term, list ? n : button(n, () => pick(`${subject(feature)} ${test}`), term, { class: "link" }));
      }
      more = kept("more", "Quantiles and frequent values", () => h("div.deep",
        values.quantiles ? table(null, [["min", values.min], ...Object.entries(values.quantiles), ["max", values.max]]
          .map(([name, x]) => [name, brief(x)]), true) : null,
        values.top?.length ? h("div", muted(`Most frequent values${values.top_error ? ", counts at least" : ""}`),
          topRows(feature, kind, list, values.top)) : null));
    }
    add("values", unit === "values" && number(values.values));
    add("distinct", distinctText(values.distinct));
    return h("div.values", titled && muted(`as ${kind}, in ${number(feature.kinds?.[kind] ?? 0)}`),
      h("div", chart ?? muted("no finite value")), h("div", h("dl.figures", figures), more));
  }

  function topRows(feature, kind, list, top) {
    const { values } = feature[kind];
    return h("ul.top", top.map((entry) => {
      const where = list ? null : valueCondition(feature, kind, entry);
      const text = valueText(entry);
      const bar = h("span.amount");
      bar.style.width = `${100 * entry.count / values}%`;
      const parts = [bar, h("span.word", text), h("span.number.muted", percent(entry.count, values))];
      const title = `${text}: ${number(entry.count)}`;
      return h("li", where ? button(parts, () => pick(where), "bar", { title, label: `${feature.name} ${title}, filter` })
        : h("span", { title, hook: "bar" }, parts));
    }));
  }

  start();
  return {
    title: "Data set",
    keys: {},
    update(now) {
      if ((now.where ?? "") !== scanned) start();
      else drawFeatures();
      if (now.part) {
        damaged.scrollIntoView();
        note({ part: null });
      }
      return ready;
    },
    unmount() {
      scan.abort();
      lifetime.abort();
    },
  };
}

export function share(part, all, text, props) {
  const bar = h("span");
  bar.style.width = `${all ? 100 * part / all : 0}%`;
  return h("div.share", props, h("span.gauge", bar), h("span.small", text));
}

function fieldsTable(fields) {
  return table(["Field", "Type", "In", "Values"], fields.map((field) => {
    const numbers = field.int64 ?? field.fixed64 ?? field.fixed32;
    return [
      `${field.number} ${field.name ?? ""}`,
      Object.keys(field.types ?? {}).join(", "),
      field.absent ? `${number(field.present)}, ${percent(field.present, field.present + field.absent)}` : "all",
      numbers ? between(numbers) : field.lengths ? `${between(field.lengths)} bytes` : "",
    ];
  }));
}

// The splits, features and labels of a prepared data set.
function prepared({ dataset, listView }) {
  const { splits, declared, labels } = dataset;
  const enter = ({ name, start }) => h("a", { href: href({ view: listView(), at: start || null, where: null, part: null }) }, name);
  const names = (all) => all && [`${number(all.length)}: `, all.slice(0, 12).join(", "), all.length > 12 && ", …"];
  return splits.length > 0 && section("Splits, features and labels", "prepared",
    table(["Split", "Records", "Shards"], splits.map((split) => [enter(split), number(split.records), number(split.shards)]), true, "pair"),
    table(["Feature", "Type", ...(Object.keys(labels).length ? ["Labels"] : [])],
      Object.entries(declared).map(([name, type]) => [name, h("code", type), names(labels[name])]), false, "pair"));
}

async function load(path, params, signal, box, draw) {
  replace(box, muted("Reading …"));
  try {
    const answer = await get(path, params, { signal });
    if (!signal.aborted) replace(box, draw(answer));
  } catch (error) {
    if (!aborted(error) && !signal.aborted) replace(box, problem(error.message));
  }
}

function loadSchema(box, context, signal) {
  load("/api/schema", {}, signal, box, ({ records, features, python, json }) => {
    if (!features?.length) return muted("There is no schema: the records have no features.");
    const conflicts = features.filter((f) => f.conflict);
    const bare = features.filter((f) => !f.spec && !f.conflict);
    const without = [[conflicts, "with conflicts"], [bare, "without a kind"]].filter(([some]) => some.length)
      .map(([some, why]) => `${count(some.length, "feature")} ${why}.`);
    const sorted = [...conflicts, ...features.filter((f) => !f.conflict)];
    const rows = (list) => table(["Feature", "Specification"], list.map((f) => [
      f.list ? `${f.name} (feature list)` : f.name,
      [h("code", f.spec ?? "none"), f.conflict ? h("div.warning", f.conflict) : null],
    ]), false, "pair");
    const first = rows(sorted.slice(0, 2 * PAGE));
    const copy = (label, text) => text && button(label,
      () => context.copy(typeof text === "string" ? text : JSON.stringify(text, null, 1), label.slice(5)), label);
    return [h("p.muted", `From ${count(records, "record")}. ${without.join(" ") || "Each feature has a specification."}`), first,
      sorted.length > 2 * PAGE && button(`Show all ${number(sorted.length)} features`, (e) => { first.replaceWith(rows(sorted)); e.target.remove(); }),
      hbox(copy("Copy Python specification", python), copy("Copy JSON schema", json)),
      python && details("Python specification", h("pre.code", { tabindex: "0" }, python))];
  });
}

function loadShards(box, context, signal) {
  load("/api/shards", { from: 0, n: 10000 }, signal, box, ({ total, shards }) => {
    if (!shards.length) return muted("There are no shards.");
    // One path for all bars and a slider under it: ten thousand elements would be slow. Few shards do not fill the width.
    const places = Math.max(shards.length, 12);
    const most = shards.reduce((m, s) => Math.max(m, s.bytes), 1);
    const top = (s) => (100 - Math.max(2, 100 * s.bytes / most)).toFixed(1);
    const path = (wanted, wide) => shards.map((s, i) => (wanted(s) ? `M${i} 100V${top(s)}h${wide}V100z` : "")).join("");
    const wide = places > 200 ? 1 : 0.85;
    const mark = svg("rect.place", { width: 1, height: 100 });
    const text = h("output.small");
    const name = ({ name, records, bytes, damaged }) => `${name}: ` + [
      count(records, "record"), size(bytes), damaged && count(damaged, "damaged range"),
    ].filter(Boolean).join(", ");
    const enter = (i) => shards[i].records && context.go({ view: context.listView(), where: null, seed: null, at: shards[i].start, sel: null });
    const slider = h("input", {
      type: "range", class: "wide", min: 0, max: shards.length - 1, value: 0, label: "Shard", hidden: shards.length === 1,
      oninput: () => show(Number(slider.value)),
      onkeydown: (e) => {
        e.stopPropagation(); // Arrow keys move the slider, not the page's records.
        if (e.key === "Enter") enter(Number(slider.value));
      },
    });
    const records = button("Show its records", () => enter(Number(slider.value)));
    function show(i) {
      slider.value = i;
      attrs(mark, { x: i });
      setText(text, name(shards[i]));
      slider.ariaValueText = name(shards[i]);
      records.disabled = !shards[i].records;
    }
    const under = (f) => (e) => {
      const edge = e.currentTarget.getBoundingClientRect();
      const i = Math.floor((e.clientX - edge.left) / edge.width * places);
      if (shards[i]) f(i);
    };
    const damaged = shards.filter((s) => s.damaged).length;
    show(0);
    return [h("p.muted", total > 1 ? `${number(total)} shards in the order of their records; the height is the size, ${size(most)} at most.` : "1 shard.",
      total > shards.length ? ` The first ${number(shards.length)} are shown.` : "", damaged ? ` ${count(damaged, "shard")} with damage.` : ""),
    shards.length > 1 && svg("svg.shards", { viewBox: `0 0 ${places} 100`, "aria-hidden": "true", onpointermove: under(show), onclick: under(enter) },
      mark, svg("path.fill", { d: path(() => true, wide) }), svg("path.bad", { d: path((s) => s.damaged, Math.max(wide, places / 500)) })),
    slider, h("div.row.spread", text, records)];
  });
}

function loadDamage(box, context, signal) {
  const verify = () => {
    const what = h("p.muted", { role: "status" }, "Checking …");
    const list = vbox();
    replace(box, what, list);
    follow("/api/damage", {}, signal, ({ checked, bytes, done, shards }) => {
      const found = shards.length ? `${count(shards.length, "shard")} with damage` : "no damage";
      setText(what, done ? `All ${size(bytes)} checked: ${found}.` : `${size(checked)} of ${size(bytes)} checked: ${found} so far.`);
      replace(list, done ? null : meter("Bytes checked", checked, bytes), shards.slice(0, 200).map((shard) => damagedShard(shard, context)));
    }, (message) => replace(box, problem(message), h("div", button("Try again", verify))));
  };
  const offer = (...known) => [known,
    h("p.muted", `${known.length ? "The indexes know these ranges" : "No damage is known"}. To verify all checksums, every byte has to be read.`),
    h("div", button("Verify all checksums", verify, "check"))];
  const draw = ({ shards }) => offer(...shards.map((shard) => damagedShard(shard, context)));
  if (context.dataset.damage.ranges) load("/api/damage", { known: 1 }, signal, box, draw);
  else replace(box, offer());
}

function damagedShard({ name, path = name, bytes, error, ranges }, context) {
  const line = `tfseek salvage ${shellWord(path)} ${shellWord(`${path}.salvaged`)}`;
  const lost = ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  const whole = 1000 / Math.max(1, bytes);
  return h("div.damaged", h("h3", name),
    // A range of a few bytes in a large file is still to be seen.
    svg("svg.map", { viewBox: "0 0 1000 10", role: "img", label: `${name}: ${count(ranges.length, "damaged range")}` },
      ranges.slice(0, 2000).map(([from, to]) => svg("rect.bad", { x: Math.min(996, from * whole), width: Math.max(4, (to - from) * whole), height: 10 }))),
    error ? h("p.error", error) : null,
    ranges.length ? muted(`${count(ranges.length, "range")}: `,
      ranges.slice(0, 10).map(([from, to]) => `bytes ${number(from)} to ${number(to)}`).join("; "),
      ranges.length > 10 ? `; ${number(ranges.length - 10)} more` : "", `: ${size(lost)} of ${size(bytes)}`) : null,
    hbox(h("code.small", line), button("Copy the command", () => context.copy(line, "the command"))));
}
