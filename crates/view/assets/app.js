// The shell of the page: head, views, keys and dialogs. What a view exports and its context are described in src/assets.rs.

import { aside, attrs, button, count, h, icon, iconButton, number, replace, setText, shellWord, size } from "./dom.js";
import { aborted, get, recordCache } from "./api.js";
import { allRecords, findBar, fixedList, grammar, search } from "./find.js";
import { pixels } from "./media.js";
import { rolesDialog, rolesOf } from "./roles.js";
import * as address from "./state.js";

const VIEWS = {
  grid: { label: "Grid", load: () => import("./grid.js") },
  table: { label: "Table", load: () => import("./table.js") },
  record: { label: "Record", load: () => import("./record.js") },
  episode: { label: "Episode", load: () => import("./episode.js") },
  data: { label: "Data set", load: () => import("./dataset.js") },
  compare: { label: "Compare", load: () => import("./compare.js") },
  step: { label: "Training step", load: () => import("./step.js") },
};
const KEYS = [
  ["j k", "next and previous record"],
  ["h l", "value, frame or step"],
  ["arrows", "move in grid and table, over values, frames and steps, or to the next record"],
  ["Home End", "first and last step of an episode"],
  ["Enter", "open the record; in the table, show the records with this value"],
  ["/", "condition"],
  ["g", "go to a record"],
  ["r", "random sample"],
  ["b", "boxes on or off"],
  ["+ -", "picture larger or smaller"],
  ["t", "table or grid"],
  ["?", "this help"],
  ["Escape", "close, or back to the list"],
];
const LISTED = ["grid", "table", "record", "episode"]; // views of a list of records
const SAMPLE = 60;
const NO_STEP = { step: null };

const page = { head: document.getElementById("bar"), main: document.getElementById("main"), live: document.getElementById("live") };

// Dialogs and the clipboard

function dialog(title, submit, ...content) {
  const element = h("dialog", { "aria-labelledby": "dialog-title" }, h("form", { method: "dialog", class: "column", onsubmit: submit },
    h("div.row.spread", h("h2", { id: "dialog-title" }, title), iconButton("Close", () => element.close())), content));
  element.addEventListener("close", () => element.remove());
  element.addEventListener("click", (event) => event.target === element && element.close());
  document.body.append(element);
  element.showModal();
  return element;
}

function announce(text) {
  setText(page.live, text);
}

let fading = 0;
function toast(text) {
  announce(text);
  const element = document.getElementById("toast") ?? document.body.appendChild(h("div", { id: "toast", class: "toast", "aria-hidden": "true" }));
  setText(element, text);
  clearTimeout(fading);
  fading = setTimeout(() => element.remove(), 2000);
}

async function copy(text, what = "text") {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied: ${what === "command" ? text : what}`);
  } catch {
    // Not allowed: the text is copied by hand.
    const area = h("textarea", { rows: 8, readonly: true, class: "mono", label: what });
    area.value = text;
    dialog(`Copy this ${what}`, null, area);
    area.select();
  }
}

function help() {
  const element = dialog("Keys and conditions", null,
    h("dl.pairs.keys", KEYS.map(([keys, meaning]) => [h("dt", keys.split(" ").map((key) => h("kbd", key))), h("dd", meaning)])),
    h("h3", "Conditions"), grammar(opened.context.dataset));
  element.dataset.test = "help";
}

// Without the cookie the server shows nothing, not even names.
function askToken() {
  if (document.getElementById("token")) return;
  replace(page.head);
  const field = h("input", { id: "token", name: "token", autocomplete: "off", spellcheck: "false", required: true, class: "mono", hook: "token" });
  replace(page.main, h("form", {
    class: "empty token",
    onsubmit(event) {
      event.preventDefault();
      // The fragment stays over the redirect, and with it the page that was asked for.
      location.assign(`/?t=${encodeURIComponent(field.value.trim())}${location.hash}`);
    },
  }, h("h1", "Access token"), h("p.muted", "The command tfseek view printed a link. Open that link, or copy the part after ?t= to here."),
  h("label.field", h("span", "Token"), field), h("button.primary", "Open")));
  document.body.dataset.ready = "token";
  field.focus();
}
addEventListener("tfseek-forbidden", askToken);

// One set: its data, its list and its head

// The command ends when its last tab is closed. A page that comes back from the history is open again.
const tab = String(Math.random()).slice(2);
const tell = (what) => fetch(`/api/${what}?tab=${tab}`, { keepalive: true }).catch(() => {});

// One tab of a browser holds a connection open: its end without a goodbye is that of the browser.
async function hold() {
  for (let pause = 500; ; pause = Math.min(16_000, 2 * pause)) {
    const start = performance.now();
    await fetch(`/api/hold?tab=${tab}`).then((answer) => answer.text()).catch(() => {});
    // Timers of a tab in the background are late, so a connection that lasted is renewed without one.
    if (performance.now() - start > 2000) pause = 500;
    else await new Promise((again) => setTimeout(again, pause));
  }
}

async function open(set) {
  const dataset = await get("/api/dataset", { set });
  if (!tell.begun) {
    tell.begun = true;
    tell("open");
    navigator.locks ? navigator.locks.request("tfseek", hold) : hold();
    addEventListener("pagehide", () => tell("close"));
    addEventListener("pageshow", (event) => event.persisted && tell("open"));
  }
  dataset.roles ??= {};
  let current = null; // { key, list, found } of the state
  const context = {
    dataset, set, dialog, announce, copy, help, pixels, listView,
    state: () => address.state,
    go: address.go,
    roles: () => rolesOf(dataset, address.state),
    records: recordCache(set),
    copyCommand: (line, props) => button("Copy as command", () => context.copy(line(), "command"), "copy-command", props),
    // The server knows the words before and after the argument of a verb.
    command: (verb, argument) => [dataset.commands[verb][0], argument, dataset.commands[verb][1]].filter(Boolean).join(" "),
    tools: h("div.row.tools"),
    get list() {
      return current.list;
    },
    searchError: () => current.found?.error ?? null,
    ready: () => (document.body.dataset.ready = viewName()),
  };

  const bar = findBar(context);
  const sample = button("Sample", random, "sample", { title: "A random sample (r)" });
  const place = h("input", {
    hook: "goto", inputmode: "numeric", label: "Go to record", placeholder: "Go to record", title: "Go to record (g)",
    size: "12", autocomplete: "off",
  });
  const jump = h("form", {
    class: "jump",
    onsubmit(event) {
      event.preventDefault();
      goTo(place.value);
    },
  }, place);
  place.addEventListener("input", () => place.setCustomValidity(""));
  const links = Object.entries(VIEWS)
    .filter(([name]) => name !== "record" && (name !== "episode" || dataset.episodes !== null) && (name !== "compare" || dataset.against))
    .map(([name, { label }]) => h("a.view-link", { hook: `view-${name}`, "data-view": name, href: "#" }, label));
  replace(page.head,
    h("div.top-row",
      h("div.title", h("h1", { title: dataset.name }, short(dataset.name)),
        aside([
          count(dataset.records, { example: "Example", sequence_example: "SequenceExample" }[dataset.kind] ?? "record"),
          count(dataset.shards, "shard"),
          size(dataset.bytes),
        ].join(" · "))),
      dataset.against && h("label.set.row.small", h("span.muted", "Set"), setSwitch(dataset, set)),
      h("nav", { label: "Views" }, links)),
    h("div.tool-row", bar.form, jump, sample, button("Roles", () => rolesDialog(context), "roles"),
      button("?", help, "open-help", { label: "Help: keys and conditions", title: "Help (?)" }), context.tools),
    bar.error, bar.status, banner(), bar.bar);

  // What is known of the files, said once.
  function banner() {
    const { damage, warnings } = dataset;
    if (!damage.ranges && !warnings.length) return null;
    const all = () => dialog("Notes on the files", null, h("ul.column", warnings.map((text) => h("li.note.warning", text))));
    const element = h("div.note.warning.row.banner", { role: "note", hook: "banner" }, icon("Note"),
      damage.ranges > 0 && [
        h("span", `${count(damage.ranges, "damaged range")} of ${size(damage.bytes)} ${damage.ranges === 1 ? "is" : "are"} left out.`),
        h("a", { hook: "ranges", href: "#view=data&part=damage" }, "Show the ranges"),
      ],
      warnings.length > 0 && button(warnings.length > 1 || damage.ranges ? count(warnings.length, "note") : warnings[0], all, "notes", { class: "link" }),
      iconButton("Close", () => element.remove()));
    return element;
  }

  function random() {
    address.go({ seed: Math.floor(Math.random() * 1e6), where: null, at: null, sel: null, id: null, view: listView() });
  }

  function goTo(text) {
    const id = Number(text.replaceAll(/[,_ ]/g, ""));
    if (text.trim() === "" || !Number.isInteger(id) || id < 0 || id >= dataset.records) {
      place.setCustomValidity(dataset.records
        ? `Expected a number from 0 to ${number(dataset.records - 1)}, found ${text || "nothing"}`
        : "There are no records");
      place.reportValidity();
      return;
    }
    place.value = "";
    place.blur();
    const at = current.list.position(id);
    if (viewName() === "episode") address.go({ id, step: null });
    else if (viewName() === "record" || at < 0 || !["grid", "table"].includes(viewName())) address.go({ view: "record", id, tab: null });
    else address.go({ at: at || null, sel: null });
  }

  const drawn = (state) => Math.max(1, Math.min(10_000, Math.floor(Number(state.n)) || SAMPLE));
  const keyOf = (state) => JSON.stringify(LISTED.includes(viewName()) ? [state.where, state.where ? null : state.seed, drawn(state)] : null);

  async function lists(state) {
    const key = keyOf(state);
    if (key === current?.key) return;
    current?.found?.stop();
    const next = { key, list: allRecords(dataset.records), found: null };
    if (key === "null") {
      // The other views ask themselves.
    } else if (state.where) {
      next.found = search(state.where, { set });
      next.list = next.found.list;
      next.list.onGrow(() => current === next && bar.show(next.found));
    } else if (state.seed) {
      const { ids } = await get("/api/sample", { set, n: drawn(state), seed: state.seed });
      // The address may have another position by now, which changes no list.
      if (keyOf(address.state) !== key) return;
      next.list = fixedList(ids);
      next.sample = { n: ids.length, seed: state.seed };
    }
    current = next;
  }

  function shown(state) {
    for (const link of links) {
      // The seed of a training step is not that of a sample.
      const other = (viewName() === "step") !== (link.dataset.view === "step");
      // Neither is its number that of a step of an episode.
      const episodes = link.dataset.view === "episode" || viewName() === "episode";
      const id = link.dataset.view === "episode" ? state.id : null;
      link.href = address.href({ view: link.dataset.view, id, tab: null, value: null, ...(other && { seed: null }), ...(episodes && NO_STEP) });
      attrs(link, { "aria-current": link.dataset.view === viewName() && "page" });
    }
    bar.update(current.found, current.sample && {
      text: `${count(current.sample.n, "record")} drawn at random, seed ${current.sample.seed}`,
      command: context.command("sample", `-n ${current.sample.n} --seed ${shellWord(current.sample.seed)}`),
    });
    page.head.classList.toggle("no-list", !LISTED.includes(viewName()));
    document.title = `${["record", "episode"].includes(viewName()) ? `${number(Number(state.id ?? 0))} · ` : ""}${short(dataset.name)} – tfseek`;
  }

  // From a record to where it was opened: in a list, the record is marked.
  function back() {
    const from = viewName(), { state } = address;
    const one = ["record", "episode"].includes(from);
    if (one && lastPlace && !["grid", "table"].includes(lastPlace.view)) {
      const gone = Object.fromEntries(Object.keys(state).map((key) => [key, null]));
      return address.go({ ...gone, ...lastPlace, roles: state.roles, boxes: state.boxes });
    }
    if (from === listView()) return null;
    const at = one ? current.list.position(Number(state.id)) : -1;
    return address.go({
      view: listView(), id: null, tab: null, value: null, ...(from === "episode" && NO_STEP),
      ...(at >= 0 && current.list.at(at) === Number(state.id) && { sel: at }),
    });
  }

  return {
    context, lists, shown,
    close: () => current?.found?.stop(),
    keys: {
      "/": bar.focus, "?": help, r: random,
      g: () => {
        place.focus();
        place.select();
      },
      t: () => address.go({ view: viewName() === "table" ? "grid" : "table", id: null }),
      Escape: back,
    },
  };
}

function setSwitch(dataset, set) {
  const names = set === "1" ? [dataset.against, dataset.name] : [dataset.name, dataset.against];
  return h("select", {
    label: "Data set on show", hook: "set",
    // Roles, columns and positions are of one set.
    onchange: (event) => address.go({
      set: event.target.value === "1" ? "1" : null,
      at: null, sel: null, id: null, roles: null, cols: null,
      ...(viewName() === "episode" && NO_STEP),
      view: ["record", "episode"].includes(viewName()) ? null : viewName(),
    }),
  }, names.map((name, i) => h("option", { value: i, selected: String(i) === set }, short(name))));
}

const short = (name) => name.replace(/^.*\/(?=[^/]+$)/, "");

const viewName = () => (Object.hasOwn(VIEWS, address.state.view ?? "") ? address.state.view : opened?.context.dataset.home ?? "grid");

let lastList = null; // the list that was shown last
let lastPlace = null; // the state of the view before a record or an episode
const listView = () => lastList ?? opened.context.dataset.list;

// The state is shown

let opened = null; // of one set
let mounted = null; // { name, view }
let turn = 0;
let begun = false;

async function show(state) {
  turn += 1;
  const mine = turn;
  const late = () => mine !== turn;
  delete document.body.dataset.ready;
  const set = state.set === "1" ? "1" : "0";
  try {
    if (opened?.context.set !== set) {
      const next = await open(set);
      if (late()) return;
      leave();
      opened?.close();
      [opened, lastList] = [next, null];
      if (location.hash.length < 2 && next.context.dataset.where) address.note({ where: next.context.dataset.where });
    }
    await opened.lists(address.state);
    if (late()) return;
    const name = viewName();
    if (["grid", "table"].includes(name)) lastList = name;
    if (!["record", "episode"].includes(name)) lastPlace = { ...state, view: name };
    // A position alone is the record there.
    if (["record", "episode"].includes(name) && !state.id && state.at) address.note({ id: opened.context.list.at(Number(state.at)) ?? state.at, at: null });
    opened.shown(address.state);
    if (mounted?.name !== name || mounted.context !== opened.context) {
      const module = await VIEWS[name].load();
      if (late()) return;
      leave();
      const root = h("div.view");
      replace(page.main, root);
      page.main.scrollTop = 0;
      // Tab continues from the new view.
      if (begun && document.activeElement === document.body) page.main.focus({ preventScroll: true });
      mounted = { name, context: opened.context, view: module.mount(root, opened.context) };
      attrs(page.main, { label: mounted.view.title });
      begun = true;
    }
    await mounted.view.update(address.state);
    if (!late()) document.body.dataset.ready = name;
  } catch (error) {
    if (aborted(error) || late()) return;
    if (error.status === 403) return;
    leave();
    replace(page.main, h("div.empty", { hook: "error" }, h("p.error", error.message),
      h("button", { type: "button", onclick: () => show(address.state) }, "Try again")));
    document.body.dataset.ready = viewName();
  }
}

function leave() {
  mounted?.view.unmount?.();
  mounted = null;
}

// Letters are keys unless they are typed. Links and buttons keep Enter, and sliders and scrolled text their arrows.
addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !opened || document.querySelector("dialog[open]")) return;
  const field = event.target.closest("input, select, textarea, audio, video");
  if (field && (field.type !== "checkbox" || event.key.length > 1)) {
    if (event.key === "Escape") field.blur();
    return;
  }
  if (event.key === "Enter" && event.target.closest("a, button, summary, [role=button]")) return;
  if (event.key.length > 1 && event.key !== "Escape" && event.target.closest("pre, [role=scrollbar], [role=slider]")) return;
  const action = mounted?.view.keys?.[event.key] ?? opened.keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  (page.main.querySelector("[tabindex='0']") ?? page.main).focus();
});

address.onChange(show);
show(address.state);
