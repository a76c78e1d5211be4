// The view "compare": the set and the set of --baseline side by side.

import { button, count, h, muted, number, problem, replace, size, table, vbox } from "./dom.js";
import { get, recordCache } from "./api.js";
import { distinctText, featuresOf, follow, meter, paged, recordsText, section } from "./dataset.js";
import { card } from "./grid.js";
import { brief, overlay, percent, rangeText, valueText } from "./histogram.js";
import { href, state } from "./state.js";

const FORMULA = [
  "Drift is the Jensen-Shannon distance √((KL(P|M) + KL(Q|M)) / 2) with M = (P + Q) / 2, in bits: 0 is equal, 1 has nothing in common.",
  "Both sides are counted by the same values, or in the same parts of equal shares.",
  "The mark is chance: two draws of one distribution, with as many records, stay below it in 19 of 20 cases.",
  "Features are ordered by what is above it, after those that one set lacks or has otherwise.",
].join(" ");
const kindsOf = (feature) => ["int64", "float", "bytes"].filter((kind) => feature[kind]).join(" and ") || "no kind";
const inSides = (x, y) => `${x} in the first set, ${y} in the second`;

// What two features differ in besides their values, in words. `shares`: the parts of the records that have them.
function differences(a, b, shares) {
  if (!a || !b) return [`not in the ${a ? "second" : "first"} set`];
  const found = [];
  const values = ({ min, max }) => (min === max ? count(min, "value") : `${number(min)} to ${number(max)} values`);
  const unit = a.steps === undefined ? "a record" : "a step";
  const [x, y] = [a.lengths, b.lengths];
  if (!a.present !== !b.present) found.push(`no values in the ${a.present ? "second" : "first"} set`);
  else if (kindsOf(a) !== kindsOf(b)) found.push(inSides(kindsOf(a), kindsOf(b)));
  else if (x && y && (x.min === x.max || y.min === y.max) && values(x) !== values(y)) found.push(inSides(`${values(x)} ${unit}`, `${values(y)} ${unit}`));
  if (shares.includes(1) && shares[0] !== shares[1] && a.present && b.present) found.push(`in ${percent(shares[0], 1)} of the records of the first set, ${percent(shares[1], 1)} of the second`);
  return found;
}
const LISTED = 100; // pairs of equal records
const SAMPLES = 3; // records of each side
const SIDES = ["first", "second"];

export function mount(root, context) {
  if (!context.dataset.against) {
    const line = context.command("view", "--baseline OTHER");
    replace(root, h("div.empty", { hook: "empty" }, h("h1", "There is no second set"),
      h("p", "Start the viewer with another data set, for example the validation split or last month's files:"), h("code.note", line),
      button("Copy the command", () => context.copy(line, "the command"))));
    return { title: "Compare", keys: {}, update() {}, unmount() {} };
  }

  let scan = new AbortController();
  let scanned = null;
  let names;
  let answers; // the last answer of each set
  let stats;
  let drift; // by feature: the answer of the comparison, and its rank
  let asking; // a comparison is on its way
  const heads = SIDES.map((side) => h("div", { class: `panel side ${side}` }));
  const samples = SIDES.map((side) => h("ul.batch", { hook: `samples-${side}` }));
  const notes = vbox();
  const rows = h("div.features");
  const pages = h("div.row");
  const common = vbox();
  replace(root, h("div.page.data-view.compare", h("h1", "Compare"), notes, h("div.sides", heads),
    section("Features, most different first", "stats", pages, rows,
      muted("Bars are the first set, the line is the second; heights are shares of the values of a set. ", FORMULA)),
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
    [answers, stats, drift, asking] = [[], [], new Map(), false];
    ready = new Promise((resolve) => { seen = resolve; });
    replace(notes, scanned ? h("p.note", "Only records that meet ", h("code", scanned), " are compared.") : null);
    const { signal } = scan;
    for (const set of [0, 1]) {
      get("/api/dataset", { set }, { signal }).then(({ name }) => { names[set] = name; draw(); }, () => {}); // If the server is gone, the statistics say so.
      follow("/api/stats", { where: scanned, set }, signal, (answer) => {
        answers[set] = answer;
        stats[set] = answer.stats ?? stats[set];
        draw();
        ask(signal);
      }, (message) => fail(`${names[set]}: ${message}`));
      showSamples(set, signal);
    }
    replace(common, muted("Comparing the payloads …"));
    follow("/api/common", { set: 0 }, signal, drawCommon, (message) => replace(common, problem(message)));
  }

  // The server compares: it has all values. Statistics that came meanwhile are compared next.
  async function ask(signal) {
    if (!stats[0] || !stats[1] || asking) return;
    asking = [...stats];
    try {
      const { features } = await get("/api/compare", { where: scanned }, { signal });
      drift = new Map(features.map((f, i) => [f.list ? `${f.name} (feature list)` : f.name, { ...f, rank: features.length - i }]));
      draw();
    } catch (error) {
      if (!signal.aborted) fail(error.message);
    }
    if (signal.aborted) return;
    const old = asking;
    asking = false;
    if (old.some((one, set) => one !== stats[set])) ask(signal);
  }

  // A few records of each side, from its start to its end.
  async function showSamples(set, signal) {
    replace(samples[set]);
    try {
      const { records: n } = await get("/api/dataset", { set }, { signal });
      const ids = [...new Set(Array.from({ length: SAMPLES }, (_, i) => Math.floor(i * n / SAMPLES)))].filter((id) => id < n);
      const found = await recordCache(set).get(ids, { signal });
      replace(samples[set], found.filter(Boolean).map((record) => {
        const element = card(record, context);
        for (const img of element.querySelectorAll("img")) img.src = img.src.replace("?", `?set=${set}&`); // The first one counts.
        element.href = href({ view: "record", id: record.id, set: set || null, where: null, at: null, sel: null });
        return h("li", element);
      }));
    } catch {} // Statistics say what is wrong.
  }

  function draw() {
    if (scan.signal.aborted) return;
    for (const set of [0, 1]) {
      const [s, a] = [stats[set], answers[set]];
      replace(heads[set], h("h2", names[set]), a && !a.done ? meter(`Records read of ${names[set]}`, a.read, a.records) : null,
        h("p", s ? `${recordsText(s)} in ${count(s.shards, "shard")}, ${size(s.payload_bytes)}` : "Reading the records …"),
        s?.distinct_payloads
          && muted(`${distinctText(s.distinct_payloads)} distinct records${s.sizes ? ` of ${size(s.sizes.mean)} on average` : ""}`),
        samples[set]);
    }
    if (!stats[0] || !stats[1]) return;
    const tables = stats.map((s) => new Map(featuresOf(s)));
    const keys = new Set(tables.flatMap((table) => [...table.keys()]));
    const pairs = [...keys].map((key) => {
      const [a, b] = tables.map((table) => table.get(key));
      const present = [a, b].map((f, set) => (f?.present ?? 0) / Math.max(1, stats[set].records));
      const words = differences(a, b, present);
      const both = drift.get(key);
      // What one set lacks comes first, what it has otherwise next, and then drift.
      return { key, a, b, both, present, words, rank: !a || !b ? Infinity : words.length ? Number.MAX_VALUE : both?.rank ?? 0 };
    }).sort((x, y) => y.rank - x.rank || (x.key < y.key ? -1 : 1));
    const [shown, turns] = paged(pairs);
    replace(pages, h("span.muted", `${count(pairs.length, "feature")}, ${number(pairs.filter(({ a, b }) => a && b).length)} in both`), turns);
    replace(rows, shown.map(row));
    seen();
  }

  function row({ key, a, b, both, present, words }) {
    const one = a ?? b;
    const sides = [a, b].map((f) => f?.[f.kind]);
    const columns = [
      ["in", (_, set) => percent(present[set], 1)],
      ["mean", (s) => brief(s?.mean)],
      ["std", (s) => brief(s?.std)],
      ["min", (s) => brief(s?.min)],
      ["median", (s) => brief(s?.quantiles?.p50)],
      ["p95", (s) => brief(s?.quantiles?.p95)],
      ["max", (s) => brief(s?.max)],
      ["distinct", (s) => (s ? distinctText(s.distinct) : "")],
    ].map(([name, f]) => [name, ...sides.map(f)]).filter(([, x, y]) => x || y);
    return h("article.feature", { label: key },
      h("div.who", h("h3", one.name), h("span.chip", kindsOf(one)),
        words.map((text) => h("p.warning.small", { hook: "differs" }, text)), both && gauge(both)),
      h("div.values",
        h("div", both ? overlay(key, both.bars.map((bar) => ({ ...bar, label: labelOf(bar) })), names, ends(both))
          : muted("no values of one kind in both sets")),
        table(["", ...columns.map(([name]) => name)],
          SIDES.map((name, set) => [h("span", { class: `key ${name}` }, name), ...columns.map((c) => c[set + 1])]), true, "pair")));
  }

  const labelOf = (bar) => (bar.others ? "all other values" : bar.low === undefined ? valueText(bar) : rangeText(bar));

  function ends({ bars, by, scale }) {
    const [first, last] = [bars[0], bars.findLast((bar) => !bar.others)];
    const end = (bar, side) => (bar.low === undefined ? valueText(bar) : brief(bar[side]));
    const note = [by === "length" && "length in bytes", scale === "log" && "log scale"].filter(Boolean).join(", ");
    return { first: end(first, "low"), last: first === last ? "" : end(last, "high"), note };
  }

  // The drift as a bar, with a mark where chance ends.
  function gauge({ distance, chance }) {
    const bar = h("span"), mark = h("i");
    bar.style.width = `${100 * distance}%`;
    mark.style.left = `${100 * chance}%`;
    const text = `drift ${distance.toFixed(3)}, ${distance > chance ? "chance" : "within chance:"} ${chance.toFixed(3)}`;
    return h("div", { class: distance > chance ? "share" : "share muted", hook: "drift", title: FORMULA }, h("span.gauge", bar, mark), h("span.small", text));
  }

  function drawCommon({ done, read, records, common: found, pairs }) {
    const link = (set, id) => h("a", { href: href({ view: "record", id, set: set || null, where: null, at: null, sel: null }) }, `record ${number(id)}`);
    replace(common, !done && meter("Records compared", read, records),
      h("p", found ? `${count(found, "record")} of ${names[1]} ${found === 1 ? "has" : "have"} an equal payload in ${names[0]}.`
        : done ? "No record is in both sets." : "No equal record so far."),
      pairs.length > 0 && table(SIDES.map((name) => h("span", { class: `key ${name}` }, `${name} set`)),
        pairs.slice(0, LISTED).map(([a, b]) => [link(0, a), link(1, b)]), false, "pair"),
      found > LISTED && muted(`The first ${Math.min(LISTED, pairs.length)} pairs are listed.`));
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
