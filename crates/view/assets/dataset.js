// The view "data": statistics as they come in, schema, shards and damage.

import { count, h, number, replace, setText, shellWord, size, svg } from "./dom.js";
import { aborted, get } from "./api.js";
import { and, barsOf, brief, histogram, percent, quoteName, valueCondition, valueText } from "./histogram.js";
import { state } from "./state.js";

const PAGE = 50; // features drawn at once: sets with thousands of features stay fast
const TOP = 6; // frequent values shown at first

/**
 * Asks for the answer of a scan again and again, until it is done, fails or `signal` ends it. `news(answer)` is called with each answer,
 * `fail(message)` at most once.
 */
export async function follow(path, params, signal, news, fail) {
  let after;
  try {
    for (;;) {
      const answer = await get(path, { ...params, after }, { signal });
      if (signal.aborted) return;
      news(answer);
      if (answer.error) return fail(answer.error);
      if (answer.done) return;
      after = answer.version;
      // The server waits for news itself. The pause keeps a scan that is quick with its answers from filling the page with work.
      await new Promise((resolve) => setTimeout(resolve, 250));
      if (signal.aborted) return;
    }
  } catch (error) {
    if (!aborted(error) && !signal.aborted) fail(error.message);
  }
}

/** "9,769 Examples", "3 records (text)" */
export function recordsText(stats) {
  const names = { example: ["Example", "Examples"], sequence_example: ["SequenceExample", "SequenceExamples"], bytes: ["other record", "other records"] };
  const parts = Object.entries(names).filter(([kind]) => stats.kinds?.[kind]).map(([kind, [one, many]]) => count(stats.kinds[kind], one, many));
  return parts.length ? parts.join(", ") : count(stats.records, "record");
}

/** "name", of a list of features or feature lists that may have the same name. */
export const featureKey = (feature) => `${feature.steps === undefined ? "" : "list "}${feature.name}`;

/** A button that copies text. */
export const copyButton = (context, label, text, hook) =>
  h("button", { type: "button", "data-test": hook, onclick: () => context.copy(typeof text === "function" ? text() : text, label.replace(/^Copy (the )?/, "")) }, label);

// `tfseek view` leaves damaged ranges out by --damage. `stats` has a switch of its own for it.
const statsCommand = (command) => command.replace(/ --damage[ =]\w+/, " --skip-errors");

export function mount(root, context) {
  const lifetime = new AbortController(); // of the view
  let scan = new AbortController(); // of the statistics
  let stats = null;
  let scanned = null; // the condition of the statistics on show
  let answer = null;
  let held = false; // the pointer is down
  let late = false; // and the features are to be drawn afterwards
  const open = new Set(); // <details> that stay open when a row is drawn anew

  const title = h("h1", {}, context.dataset.name);
  const what = h("p", { class: "muted" });
  const meter = h("progress", { "aria-label": "Records read for the statistics" });
  const facts = h("dl", { class: "facts" });
  const condition = h("div", { hidden: true });
  const failure = h("div", { class: "note error", role: "alert", "data-test": "error", hidden: true });
  const search = h("input", { type: "search", "aria-label": "Search features", placeholder: "Search features", oninput: () => context.go({ q: search.value, p: null }, { replace: true }) });
  const features = h("div", { class: "features" });
  const featuresHead = h("h2", {}, "Features");
  const pages = h("div", { class: "row" });
  const searchRow = h("div", { class: "row spread", hidden: true }, search, pages);
  const shards = h("div", { class: "column" });
  const schema = h("div", { class: "column" });
  const damage = h("div", { class: "column" });
  const warnings = context.dataset.warnings ?? [];
  const section = (name, hook, ...parts) => h("section", { class: "panel", "data-test": hook, "aria-label": name }, ...parts);
  const sections = {
    Features: section("Features", "stats", featuresHead, searchRow, features),
    Schema: section("Schema", "schema", h("h2", {}, "Schema"), schema),
    Shards: section("Shards", "shards", h("h2", {}, "Shards"), shards),
    Damage: section("Damage", "damage", h("h2", {}, "Damage"), damage),
  };
  const jump = Object.entries(sections).map(([name, element]) => h("button", { type: "button", class: "quiet", onclick: () => element.scrollIntoView({ block: "start" }) }, name));
  const statsLine = () => {
    const where = state.where ? ` --where ${shellWord(state.where)}` : "";
    return `tfseek stats ${statsCommand(context.dataset.command)}${where}`;
  };
  replace(root, h("div", { class: "page data-view" },
    h("header", { class: "column" }, title, what, meter, condition, failure, facts,
      warnings.map((text) => h("p", { class: "note warning" }, text)),
      h("div", { class: "row spread" }, h("nav", { class: "row", "aria-label": "Parts of this page" }, jump),
        copyButton(context, "Copy as command", statsLine, "copy-command"))),
    ...Object.values(sections)));

  // A click is lost if its element is replaced between press and release, so rows wait for the release.
  features.addEventListener("pointerdown", () => { held = true; });
  const released = () => {
    held = false;
    if (late) setTimeout(drawFeatures);
  };
  addEventListener("pointerup", released, { signal: lifetime.signal });
  addEventListener("pointercancel", released, { signal: lifetime.signal });

  function start() {
    scan.abort();
    scan = new AbortController();
    scanned = state.where ?? "";
    stats = null;
    answer = null;
    failure.hidden = true;
    condition.hidden = !scanned;
    features.setAttribute("aria-busy", "true");
    setText(what, "Reading the records …");
    if (scanned) {
      replace(condition, h("div", { class: "note row" }, "Statistics of the records that meet ", h("code", {}, scanned),
        h("button", { type: "button", onclick: () => context.go({ view: "grid", at: null }) }, "Show these records"),
        h("button", { type: "button", onclick: () => context.go({ where: null }) }, "All records")));
    }
    follow("/api/stats", { where: scanned || null, set: context.set }, scan.signal, (news) => {
      answer = news;
      if (news.stats) stats = news.stats;
      drawHead();
      if (news.stats) drawFeatures();
      if (stats || news.done) context.ready?.();
      if (news.done) {
        features.removeAttribute("aria-busy");
        context.announce(`Statistics of ${recordsText(stats ?? { records: news.read })} are complete.`);
      }
    }, (message) => {
      replace(failure, message);
      failure.hidden = false;
      features.removeAttribute("aria-busy");
      meter.hidden = true;
      if (!stats) {
        setText(what, "No statistics.");
        replace(features, h("p", { class: "muted" }, scanned ? "Change the condition, or take it away, to see statistics." : "Reload the page to try again."));
      }
      context.ready?.();
    });
  }

  function drawHead() {
    const { read = 0, records = 0, done } = answer;
    meter.hidden = done;
    meter.max = Math.max(1, records);
    meter.value = read;
    const part = done ? "" : `${number(read)} of ${count(records, "record")} read`;
    if (!stats) return setText(what, part);
    const made = [recordsText(stats), `in ${count(stats.shards ?? context.dataset.shards, "shard")}`];
    if (stats.payloads) made[0] += ` (${{ event: "TensorBoard events", example_list_with_context: "ExampleListWithContext" }[stats.payloads] ?? stats.payloads})`;
    setText(what, made.join(" ") + (part ? `; ${part} so far` : ""));
    const fact = (term, value, why) => value === null || value === undefined ? null : h("div", { title: why }, h("dt", {}, term), h("dd", {}, value));
    const sizes = stats.sizes;
    const equal = stats.distinct_payloads;
    replace(facts,
      fact("Records", number(stats.records)),
      fact("Payload", size(stats.payload_bytes)),
      sizes && fact("Record size", sizes.min === sizes.max ? size(sizes.min) : `${size(sizes.min)} · ${size(sizes.quantiles.p50)} · ${size(sizes.max)}`, "Smallest, median and largest payload"),
      equal && fact("Distinct records", `${equal.exact ? "" : "about "}${number(equal.count)}`, equal.exact ? "Distinct payloads" : "Estimate with a standard error of 0.81 %"),
      fact("Features", number((stats.features?.length ?? 0) + (stats.feature_lists?.length ?? 0))),
      stats.skipped ? fact("Left out", number(stats.skipped), "Damaged or malformed records") : null,
      stats.cut_files ? fact("Cut files", number(stats.cut_files), "Files whose rest was left out after damage") : null,
      stats.not_counted ? fact("Features not counted", number(stats.not_counted), "Left out to save memory") : null);
  }

  function drawFeatures() {
    late = held;
    if (held || !stats || scan.signal.aborted) return;
    const all = [...(stats.features ?? []), ...(stats.feature_lists ?? [])];
    const wanted = (state.q ?? "").toLowerCase();
    const found = wanted ? all.filter((f) => f.name.toLowerCase().includes(wanted)) : all;
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    const page = Math.min(last, Math.max(0, Math.floor(Number(state.p) || 0)));
    setText(featuresHead, all.length || !stats.fields?.length ? "Features" : "Fields of the payloads");
    searchRow.hidden = all.length <= 20;
    if (document.activeElement !== search) search.value = state.q ?? "";
    const turn = (to, label, hook) => h("button", { type: "button", "data-test": hook, disabled: to < 0 || to > last, onclick: () => context.go({ p: to || null }) }, label);
    replace(pages, h("span", { class: "muted" }, wanted ? `${number(found.length)} of ${count(all.length, "feature")}` : count(all.length, "feature")),
      last ? [turn(page - 1, "Previous", "previous"), h("span", {}, `${page + 1} of ${last + 1}`), turn(page + 1, "Next", "next")] : null);
    const rows = found.slice(page * PAGE, (page + 1) * PAGE).map((feature) => featureRow(feature));
    const none = all.length ? `No feature has “${state.q}” in its name.` : "The records have no features.";
    keepFocus(features, () => replace(features, rows.length ? rows : all.length || !stats.fields?.length ? h("p", { class: "muted", "data-test": "empty" }, none) : fieldsTable(stats.fields)));
  }

  const pick = (where) => context.go({ view: "grid", where: and(state.where, where), at: null });

  function featureRow(feature) {
    const list = feature.steps !== undefined;
    const all = feature.present + feature.absent + (list ? 0 : feature.kindless + feature.empty);
    const total = Math.max(all, stats.records);
    const kinds = ["int64", "float", "bytes"].filter((kind) => feature[kind]);
    const lengths = feature.lengths;
    const parts = [];
    for (const kind of kinds) parts.push(valuesOf(feature, kind, list, kinds.length > 1));
    const spread = (d, one, many) => d.min === d.max ? count(d.min, one, many) : `${number(d.min)} to ${number(d.max)} ${many}, median ${number(d.quantiles.p50)}`;
    const missing = total - feature.present;
    return h("article", { class: "feature", "aria-label": feature.name },
      h("div", { class: "who" },
        h("h3", {}, feature.name),
        h("div", { class: "row" }, h("span", { class: "chip" }, feature.kind ?? "no kind"), list ? h("span", { class: "chip" }, "feature list") : null,
          kinds.length > 1 ? h("span", { class: "chip warning" }, "several kinds") : null),
        presence(feature, total),
        missing && !list ? h("button", { type: "button", class: "link small", "data-test": "absent", onclick: () => pick(`absent(${quoteName(feature.name)})`) },
          `missing in ${number(missing)}`) : null,
        list && feature.steps ? h("p", { class: "small muted" }, spread(feature.steps, "step", "steps")) : null,
        lengths && !(lengths.min === 1 && lengths.max === 1) ? h("p", { class: "small muted" }, spread(lengths, "value", "values"), list ? " per step" : " per record") : null,
        feature.empty ? h("p", { class: "small muted" }, `empty in ${number(feature.empty)}`) : null),
      parts.length ? parts : h("p", { class: "muted" }, "no values"));
  }

  function valuesOf(feature, kind, list, titled) {
    const values = feature[kind];
    const key = `${featureKey(feature)} ${kind}`;
    const heading = titled ? h("p", { class: "small muted" }, `as ${kind}, in ${number(feature.kinds?.[kind] ?? 0)}`) : null;
    const unit = list || feature.lengths?.max > 1 ? "values" : "records";
    const exact = values.distinct.exact && !values.top_error;
    const facts = [];
    const add = (term, value) => value !== null && value !== undefined && facts.push(h("div", {}, h("dt", {}, term), h("dd", {}, value)));
    let chart;
    if (kind === "bytes") {
      const l = values.lengths;
      chart = topValues(feature, kind, list, key);
      add("bytes each", l && (l.min === l.max ? number(l.min) : `${number(l.min)} to ${number(l.max)}`));
      if (values.not_utf8) add("not text", percent(values.not_utf8, values.values));
      for (const [format, n] of Object.entries(values.images?.formats ?? {})) if (n) add(format, `${number(n)} images`);
      const range = (d) => d.min === d.max ? number(d.min) : `${number(d.min)} to ${number(d.max)}`;
      if (values.images?.width) add("pixels", `${range(values.images.width)} × ${range(values.images.height)}`);
      if (values.images?.undecodable) add("broken images", number(values.images.undecodable));
    } else {
      const data = barsOf(feature, kind, !list);
      chart = data && histogram(feature.name, data, { pick, unit });
      add("mean", brief(values.mean));
      add("std", brief(values.std));
      add("median", brief(values.quantiles?.p50));
      if (values.zeros) add("zeros", percent(values.zeros, values.values));
      for (const [name, term, test] of [["nan", "NaN", "is nan"], ["positive_infinity", "+∞", "== +inf"], ["negative_infinity", "−∞", "== -inf"]]) {
        if (!values[name]) continue;
        const subject = feature.lengths?.max > 1 ? `any(${quoteName(feature.name)})` : quoteName(feature.name);
        add(term, list ? number(values[name]) : h("button", { type: "button", class: "link warning", onclick: () => pick(`${subject} ${test}`) }, number(values[name])));
      }
    }
    if (unit === "values") add("values", number(values.values));
    add("distinct", `${values.distinct.exact ? "" : "about "}${number(values.distinct.count)}`);
    const more = kind === "bytes" ? null : h("div", { class: "deep" },
      values.quantiles ? h("table", { class: "data" }, h("tbody", {}, [["min", values.min], ...Object.entries(values.quantiles), ["max", values.max]].map(([name, x]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, brief(x)))))) : null,
      values.top?.length ? h("div", {}, h("p", { class: "small muted" }, exact ? "Most frequent values" : "Most frequent values, counts at least"), topRows(feature, kind, list, values.top)) : null);
    return h("div", { class: "values" }, heading,
      h("div", { class: "what" }, chart ?? h("p", { class: "muted small" }, "no finite value")),
      h("div", {}, h("dl", { class: "figures" }, facts), more ? details(key, "Quantiles and frequent values", more) : null));
  }

  function topRows(feature, kind, list, top) {
    const values = feature[kind];
    return h("ul", { class: "top" }, top.map((entry) => {
      const where = list ? null : valueCondition(feature, kind, entry);
      const text = valueText(entry);
      const bar = h("span", { class: "amount", "aria-hidden": "true" });
      bar.style.width = `${100 * entry.count / values.values}%`;
      const share = h("span", { class: "number muted" }, percent(entry.count, values.values));
      const name = h("span", { class: "word" }, text);
      const label = `${feature.name} ${text}: ${number(entry.count)}`;
      return h("li", {}, where
        ? h("button", { type: "button", "data-test": "bar", title: `${text}: ${number(entry.count)}`, "aria-label": `${label}, filter`, onclick: () => pick(where) }, bar, name, share)
        : h("span", { class: "plain", "data-test": "bar", title: text }, bar, name, share));
    }));
  }

  function topValues(feature, kind, list, key) {
    const { top = [], distinct, values } = feature[kind];
    if (!top.length) return null;
    const rest = top.slice(TOP);
    const lead = distinct.exact && distinct.count === values && values > 1 ? h("p", { class: "small muted" }, "all values differ; for example") : null;
    return h("div", { "data-test": "histogram", role: "group", "aria-label": `${feature.name}: frequent values` }, lead, topRows(feature, kind, list, top.slice(0, lead ? 3 : TOP)),
      rest.length && !lead ? details(`${key} top`, `${number(rest.length)} more`, topRows(feature, kind, list, rest)) : null);
  }

  function details(key, label, content) {
    const element = h("details", { open: open.has(key), ontoggle: () => (element.open ? open.add(key) : open.delete(key)) }, h("summary", {}, label), content);
    return element;
  }

  start();
  loadSchema(schema, context, lifetime.signal);
  loadShards(shards, context, lifetime.signal);
  loadDamage(damage, context, lifetime.signal);

  return {
    title: "Data set",
    keys: {},
    update(now) {
      if ((now.where ?? "") !== scanned) start();
      else drawFeatures();
    },
    unmount() {
      scan.abort();
      lifetime.abort();
    },
  };
}

function presence(feature, total) {
  const bar = h("span");
  bar.style.width = `${total ? 100 * feature.present / total : 0}%`;
  const text = feature.present === total ? "in all records" : `in ${number(feature.present)}, ${percent(feature.present, total)}`;
  return h("div", { class: "presence" }, h("span", { class: "track", "aria-hidden": "true" }, bar), h("span", { class: "small" }, text));
}

// Draws rows anew without losing the place of the keyboard: the element with focus is found again by its path in the tree.
function keepFocus(root, draw) {
  const path = [];
  const active = document.activeElement;
  if (root.contains(active)) for (let e = active; e !== root; e = e.parentNode) path.unshift([...e.parentNode.children].indexOf(e));
  draw();
  if (!path.length) return;
  const found = path.reduce((e, i) => e?.children[i], root);
  if (found?.nodeName === active.nodeName) found.focus({ preventScroll: true });
}

function fieldsTable(fields) {
  const range = (d) => (d ? (d.min === d.max ? brief(d.min) : `${brief(d.min)} to ${brief(d.max)}`) : "");
  return h("div", { class: "scroll-x" }, h("table", { class: "data" },
    h("thead", {}, h("tr", {}, ["Field", "Type", "In", "Values"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, fields.map((field) => h("tr", {},
      h("th", { scope: "row" }, `${field.number} ${field.name ?? ""}`),
      h("td", {}, Object.keys(field.types ?? {}).join(", ")),
      h("td", {}, field.absent ? `${number(field.present)}, ${percent(field.present, field.present + field.absent)}` : "all"),
      h("td", {}, field.int64 ? range(field.int64) : field.fixed64 ? range(field.fixed64) : field.fixed32 ? range(field.fixed32) : field.lengths ? `${range(field.lengths)} bytes` : ""))))));
}

async function load(path, params, signal, box, draw) {
  replace(box, h("p", { class: "muted" }, "Reading …"));
  try {
    const answer = await get(path, params, { signal });
    if (!signal.aborted) draw(answer);
  } catch (error) {
    if (!aborted(error) && !signal.aborted) replace(box, h("p", { class: "note error" }, error.message));
  }
}

function loadSchema(box, context, signal) {
  load("/api/schema", { set: context.set }, signal, box, (schema) => {
    if (!schema.features?.length) return replace(box, h("p", { class: "muted" }, "No schema: the records have no features."));
    const conflicts = schema.features.filter((f) => f.conflict);
    const limit = 100;
    const row = (f) => h("tr", { class: f.conflict ? "conflict" : null }, h("th", { scope: "row" }, f.name), h("td", {}, f.spec ? h("code", {}, f.spec) : "none"),
      h("td", {}, f.conflict ? h("span", { class: "warning" }, f.conflict) : ""));
    const body = h("tbody", {}, [...conflicts, ...schema.features.filter((f) => !f.conflict)].slice(0, limit).map(row));
    const rest = schema.features.length - limit;
    const all = rest > 0 && h("button", { type: "button", onclick: () => { replace(body, schema.features.map(row)); all.remove(); } }, `Show all ${number(schema.features.length)} features`);
    replace(box,
      h("p", { class: "muted" }, `From ${count(schema.records, "record")}. `, conflicts.length
        ? `${count(conflicts.length, "feature")} cannot be parsed by one specification.` : "All features have a specification."),
      h("div", { class: "scroll-x" }, h("table", { class: "data schema" }, h("thead", {}, h("tr", {}, ["Feature", "Specification", ""].map((t) => h("th", { scope: "col" }, t)))), body)),
      all,
      h("div", { class: "row" },
        schema.python ? copyButton(context, "Copy Python specification", schema.python, "copy-python") : null,
        schema.json ? copyButton(context, "Copy JSON schema", typeof schema.json === "string" ? schema.json : JSON.stringify(schema.json, null, 1), "copy-schema") : null),
      schema.python ? h("details", {}, h("summary", {}, "Python specification"), h("pre", { class: "code", tabindex: "0" }, schema.python)) : null);
  });
}

function loadShards(box, context, signal) {
  load("/api/shards", { from: 0, n: 10000, set: context.set }, signal, box, ({ total, shards }) => {
    if (!shards.length) return replace(box, h("p", { class: "muted", "data-test": "empty" }, "There are no shards."));
    // One path for all bars and a slider under it: ten thousand elements would be slow, and no one could tab through them.
    const most = shards.reduce((m, s) => Math.max(m, s.bytes), 1);
    const top = (s) => 100 - Math.max(2, 100 * s.bytes / most);
    const path = (list) => list.map(([s, i]) => `M${i} 100V${top(s).toFixed(1)}h${shards.length > 200 ? 1 : 0.85}V100z`).join("");
    const all = shards.map((s, i) => [s, i]);
    const mark = svg("rect", { class: "cursor", x: 0, y: 0, width: 1, height: 100 });
    const text = h("output", { class: "small" });
    const name = (s) => `${s.name}: ${count(s.records, "record")}, ${size(s.bytes)}${s.compression && s.compression !== "none" ? `, ${s.compression}` : ""}${s.damaged ? `, ${count(s.damaged, "damaged range")}` : ""}`;
    const slider = h("input", { type: "range", class: "wide", min: 0, max: shards.length - 1, value: 0, "aria-label": "Shard", oninput: () => show(Number(slider.value)),
      onkeydown: (e) => { e.stopPropagation(); if (e.key === "Enter") enter(Number(slider.value)); } });
    const button = h("button", { type: "button", onclick: () => enter(Number(slider.value)) }, "Show its records");
    const enter = (i) => shards[i].records ? context.go({ view: "grid", where: null, seed: null, at: shards[i].start }) : context.announce("This shard has no records.");
    const show = (i) => {
      const shard = shards[i];
      mark.setAttribute("x", i);
      setText(text, name(shard));
      slider.setAttribute("aria-valuetext", name(shard));
      button.disabled = !shard.records;
    };
    const damaged = shards.filter((s) => s.damaged).length;
    replace(box,
      h("p", { class: "muted" }, `${count(total, "shard")} in the order of their records; the height is the size, ${size(most)} at most.`,
        total > shards.length ? ` The first ${number(shards.length)} are shown.` : "", damaged ? ` ${count(damaged, "shard")} with damage.` : ""),
      svg("svg", { class: "shards", viewBox: `0 0 ${Math.max(shards.length, 12)} 100`, preserveAspectRatio: "none", "aria-hidden": "true",
        onpointermove: (e) => { slider.value = Math.min(at12(e), shards.length - 1); show(Number(slider.value)); },
        onclick: (e) => { if (at12(e) < shards.length) enter(at12(e)); } },
        mark, svg("path", { class: "fill", d: path(all) }), svg("path", { class: "bad", d: path(all.filter(([s]) => s.damaged)) })),
      shards.length > 1 ? slider : null,
      h("div", { class: "row spread" }, text, button));
    // Fewer than twelve shards do not fill the width: a single bar as wide as the page says nothing.
    function at12(e) {
      const box = e.currentTarget.getBoundingClientRect();
      return Math.max(0, Math.floor((e.clientX - box.left) / box.width * Math.max(shards.length, 12)));
    }
    show(0);
  });
}

function loadDamage(box, context, signal) {
  const known = context.dataset.damage?.ranges ?? 0;
  const run = () => {
    const meter = h("progress", { "aria-label": "Bytes checked" });
    const what = h("p", { class: "muted", role: "status" }, "Checking …");
    const list = h("div", { class: "column" });
    replace(box, what, meter, list);
    let drawn = -1;
    follow("/api/damage", { set: context.set }, signal, (answer) => {
      meter.hidden = answer.done;
      meter.max = Math.max(1, answer.bytes);
      meter.value = answer.checked;
      const found = answer.shards.length ? `${count(answer.shards.length, "shard")} with damage` : "no damage";
      setText(what, answer.done ? `All ${size(answer.bytes)} checked: ${found}.` : `${size(answer.checked)} of ${size(answer.bytes)} checked: ${found} so far.`);
      const ranges = answer.shards.reduce((n, s) => n + s.ranges.length + 1, 0);
      if (ranges !== drawn) replace(list, answer.shards.slice(0, 200).map((shard) => damagedShard(shard, context)));
      drawn = ranges;
    }, (message) => replace(box, h("p", { class: "note error" }, message), h("div", {}, h("button", { type: "button", onclick: run }, "Try again"))));
  };
  if (known) return run();
  replace(box, h("p", { class: "muted" }, "Opening the data set found no damage. Checksums of payloads are verified when all bytes are read."),
    h("div", {}, h("button", { type: "button", "data-test": "check", onclick: run }, "Verify all checksums")));
}

function damagedShard(shard, context) {
  const bytes = Math.max(1, shard.bytes);
  const line = `tfseek salvage ${shellWord(shard.name)} ${shellWord(shard.name + ".salvaged")}`;
  const shown = shard.ranges.slice(0, 10);
  const lost = shard.ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  return h("div", { class: "damaged" }, h("h3", {}, shard.name),
    svg("svg", { class: "map", viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img", "aria-label": `${shard.name}: ${count(shard.ranges.length, "damaged range")}` },
      // A range of a few bytes in a large file is still to be seen.
      shard.ranges.slice(0, 2000).map(([from, to]) => svg("rect", { class: "bad", x: Math.min(996, 1000 * from / bytes), y: 0, width: Math.max(4, 1000 * (to - from) / bytes), height: 10 }))),
    shard.error ? h("p", { class: "error" }, shard.error) : null,
    shown.length ? h("p", { class: "small muted" }, shown.map(([from, to]) => `bytes ${number(from)} to ${number(to)}`).join("; "),
      shard.ranges.length > shown.length ? `; ${number(shard.ranges.length - shown.length)} more` : "", `: ${size(lost)} of ${size(shard.bytes)}`) : null,
    h("div", { class: "row" }, h("code", { class: "small" }, line), copyButton(context, "Copy the command", line)));
}
