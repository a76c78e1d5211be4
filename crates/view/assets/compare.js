// The view "compare": the set and the set of --baseline side by side.

import { button, count, h, number, replace, size } from "./dom.js";
import { get } from "./api.js";
import { distinctText, featuresOf, follow, meter, muted, paged, problem, recordsText, section, share, table } from "./dataset.js";
import { brief, compare, overlay, percent } from "./histogram.js";
import { href, state } from "./state.js";

const FORMULA = "Drift is the Jensen-Shannon distance of the values, sqrt((KL(P|M) + KL(Q|M)) / 2) with M = (P + Q) / 2 and logarithms to base 2: 0 is equal, 1 has nothing in common.";
const LISTED = 100; // pairs of equal records

export function mount(root, context) {
  if (!context.dataset.against) {
    const line = context.command("view", "--baseline OTHER");
    replace(root, h("div", { class: "empty", "data-test": "empty" }, h("h1", {}, "There is no second set"),
      h("p", {}, "Start the viewer with another data set, for example the validation split or last month's files:"), h("code", { class: "note" }, line), button("Copy the command", () => context.copy(line, "the command"))));
    return { title: "Compare", keys: {}, update() {}, unmount() {} };
  }

  let scan = new AbortController();
  let scanned = null;
  let names;
  let answers; // the last answer of each set
  let stats;
  const heads = [h("div", { class: "panel side first" }), h("div", { class: "panel side second" })];
  const notes = h("div", { class: "column" });
  const only = h("div", { class: "column" });
  const rows = h("div", { class: "features" });
  const pages = h("div", { class: "row" });
  const common = h("div", { class: "column" });
  replace(root, h("div", { class: "page data-view compare" }, h("h1", {}, "Compare"), notes, h("div", { class: "sides" }, heads),
    section("Features by drift", "stats", muted(FORMULA, " Bars are the first set, the line is the second; heights are shares of the values of a set, in equal buckets over both sets. Between the edges and quantiles that are known of a set, its values are taken as evenly spread."), only, pages, rows),
    section("Records in both", "common", common)));

  let seen;
  let ready; // a promise of the first content

  function fail(message) {
    notes.append(problem(message));
    seen();
  }

  function start() {
    scan.abort();
    scan = new AbortController();
    scanned = state.where ?? "";
    names = ["the first set", "the second set"];
    [answers, stats] = [[], []];
    ready = new Promise((resolve) => { seen = resolve; });
    replace(notes, scanned ? h("p", { class: "note" }, "Only records that meet ", h("code", {}, scanned), " are compared.") : null);
    const { signal } = scan;
    for (const set of [0, 1]) {
      get("/api/dataset", { set }, { signal }).then(({ name }) => { names[set] = name; draw(); }, () => {}); // If the server is gone, the statistics say so.
      follow("/api/stats", { where: scanned, set }, signal, (news) => {
        answers[set] = news;
        stats[set] = news.stats ?? stats[set];
        draw();
      }, (message) => fail(`${names[set]}: ${message}`));
    }
    replace(common, muted("Comparing the payloads …"));
    follow("/api/common", { set: 0 }, signal, drawCommon, (message) => replace(common, problem(message)));
  }

  function draw() {
    if (scan.signal.aborted) return;
    for (const set of [0, 1]) {
      const [s, a] = [stats[set], answers[set]];
      replace(heads[set], h("h2", {}, names[set]), a && !a.done ? meter(`Records read of ${names[set]}`, a.read, a.records) : null,
        h("p", {}, s ? `${recordsText(s)} in ${count(s.shards, "shard")}, ${size(s.payload_bytes)}` : "Reading the records …"),
        s?.distinct_payloads ? muted(`${distinctText(s.distinct_payloads)} distinct records${s.sizes ? ` of ${size(s.sizes.mean)} on average` : ""}`) : null);
    }
    if (!stats[0] || !stats[1]) return;
    const tables = stats.map((s) => new Map(featuresOf(s)));
    replace(only, [0, 1].map((set) => {
      const missing = [...tables[set].keys()].filter((key) => !tables[1 - set].has(key));
      return missing.length ? h("p", { class: "note warning", "data-test": "only" }, `Only in ${names[set]}: ${missing.slice(0, 50).join(", ")}${missing.length > 50 ? ` and ${number(missing.length - 50)} more` : ""}.`) : null;
    }));
    const pairs = [...tables[0]].filter(([key]) => tables[1].has(key)).map(([key, a]) => {
      const b = tables[1].get(key);
      const both = compare(a, b);
      const present = [a, b].map((f, set) => f.present / Math.max(1, stats[set].records));
      // Different kinds first, then drift, then presence.
      return { key, a, b, both, present, rank: a.kind !== b.kind ? 3 : (both?.distance ?? 0) + Math.abs(present[0] - present[1]) / 1000 };
    }).sort((x, y) => y.rank - x.rank || (x.key < y.key ? -1 : 1));
    const [shown, turns] = paged(pairs);
    replace(pages, h("span", { class: "muted" }, count(pairs.length, "feature"), " in both"), turns);
    replace(rows, shown.map(row));
    seen();
  }

  function row({ key, a, b, both, present }) {
    const sides = [a[a.kind], b[b.kind]];
    const columns = [["in", (_, set) => percent(present[set], 1)], ["mean", (s) => brief(s?.mean)], ["std", (s) => brief(s?.std)], ["min", (s) => brief(s?.min)], ["median", (s) => brief(s?.quantiles?.p50)],
      ["p95", (s) => brief(s?.quantiles?.p95)], ["max", (s) => brief(s?.max)], ["distinct", (s) => (s ? distinctText(s.distinct) : "")]]
      .map(([name, f]) => [name, ...sides.map(f)]).filter(([, x, y]) => x || y);
    return h("article", { class: "feature", "aria-label": key },
      h("div", { class: "who" }, h("h3", {}, a.name), h("span", { class: "chip" }, a.kind ?? "no kind"),
        a.kind !== b.kind ? h("p", { class: "warning small" }, `${b.kind ?? "no kind"} in the second set`) : null,
        both?.labels && share(both.distance, 1, `drift ${both.lower ? "at least " : ""}${both.distance.toFixed(3)}`, { "data-test": "drift", title: FORMULA })),
      h("div", { class: "values" }, h("div", {}, both?.labels && overlay(key, both, names), muted(both ? both.note : "no values of one kind in both sets")),
        table(["", ...columns.map(([name]) => name)], ["first", "second"].map((name, set) => [name, ...columns.map((c) => c[set + 1])]), true, "pair")));
  }

  function drawCommon({ done, read, records, common: found, pairs }) {
    const link = (set, id) => h("a", { href: href({ view: "record", id, set: set || null, where: null, at: null, sel: null }) }, `record ${number(id)}`);
    replace(common, done ? null : meter("Records compared", read, records),
      h("p", {}, found ? `${count(found, "record")} of the first set ${found === 1 ? "has" : "have"} an equal payload in the second.` : done ? "No record is in both sets." : "No equal record so far."),
      pairs.length ? table(["First set", "Second set"], pairs.slice(0, LISTED).map(([a, b]) => [link(0, a), link(1, b)]), false, "pair") : null,
      found > LISTED ? muted(`The first ${Math.min(LISTED, pairs.length)} pairs are listed.`) : null);
  }

  start();
  return {
    title: "Compare",
    keys: {},
    update(now) {
      if ((now.where ?? "") !== scanned) start();
      else draw();
      return ready;
    },
    unmount: () => scan.abort(),
  };
}
