// Lists of records, and the condition that makes one. src/assets.rs says what a list has.

import { button, count, h, number, replace, setText, shellWord } from "./dom.js";
import { aborted, get } from "./api.js";
import { quote, quoteName } from "./histogram.js";
import { href } from "./state.js";

const silent = () => () => {};

export function allRecords(n) {
  return { length: n, at: (i) => i, position: (id) => Math.min(n - 1, id), more: false, onGrow: silent };
}

export function fixedList(ids) {
  return { length: ids.length, at: (i) => ids[i], position: (id) => ids.indexOf(id), more: false, onGrow: silent };
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
      // The server waits for a change itself.
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

// The record before (`by` -1) or after (1) record `id` in a list.
function neighbour(list, id, by) {
  const at = list.position(id);
  if (at < 0) return undefined;
  const to = by > 0 && list.at(at) !== id ? at : at + by;
  return to >= 0 && to < list.length ? list.at(to) : undefined;
}

/** The buttons and the function that turn the pages of a list of records, and the place of the record in a search or a sample. `changes` of the state come with each turn. */
export function pager(context, noun, changes) {
  const beside = (by) => neighbour(context.list, Number(context.state().id ?? 0), by);
  const turn = (by) => {
    const id = beside(by);
    if (id !== undefined) context.go({ id, ...changes });
    else context.announce(context.list.more ? "No further match so far" : `This is the ${by > 0 ? "last" : "first"} ${noun} of the list`);
  };
  const [previous, next] = [["Previous", -1, "k"], ["Next", 1, "j"]].map(([label, by, key]) =>
    button(label, () => turn(by), label.toLowerCase(), { title: `${label} ${noun} (${key})` }));
  const nth = h("span.muted.number", { hook: "nth" });
  const update = () => {
    previous.disabled = beside(-1) === undefined;
    next.disabled = beside(1) === undefined && !context.list.more;
    const { list } = context, { id, where, seed } = context.state();
    const at = list.position(Number(id ?? 0));
    const all = `${number(list.length)}${list.more ? " so far" : ""}`;
    setText(nth, !(where || seed) || context.searchError() ? "" : list.at(at) === Number(id ?? 0) ? `${number(at + 1)} of ${all}` : `not one of the ${all}`);
  };
  return { previous, next, nth, turn, update };
}

/** The condition that a feature of `n` values has this value, or null if the grammar has none for it. */
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

const valued = (features) => features.filter((f) => f.value != null && !f.list);

// With names and values of the set on show, where it has some.
const GRAMMAR = [
  ["label == 3", "the value is 3; also != < <= > >="],
  ["label in 1, 2, 5..9", "one of these; 9 itself is not in 5..9, but in 5..=9"],
  ['name == "cat"', "the text is equal"],
  ['name contains "at"', "the text has this part"],
  ['name matches "^c.t$"', "the regular expression fits"],
  ["any(x) > 3, all(x) > 3", "one value of several, or each"],
  ["any(steps(list)) > 3", "one value in the steps of a feature list; len counts steps"],
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
export function grammar({ features, roles }) {
  const known = valued(features);
  const label = known.find((f) => f.kind === "int64"), name = known.find((f) => f.kind === "bytes");
  const names = { label: label?.name, name: name?.name, x: (known.find((f) => f.kind === "float") ?? label)?.name, image: roles.image };
  const form = (text) => text.replace(/\b(label|name|x|image)\b/g, (word) => (names[word] ? quoteName(names[word]) : word))
    .replace(/== 3/, label ? `== ${label.value}` : "$&").replace(/"cat"/, name ? quote(name.value) : "$&");
  return h("dl.pairs", GRAMMAR.map(([text, meaning]) => [h("dt", h("code", form(text))), h("dd", meaning)]));
}

// A link to a condition with its likely mistake corrected, by the words of the error about it.
function corrected(where, message = "") {
  const [, wrong, right] = /feature "(.*)"; the nearest name is "(.*?)"/.exec(message) ?? [];
  const better = right ? where.replace(quoteName(wrong), () => quoteName(right))
    : /found `=`/.test(message) && where.replace(/("[^"]*"|'[^']*'|split\([^)]*\)|[=!<>.]=+)|=/g, (found, kept) => kept ?? "==");
  return better && better !== where && ["Did you mean ", h("a", { hook: "better", href: href({ where: better }) }, better), "? "];
}

/** The box for a condition, and what came of it. `context` as in app.js, with `help()`. */
export function findBar(context) {
  const input = h("input", {
    type: "text", id: "where", class: "where mono", hook: "where", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    label: "Condition on records", "aria-describedby": "where-error", enterkeyhint: "search",
    placeholder: `Condition, such as ${example(context.dataset)}`, title: "Condition on records (/)",
    onkeydown(event) {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      input.value = of;
      input.blur();
    },
  });
  const all = button("All records", () => context.go({ where: null, seed: null, n: null, at: null, sel: null }));
  const error = h("p", { id: "where-error", class: "where-error error", hook: "where-error", hidden: true });
  const hits = h("span", { hook: "hits" });
  const more = h("span.row");
  const side = h("span.warning.small");
  const bar = h("progress", { max: "1", value: "0", label: "Part searched", hidden: true });
  let of = ""; // the condition that the box was filled with
  let said = "";

  function show(found) {
    const { where } = context.state();
    error.hidden = !found?.error;
    input.ariaInvalid = Boolean(found?.error);
    bar.hidden = !found || found.done;
    bar.value = found?.records ? found.searched / found.records : 0;
    if (found?.error) {
      replace(error, `${found.error.message} `, corrected(where, found.error.message),
        found.error.status === 400 && button("How conditions are written", context.help, null, { class: "link" }));
      context.announce(found.error.message);
      for (const part of [hits, side]) setText(part, "");
      replace(more, all); // There is no command for it.
      return;
    }
    replace(error);
    const part = found.done ? count(found.records, "record") : `${number(found.searched)} of ${count(found.records, "record")}`;
    setText(hits, found.searched === 0 && !found.done ? "Searching" : `${count(found.found, "match", "matches")} in ${part}`);
    replace(side, [
      found.unseen.length && `No record ${found.done ? "" : "so far "}has ${found.unseen.join(", ")}.`,
      found.errors.length && `${found.errors[0]}${found.errors.length > 1 ? `, and ${found.errors.length - 1} more` : ""}.`,
      found.limited && found.done && `Only the first ${number(found.list.length)} are listed.`,
    ].filter(Boolean).join(" "), " ", corrected(where, found.nearest ?? ""));
    // Said at the first hits and at the end.
    const stage = `${where} ${found.done}`;
    if (stage === said || !(found.done || found.found > 0)) return;
    said = stage;
    context.announce(found.done ? `Search finished: ${hits.textContent}. ${side.textContent}` : "First matches found, searching on");
  }

  return {
    form: h("form", {
      class: "where-form", role: "search",
      onsubmit(event) {
        event.preventDefault();
        const { view } = context.state();
        input.blur(); // so that the next key moves in the list
        context.go({
          where: input.value.trim() || null, seed: null, n: null, at: null, sel: null, id: null,
          view: view === "data" ? view : context.listView(),
        });
      },
    }, input, h("button", { type: "submit" }, "Find")),
    error, bar, show,
    status: h("div.hits.row", hits, more, side),
    focus() {
      input.focus();
      input.select();
    },
    /** Shows the search or the sample ({ text, command }) of the state, or neither. */
    update(found, sample) {
      const where = context.state().where ?? "";
      // What is typed stays until the condition itself changes.
      if (of !== where) input.value = of = where;
      const command = where ? context.command("grep", shellWord(where)) : sample?.command;
      replace(more, command && [context.copyCommand(() => command), all]);
      if (found) return show(found);
      for (const part of [error, bar]) part.hidden = true;
      input.removeAttribute("aria-invalid");
      setText(side, "");
      setText(hits, where ? "" : sample?.text ?? "");
    },
  };
}

function example({ features, roles, labels }) {
  const known = valued(features);
  const one = known.find((f) => f.name === roles.label) ?? known.find((f) => f.n === 1 && f.kind !== "float") ?? known[0];
  const text = one && labels[one.name]?.[one.value];
  return one ? condition(one.name, text ? "bytes" : one.kind, text ?? one.value, one.n) : "record in 0..20";
}
