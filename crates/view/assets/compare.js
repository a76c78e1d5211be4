// The view "compare": the set and the set of --against side by side.

import { count, h, number, replace, setText, size } from "./dom.js";
import { get } from "./api.js";
import { brief, compare, overlay, percent } from "./histogram.js";
import { featureKey, follow, recordsText } from "./dataset.js";
import { href, state } from "./state.js";

const PAGE = 50;
const FORMULA = "Drift is the Jensen-Shannon distance of the values, sqrt((KL(P|M) + KL(Q|M)) / 2) with M = (P + Q) / 2 and logarithms to base 2: 0 is equal, 1 has nothing in common.";

export function mount(root, context) {
  const other = context.dataset.against;
  if (!other) {
    const line = `tfseek view ${context.dataset.command} --against OTHER`;
    replace(root, h("div", { class: "empty", "data-test": "empty" }, h("h1", {}, "Nothing to compare with"),
      h("p", {}, "Start the viewer with a second data set, for example the validation split or last month's files:"), h("code", { class: "code" }, line),
      h("button", { type: "button", onclick: () => context.copy(line, "the command") }, "Copy the command")));
    context.ready?.();
    return { title: "Compare", keys: {}, update() {}, unmount() {} };
  }

  let scan = new AbortController();
  let scanned = null;
  let names = ["the first set", "the second set"];
  const answers = [null, null];
  const stats = [null, null];
  const heads = [h("div", { class: "panel side first" }), h("div", { class: "panel side second" })];
  const failure = h("p", { class: "note error", role: "alert", "data-test": "error", hidden: true });
  const condition = h("p", { class: "note", hidden: true });
  const only = h("div", { class: "column" });
  const rows = h("div", { class: "features" });
  const pages = h("div", { class: "row" });
  const common = h("section", { class: "panel", "aria-label": "Records in both" });
  replace(root, h("div", { class: "page data-view" }, h("h1", {}, "Compare"), failure, condition, h("div", { class: "sides" }, heads),
    h("section", { class: "panel", "data-test": "stats", "aria-label": "Features" },
      h("div", { class: "row spread" }, h("h2", {}, "Features by drift"), pages),
      h("p", { class: "small muted" }, FORMULA, " Bars are the first set, the line is the second; heights are shares of the values of a set."), only, rows),
    common));

  function fail(message) {
    replace(failure, message);
    failure.hidden = false;
    context.ready?.();
  }

  function start() {
    scan.abort();
    scan = new AbortController();
    scanned = state.where ?? "";
    failure.hidden = true;
    condition.hidden = !scanned;
    replace(condition, "Only records that meet ", h("code", {}, scanned), " are compared.");
    const { signal } = scan;
    get("/api/dataset", { set: context.set === "1" ? 0 : 1 }, { signal }).then((second) => {
      names = context.set === "1" ? [second.name, context.dataset.name] : [context.dataset.name, second.name];
      if (!signal.aborted) draw();
    }, (error) => { if (!signal.aborted) fail(error.message); });
    for (const set of [0, 1]) {
      answers[set] = stats[set] = null;
      follow("/api/stats", { where: scanned || null, set }, signal, (news) => {
        answers[set] = news;
        if (news.stats) stats[set] = news.stats;
        draw();
      }, (message) => fail(`${names[set]}: ${message}`));
    }
    replace(common, h("h2", {}, "Records in both"), h("p", { class: "muted" }, "Comparing the payloads …"));
    follow("/api/common", { set: 0 }, signal, drawCommon, (message) => replace(common, h("h2", {}, "Records in both"), h("p", { class: "note error" }, message)));
  }

  function draw() {
    for (const set of [0, 1]) {
      const [s, a] = [stats[set], answers[set]];
      replace(heads[set], h("h2", {}, names[set]), a && !a.done ? h("progress", { "aria-label": `Records read of ${names[set]}`, max: Math.max(1, a.records), value: a.read }) : null,
        s ? h("p", {}, `${recordsText(s)} in ${count(s.shards, "shard")}, ${size(s.payload_bytes)}`) : h("p", { class: "muted" }, "Reading the records …"),
        s?.sizes ? h("p", { class: "small muted" }, `${size(s.sizes.mean)} a record; `, s.distinct_payloads ? `${s.distinct_payloads.exact ? "" : "about "}${number(s.distinct_payloads.count)} distinct records` : "") : null);
    }
    if (!stats[0] || !stats[1]) return;
    const tables = stats.map((s) => new Map([...(s.features ?? []), ...(s.feature_lists ?? [])].map((f) => [featureKey(f), f])));
    const missing = [0, 1].map((set) => [...tables[set].keys()].filter((key) => !tables[1 - set].has(key)));
    replace(only, [0, 1].map((set) => missing[set].length ? h("p", { class: "note warning", "data-test": "only" },
      `Only in ${names[set]}: ${missing[set].slice(0, 50).join(", ")}${missing[set].length > 50 ? ` and ${number(missing[set].length - 50)} more` : ""}.`) : null));
    const pairs = [...tables[0]].filter(([key]) => tables[1].has(key)).map(([key, a]) => {
      const b = tables[1].get(key);
      const both = compare(a, b);
      const kinds = a.kind !== b.kind;
      const present = [a, b].map((f, set) => (stats[set].records ? f.present / stats[set].records : 0));
      // Different kinds first, then drift, then presence.
      return { a, b, both, kinds, present, rank: kinds ? 3 : (both?.distance ?? 0) + Math.abs(present[0] - present[1]) * 1e-3 };
    }).sort((x, y) => y.rank - x.rank || (x.a.name < y.a.name ? -1 : 1));
    const last = Math.max(0, Math.ceil(pairs.length / PAGE) - 1);
    const page = Math.min(last, Math.floor(Number(state.p) || 0));
    const turn = (to, label, hook) => h("button", { type: "button", "data-test": hook, disabled: to < 0 || to > last, onclick: () => context.go({ p: to || null }) }, label);
    replace(pages, last ? [turn(page - 1, "Previous", "previous"), `${page + 1} of ${last + 1}`, turn(page + 1, "Next", "next")] : count(pairs.length, "feature"));
    replace(rows, pairs.length ? pairs.slice(page * PAGE, (page + 1) * PAGE).map(row) : h("p", { class: "muted" }, "The sets have no feature in common."));
    context.ready?.();
  }

  function row({ a, b, both, kinds, present }) {
    const [x, y] = [a[a.kind], b[b.kind]];
    const drift = both?.distance;
    const line = (term, f) => { const v = [f(x, a), f(y, b)]; return v.every((t) => t === undefined || t === null || t === "") ? null : h("tr", {}, h("th", { scope: "row" }, term), v.map((t) => h("td", { class: "number" }, t ?? ""))); };
    const q = (name) => (s) => brief(s?.quantiles?.[name]);
    const meter = h("span");
    if (drift !== null && drift !== undefined) meter.style.width = `${100 * drift}%`;
    return h("article", { class: "feature", "aria-label": a.name },
      h("div", { class: "who" }, h("h3", {}, a.name), h("div", { class: "row" }, h("span", { class: "chip" }, kinds ? `${a.kind ?? "no kind"}, then ${b.kind ?? "no kind"}` : a.kind ?? "no kind")),
        kinds ? h("p", { class: "warning small" }, "The kinds differ.") : null,
        drift === null || drift === undefined ? null : h("div", { class: "presence", title: FORMULA }, h("span", { class: "track drift", "aria-hidden": "true" }, meter),
          h("span", { class: "small", "data-test": "drift" }, `drift ${both.lower ? "at least " : ""}${drift.toFixed(3)}`))),
      h("div", { class: "values" }, h("div", { class: "what" }, both ? overlay(a.name, both, names) : h("p", { class: "muted small" }, "Nothing to draw over each other.")),
        h("div", { class: "scroll-x" }, h("table", { class: "data pair" }, h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col", class: "number" }, "first"), h("th", { scope: "col", class: "number" }, "second"))),
          h("tbody", {}, h("tr", {}, h("th", { scope: "row" }, "in"), present.map((p) => h("td", { class: "number" }, percent(p, 1)))),
            line("mean", (s) => brief(s?.mean)), line("std", (s) => brief(s?.std)), line("min", (s) => brief(s?.min)), line("median", q("p50")), line("p95", q("p95")), line("max", (s) => brief(s?.max)),
            line("distinct", (s) => s && `${s.distinct.exact ? "" : "~"}${number(s.distinct.count)}`)))),
        both ? h("p", { class: "small muted caption" }, `${both.note}.`) : null));
  }

  function drawCommon(answer) {
    const link = (set, id) => h("a", { href: href({ view: "record", id, set: set || null, where: null, at: null }) }, number(id));
    replace(common, h("h2", {}, "Records in both"), answer.done ? null : h("progress", { "aria-label": "Records compared", max: Math.max(1, answer.records), value: answer.read }),
      h("p", {}, answer.common ? `${count(answer.common, "record")} of the first set ${answer.common === 1 ? "has" : "have"} an equal payload in the second.` : answer.done ? "No record is in both sets." : "No equal record so far."),
      answer.pairs.length ? h("div", { class: "scroll-x" }, h("table", { class: "data pair" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Record of the first set"), h("th", { scope: "col" }, "Record of the second set"))),
        h("tbody", {}, answer.pairs.slice(0, 100).map(([a, b]) => h("tr", {}, h("td", {}, link(0, a)), h("td", {}, link(1, b))))))) : null,
      answer.pairs.length && answer.common > 100 ? h("p", { class: "small muted" }, "The first 100 pairs are listed.") : null);
  }

  start();
  return {
    title: "Compare",
    keys: {},
    update(now) {
      if ((now.where ?? "") !== scanned) start();
      else draw();
    },
    unmount() { scan.abort(); },
  };
}
