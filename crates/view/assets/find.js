// Lists of records, and the condition that makes one.
//
// A list is what the grid, the table and the keys `j` and `k` go through:
//
//     length, at(i) -> record number, position(id) -> i of the first entry that is not before `id`, note(i) -> text or null,
//     more (true while it grows), onGrow(f) -> function that ends it
//
// It is all records, or numbers: matches that grow while the scan goes on, a sample, a training step.

import { count, h, number, replace, setText, shellWord } from "./dom.js";
import { aborted, get } from "./api.js";

const silent = () => () => {};

/** All records in their order. */
export function allRecords(n) {
  return { length: n, at: (i) => i, position: (id) => Math.min(n - 1, id), note: () => null, more: false, onGrow: silent };
}

/** Some records, in this order. `notes[i]` is said on the card of entry i. */
export function fixedList(ids, notes = []) {
  return { length: ids.length, at: (i) => ids[i], position: (id) => ids.indexOf(id), note: (i) => notes[i] ?? null, more: false, onGrow: silent };
}

/** Matches of a condition: a list that grows, and how far the scan is. */
export function search(where, { set }) {
  const ids = [];
  const listeners = new Set();
  const stop = new AbortController();
  let first;
  const found = {
    where,
    list: {
      get length() {
        return ids.length;
      },
      get more() {
        return !found.done;
      },
      at: (i) => ids[i],
      // Matches come in the order of the records.
      position(id) {
        let [low, high] = [0, ids.length];
        while (low < high) {
          const middle = (low + high) >>> 1;
          if (ids[middle] < id) low = middle + 1;
          else high = middle;
        }
        return Math.min(low, ids.length - 1);
      },
      note: () => null,
      onGrow(f) {
        listeners.add(f);
        return () => listeners.delete(f);
      },
    },
    found: 0, searched: 0, records: 0, done: false, limited: false, unseen: [], errors: [], error: null,
    /** Kept once there are hits, or none at all, or an error. */
    first: new Promise((resolve) => (first = resolve)),
    stop: () => stop.abort(),
  };

  async function scan() {
    while (!found.done) {
      const answer = await get("/api/find", { set, where, after: ids.length }, { signal: stop.signal });
      for (const id of answer.matches) ids.push(id);
      const all = ids.length >= answer.found || answer.limited && answer.matches.length === 0;
      Object.assign(found, answer, { matches: null, done: answer.done && all });
      for (const listener of listeners) listener();
      if (ids.length > 0 || found.done) first();
      // The server waits for news itself; this only keeps a very quick one from being asked without a pause.
      if (!found.done && answer.matches.length < 10_000) await new Promise((resolve) => setTimeout(resolve, 60));
    }
  }
  scan().catch((error) => {
    if (aborted(error)) return;
    Object.assign(found, { error, done: true });
    for (const listener of listeners) listener();
  }).finally(first);
  return found;
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_/.:-]*$/;
const WORDS = new Set(["and", "or", "not", "in", "record"]);

/** A name as the grammar of conditions reads it back. */
export function quoteName(name) {
  return PLAIN.test(name) && !WORDS.has(name) ? name : quote(name);
}

function quote(value) {
  const escapes = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t" };
  return '"' + value.replace(/[\\"\n\t]/g, (c) => escapes[c]).replace(/[\x00-\x1f\x7f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")) + '"';
}

/** The condition that a feature has this value, or null if the grammar has none for it. `n`: values in the list. */
export function condition(name, kind, value, n) {
  const subject = n > 1 ? `any(${quoteName(name)})` : quoteName(name);
  if (kind === "int64") return `${subject} == ${value}`;
  if (kind === "float") {
    if (value === "NaN") return `${subject} is nan`;
    return typeof value === "number" ? `${subject} == ${value}` : null;
  }
  if (typeof value === "string") return `${subject} == ${quote(value)}`;
  if (typeof value.text === "string") return `${subject} contains ${quote([...value.text].slice(0, 80).join(""))}`;
  return null;
}

/** The condition with one more: `and` binds looser than comparisons, and tighter than `or`. */
export function both(where, more) {
  if (!where || where === more) return more;
  return `${/\bor\b/.test(where) ? `(${where})` : where} and ${more}`;
}

const GRAMMAR = [
  ["label == 3", "the value is 3; also != < <= > >="],
  ["label in 1, 2, 5..9", "one of these; 9 itself is not in 5..9, but in 5..=9"],
  ['name == "cat"', "the text is equal"],
  ['name contains "at"', "the text has this part"],
  ['name matches "^c.t$"', "the regular expression fits"],
  ["any(x) > 3, all(x) > 3", "one value of several, or each"],
  ["len(x) > 20", "the number of values"],
  ["bytes(x) > 1000", "the length of the byte string"],
  ["width(image) >= 64", "of an encoded image; also height, format"],
  ["present(x), absent(x)", "the feature has a value, or none"],
  ["x is nan", "the float is not a number"],
  ["record in 10..20", "the number of the record"],
  ["split(0.1, seed=7)", "a tenth of all records, always the same"],
  ["A and B, A or B, not A, ( )", "together"],
];

/** The grammar of conditions in words: a list for the help. */
export function grammar() {
  return h("dl", { class: "pairs" }, GRAMMAR.map(([form, meaning]) => [h("dt", null, h("code", null, form)), h("dd", null, meaning)]));
}

/** The box for a condition, and what came of it. `context` as in app.js, with `help()`. */
export function findBar(context) {
  const input = h("input", {
    type: "text", id: "where", class: "where mono", "data-test": "where", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    "aria-label": "Condition on records", "aria-describedby": "where-error", enterkeyhint: "search",
    placeholder: example(context.dataset), title: "Condition on records (/)",
  });
  const form = h("form", {
    class: "where-form", role: "search",
    onsubmit(event) {
      event.preventDefault();
      context.go({ where: input.value.trim() || null, seed: null, n: null, at: null, sel: null, view: listed() });
    },
  }, input, h("button", { type: "submit" }, "Find"));
  // A condition is of use to the views that show records, or statistics of them.
  const listed = () => (["grid", "table", "data"].includes(context.state().view) ? context.state().view : "grid");
  const error = h("p", { id: "where-error", class: "where-error error", "data-test": "where-error", hidden: true });
  const hits = h("span", { "data-test": "hits" });
  const more = h("span", { class: "row" });
  const bar = h("progress", { max: "1", value: "0", "aria-label": "Part searched", hidden: true });
  const side = h("span", { class: "warning small", hidden: true });
  const clear = h("button", { type: "button", class: "quiet", onclick: () => context.go({ where: null, at: null, sel: null }) }, "All records");
  const command = h("button", {
    type: "button", class: "quiet",
    onclick: () => context.copy(`tfseek grep ${shellWord(context.state().where)} ${context.dataset.command}`, "command"),
  }, "Copy as command");
  let said = "";
  let of = "";

  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    input.value = context.state().where ?? "";
    input.blur();
  });

  function show(found) {
    const { where } = context.state();
    const wrong = found?.error ?? null;
    error.hidden = !wrong;
    if (wrong) {
      replace(error, `${wrong.message}. `, h("button", { type: "button", class: "link", onclick: context.help }, "How conditions are written"));
    }
    input.setAttribute("aria-invalid", String(Boolean(wrong)));
    bar.hidden = !found || found.done;
    side.hidden = true;
    replace(more, where ? [command, clear] : null);
    if (!found || wrong) {
      setText(hits, wrong ? "" : where ? "" : count(context.dataset.records, "record"));
      return;
    }
    bar.value = found.records ? found.searched / found.records : 0;
    const matches = count(found.found, "match", "matches");
    const part = found.done ? count(found.records, "record") : `${number(found.searched)} of ${count(found.records, "record")}`;
    setText(hits, found.searched === 0 && !found.done ? "Searching" : `${matches} in ${part}`);
    const notes = [];
    if (found.unseen.length) notes.push(`No record so far has ${found.unseen.join(", ")}.`);
    if (found.errors.length) notes.push(`${found.errors[0]}${found.errors.length > 1 ? `, and ${found.errors.length - 1} more` : ""}.`);
    if (found.limited && found.done) notes.push(`Only the first ${number(found.list.length)} are listed.`);
    side.hidden = notes.length === 0;
    setText(side, notes.join(" "));
    // Said at the first hits and at the end, and not each time the number changes.
    const stage = `${where} ${found.done ? "done" : found.found > 0 ? "first" : ""}`;
    if (stage !== said && (found.done || found.found > 0)) {
      said = stage;
      context.announce(found.done ? `Search finished: ${hits.textContent}. ${side.textContent}` : `First matches found, searching on`);
    }
  }

  return {
    form,
    error,
    /** What came of it: text, progress, buttons. */
    status: h("div", { class: "hits row" }, hits, more, side),
    bar,
    focus() {
      input.focus();
      input.select();
    },
    /** Called with the search of the state, or null, after each change of either. */
    update(found) {
      const { where } = context.state();
      // What is typed stays until the condition itself changes.
      if (of !== (where ?? "")) input.value = of = where ?? "";
      show(found);
    },
    show,
  };
}

function example(dataset) {
  const named = dataset.features.find((f) => f.name === dataset.roles?.label) ?? dataset.features.find((f) => f.kind === "int64" && !f.list);
  if (!named) return "record in 10..20";
  return `${quoteName(named.name)} == ${named.kind === "bytes" ? '"…"' : "3"}`;
}
