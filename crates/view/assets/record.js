// The page of one record: its image, its features as a tree, and its first bytes.

import { aborted, bytes, bytesUrl, get, text } from "./api.js";
import {
  aside, attrs, button, bytesText, count, examplesOf, float, h, hbox, iconButton, kindOf, muted, named, number, payloadText, problem, replace, size, table,
  timeOf, valuesOf,
} from "./dom.js";
import { condition, pager } from "./find.js";
import { stage } from "./overlay.js";
import { imageOf } from "./roles.js";
import { href } from "./state.js";

const FIRST = 24; // values shown before "more"
const HEX = 4096; // bytes that are shown
const TABS = { tree: "Features", hex: "Bytes" };

export function mount(root, context) {
  root.classList.add("record-view");
  let shown = null;
  let record = null;
  let picture = null;
  let stop = new AbortController();
  let endGrowth = () => {};

  const title = h("h1", { hook: "record" });
  const where = h("p.muted.small");
  const { previous, next, nth, turn, update: steps } = pager(context, "record", { step: null, value: null });
  const json = async () => context.copy(await text(`/api/json/${record.id}`, { set: context.set }), "JSON");
  const boxes = button("Boxes", toggle, "toggle-boxes", { title: "Boxes (b)", "aria-pressed": "true", hidden: true });
  const values = h("div.row", { hidden: true });
  const episode = context.dataset.episodes !== null && h("a.button", { hook: "to-episode" }, "Episode");
  const visual = h("div.column.visual");
  const panel = h("div.panel.detail", { role: "tabpanel", tabindex: "-1", id: "detail" });
  const tabs = Object.entries(TABS).map(([name, label]) => h("button", {
    type: "button", role: "tab", id: `tab-${name}`, hook: `tab-${name}`, "aria-controls": "detail", class: "tab",
    onclick(event) {
      context.go({ tab: name === "tree" ? null : name }, { replace: true });
      // After a click with the mouse, arrow keys are those of the record. With the keyboard they stay in the tabs.
      if (event.detail) panel.focus({ preventScroll: true });
    },
  }, label));
  const strip = h("div", {
    role: "tablist", label: "Record as", class: "tabs",
    onkeydown(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const tab = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
      tab.focus();
      tab.click();
    },
  }, tabs);
  const columns = h("div.record-columns", visual, h("div.record-side", strip, panel));
  const narrow = matchMedia("(max-width: 640px)");
  narrow.addEventListener("change", place);
  const body = h("div.page",
    h("div.row.spread", hbox(previous, title, next, nth),
      hbox(boxes, episode, button("Copy as JSON", () => json().catch(tell), "copy-json"),
        context.copyCommand(() => context.command("get", String(record.id))))),
    where, columns);
  root.append(body);

  const tell = (error) => aborted(error) || replace(panel, problem(error.message));

  function toggle() {
    context.go({ boxes: context.state().boxes === "off" ? null : "off" }, { replace: true });
  }

  // h and l: frames of a sequence, else values of the image's list. Returns whether there are some.
  function across(by) {
    const slider = root.querySelector('[data-test="slider"]');
    if (slider) {
      slider.stepUp(by);
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    } else if (picture?.count > 1) {
      const to = Math.max(0, Math.min(picture.count - 1, Number(context.state().value ?? 0) + by));
      context.go({ value: to || null }, { replace: true });
    }
    return Boolean(slider) || picture?.count > 1;
  }

  function place() {
    const beside = narrow.matches && shown?.tab === "tree";
    picture?.element.classList.toggle("beside", beside);
    if (picture && beside) panel.before(picture.element);
    else if (picture) visual.prepend(picture.element);
    columns.classList.toggle("alone", [...visual.children].every((part) => part.hidden));
  }

  async function show(state) {
    const roles = context.roles();
    picture?.destroy();
    // Frames of a feature list have a slider of their own (sequence.js).
    columns.classList.remove("wide");
    columns.style.removeProperty("--wide");
    picture = imageOf(record, roles)?.step === 0 ? null : stage(record, roles, {
      value: Number(state.value) || 0, pixels: context.pixels, shown: state.boxes !== "off", columns,
    });
    boxes.hidden = !picture?.shapes.boxes.length && !picture?.shapes.points.length && !roles.mask?.length;
    values.hidden = !(picture?.count > 1);
    replace(values, iconButton("Previous image", () => across(-1)),
      `image ${number(Number(state.value ?? 0) + 1)} of ${number(picture?.count)}`, iconButton("Next image", () => across(1)));
    picture?.element.append(values);
    visual.replaceChildren();
    place();
    if (record.error) return picture?.ready;
    const [{ media }, { sequence }] = await Promise.all([import("./media.js"), import("./sequence.js")]);
    if (record !== shown?.record) return null;
    visual.append(...[media(record, context), sequence(record, context)].filter((part) => part && !part.hidden));
    place();
    return picture?.ready;
  }

  async function tab(name, signal) {
    for (const each of tabs) {
      each.ariaSelected = each.id === `tab-${name}`;
      each.tabIndex = each.id === `tab-${name}` ? 0 : -1;
    }
    attrs(panel, { "aria-labelledby": `tab-${name}` });
    if (name === "hex") await hex(signal);
    else replace(panel, tree(record, context));
    place();
  }

  async function hex(signal) {
    const to = Math.min(record.bytes, HEX);
    const found = to ? await bytes(record.id, to, signal) : new Uint8Array(0);
    replace(panel,
      hbox(aside(to < record.bytes ? `the first ${number(to)} of ${count(record.bytes, "byte")}` : count(record.bytes, "byte")),
        h("a.small", { href: bytesUrl(record.id), download: `record-${record.id}.bin` }, "Save all")),
      h("pre.code.hex", { tabindex: "0", label: "Bytes of the record" }, dump(found)));
  }

  return {
    title: "Record",
    async update(state) {
      const id = Number(state.id ?? 0);
      endGrowth();
      endGrowth = context.list.onGrow(steps);
      stop.abort();
      stop = new AbortController();
      const { signal } = stop;
      try {
        if (shown?.id !== id) {
          const found = await get(`/api/record/${encodeURIComponent(state.id ?? "0")}`, { set: context.set }, { signal });
          record = found;
          shown = { id, record, visual: null, tab: null };
          body.classList.remove("missing");
          replace(title, `Record ${number(record.id)}`);
          if (episode) episode.href = href({ view: "episode", step: null, tab: null, value: null });
          replace(where, [
            record.shard, `record ${number(record.record)} in it`, `at byte ${number(record.offset)}`, size(record.bytes),
            record.kind.replace("_", " "),
          ].join(" · "));
        }
        steps();
        const name = Object.hasOwn(TABS, state.tab ?? "") ? state.tab : "tree";
        if (shown.tab !== name) {
          shown.tab = name;
          await tab(name, signal);
        }
        const look = JSON.stringify([state.roles, state.value]);
        if (shown.visual !== look) {
          shown.visual = look;
          await show(state);
        }
        boxes.ariaPressed = state.boxes !== "off";
        picture?.show(state.boxes !== "off");
      } catch (error) {
        if (aborted(error)) {
          if (shown) shown.tab = null;
          return;
        }
        if (shown?.id !== id) {
          shown = null;
          replace(title, `Record ${state.id ?? ""}`);
          body.classList.add("missing");
          replace(where, h("span.error", { hook: "error" }, error.message), " ",
            h("a", { href: href({ view: context.listView(), id: null }) }, "Back to the list"));
        } else tell(error);
      }
    },
    unmount() {
      endGrowth();
      stop.abort();
      picture?.destroy();
      narrow.removeEventListener("change", place);
    },
    keys: {
      j: () => turn(1), k: () => turn(-1), ArrowLeft: () => across(-1) || turn(-1), ArrowRight: () => across(1) || turn(1),
      h: () => across(-1), l: () => across(1),
      b: toggle, "+": () => picture?.enlarge(2), "-": () => picture?.enlarge(0.5),
    },
  };
}

function dump(found) {
  const lines = [];
  for (let at = 0; at < found.length; at += 16) {
    const row = found.subarray(at, at + 16);
    const codes = Array.from(row, (b) => b.toString(16).padStart(2, "0"));
    const chars = Array.from(row, (b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "."));
    const half = (start) => codes.slice(start, start + 8).join(" ").padEnd(23);
    lines.push([at.toString(16).padStart(8, "0"), half(0), half(8), chars.join("")].join("  "));
  }
  return lines.join("\n") || "(no bytes)";
}

function tree(record, context) {
  if (record.error) return problem(record.error);
  if (record.kind === "bytes") {
    return h("div.tree", { hook: "record-tree" }, record.examples ? examples(record) : record.fields ? fieldsOf(record.fields)
      : [h("p.muted", "The record is no Example, and no protobuf message."), h("p.value.mono", payloadText(record))]);
  }
  const entries = Object.entries(record.features ?? {});
  const lists = Object.entries(record.lists ?? {});
  const rows = entries.map(([name, feature]) => featureRow(record, name, feature, context.dataset));
  const find = entries.length > 12 && h("input", {
    type: "search", class: "wide-field", placeholder: `Filter ${number(entries.length)} features by name`, label: "Filter features by name",
    oninput: (event) => rows.forEach((row, i) => (row.hidden = !entries[i][0].toLowerCase().includes(event.target.value.toLowerCase()))),
  });
  return h("div.tree", { hook: "record-tree" }, find,
    rows.length ? h("ul", { label: "Features" }, rows) : lists.length ? null : h("p.muted", "The record has no features."),
    lists.map(([name, list]) => listRow(record, name, list)),
    record.left_out > 0 && muted(`${count(record.left_out, "more feature")} not listed: Copy as JSON has all.`));
}

// Examples with a context: features are columns, as those of a query are compared.
function examples(record) {
  const [context, rows] = examplesOf(record);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.features)))];
  return [context.map(({ features, place }) => Object.entries(features).map(([name, feature]) => featureRow(record, name, feature, {}, place))),
    table([count(record.total, "Example"), ...names], rows.map(({ features, place }, i) =>
      [number(i), ...names.map((name) => features[name] && valueList(record, name, features[name], { step: place }))])),
    rows.length < record.total && muted(`${number(record.total - rows.length)} more: the bytes of the record have all.`)];
}

function head(name, ...facts) {
  return h("div.feature-head", h("span.feature-name", name || "(empty name)"), aside(facts.filter(Boolean).join(" · ")));
}

const lengthOf = (value) => (typeof value === "string" ? new TextEncoder().encode(value).length : value.bytes);

function featureRow(record, name, feature, { labels, declared, list }, step) {
  const kind = kindOf(feature);
  const all = valuesOf(feature);
  const total = kind === "bytes" && all.length === feature.n ? size(all.reduce((sum, value) => sum + lengthOf(value), 0)) : "";
  return h("li.tree-row", { "data-feature": name },
    head(name, kind ?? "no kind", feature.n !== 1 && count(feature.n, "value"), total, declared?.[name]),
    valueList(record, name, feature, { step, names: labels?.[name], list }));
}

// Values as links: Enter on one shows the records that have it.
function valueList(record, name, feature, { step, names, list } = {}) {
  const kind = kindOf(feature);
  let all = valuesOf(feature);
  const box = h("div", { class: `values ${kind ?? ""}` });
  const more = async (from, to) => {
    // A record comes with the first values of its features.
    if (from >= all.length) all = [...all, ...valuesOf(await rest(record, name, { step, from: all.length }))];
    to = Math.min(to, all.length);
    const nodes = all.slice(from, to).map((value, i) => {
      const shown = kind === "bytes" ? bytesText(value) : named(value, kind === "int64" ? names : undefined);
      const time = timeOf(name, value);
      const where = step === undefined ? condition(name, kind, value, feature.n) : null;
      const to = where && href({ view: list, where, id: null, at: null, sel: null, seed: null, n: null, tab: null, value: null });
      const long = shown.length > 400;
      const content = where && !long
        ? h("a.value", { href: to, title: `Records with ${where}` }, shown)
        : h("span", { class: `value ${long ? "long" : ""}`, tabindex: long ? "0" : null }, shown);
      const whole = typeof value === "object" && value.bytes > 32 && h("a.small", {
        href: bytesUrl(record.id, name, { step, value: from + i || undefined }), target: "_blank", rel: "noopener",
      }, value.type ? "open" : "save");
      return [content, time && h("span.muted.small", { hook: "time" }, time), whole, long && where ? h("a.small", { href: to }, "records with this") : null];
    });
    box.querySelector(".more")?.remove();
    box.append(...nodes.flat().filter(Boolean));
    if (to < feature.n) box.append(button(`${number(feature.n - to)} more`, () => more(to, to * 8), "more", { class: "link small more" }));
  };
  more(0, FIRST);
  return box;
}

const rest = (record, name, params) => get(`/api/record/${record.id}`, { feature: name, ...params });

function listRow(record, name, list) {
  const steps = h("ol.steps-list");
  let all = list.first;
  const more = async (from, to) => {
    if (from >= all.length) all = [...all, ...(await rest(record, name, { from: all.length }))];
    to = Math.min(to, all.length);
    steps.querySelector(".more")?.remove();
    all.slice(from, to).forEach((feature, i) => steps.append(h("li", h("span.muted.small.number", from + i),
      valueList(record, name, feature, { step: from + i }))));
    if (to < list.steps) steps.append(h("li.more", button(`${number(list.steps - to)} more steps`, () => more(to, to + 100), "more", { class: "link small" })));
  };
  more(0, 8);
  return h("div.tree-row", { "data-feature": name }, head(name, "feature list", list.kind ?? "no kind", count(list.steps, "step")), steps);
}

// The fields of a protobuf message; of unknown ones, the numbers.
function fieldsOf(fields, depth = 0) {
  return h("ul.message", fields.map((field) => {
    const { value } = field;
    const inner = Array.isArray(value) && value.every((v) => v && typeof v === "object" && "number" in v) ? value : null;
    const shown = inner ? null : Array.isArray(value) ? value.map(one).join(", ") : one(value);
    const head = [h("span.feature-name", field.name ?? `field ${field.number}`), " ", aside(field.type)];
    return h("li", inner ? h("details", { open: depth < 2 && inner.length < 20 }, h("summary", head), fieldsOf(inner, depth + 1))
      : [head, " ", h("span.value", shown), " ", h("span.small.muted", { hook: "time" }, timeOf(field.name, value))]);
  }));
}

function one(value) {
  if (value == null) return "";
  if (typeof value === "object") return "bytes" in value ? bytesText(value) : JSON.stringify(value);
  return typeof value === "number" ? float(value) : bytesText(String(value));
}
